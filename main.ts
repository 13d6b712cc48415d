/**
 * The composition root: a command line, or a module that `deno serve` and Deno Deploy serve.
 *
 *   deno run … main.ts serve        the same as `preamp serve`
 *   deno serve … main.ts            the HTTP API on an address that Deno chooses; keys come from PREAMP_API_KEYS
 */
import { loadChildren, loadEmbedded } from "./src/cli/late.ts";
import { cli } from "./src/cli/mod.ts";
import type { Preamp } from "./src/server/mod.ts";

// The compiled program is its own children too.
if (Deno.build.standalone && Deno.args[0] === "child") {
  const { runChild } = await loadChildren();
  await runChild(Deno.args.slice(1));
}

let preamp: Promise<Preamp> | undefined;

/** Answers a request; the server is made on the first one. */
async function fetch(request: Request, info?: Deno.ServeHandlerInfo): Promise<Response> {
  preamp ??= loadEmbedded().then(({ openEmbedded }) => openEmbedded());
  try {
    return await (await preamp).fetch(request, info);
  } catch (error) {
    preamp = undefined; // it could not be made: the next request tries again
    throw error;
  }
}

if (import.meta.main && (Deno.args.length > 0 || Deno.build.standalone)) Deno.exit(await cli(Deno.args));

// Without arguments `deno run` cannot be told from `deno serve` here, but only the former has nothing left to do: it gets
// the usage, as `preamp` alone does.
if (import.meta.main) {
  globalThis.addEventListener("beforeunload", (event) => {
    event.preventDefault();
    cli([]).then(Deno.exit);
  }, { once: true });
}

export default Deno.args.length ? {} : { fetch };
