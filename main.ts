/**
 * The composition root: a command line, or a module that `deno serve` and Deno Deploy serve.
 *
 *   deno run … main.ts serve        the same as `preamp serve`
 *   deno serve … main.ts            the HTTP API on an address that Deno chooses; keys come from PREAMP_API_KEYS
 *
 * `deno run` reads the whole graph of a program before its first line, what is imported as it goes too, as long as it finds the
 * name: half of the start was that. So the parts that a server starts without are imported by a name that is put together, here,
 * in src/cli/commands.ts and src/cli/serve.ts. The bundler of `deno task compile` puts it together as well.
 */
import { cli } from "./src/cli/mod.ts";
import type { Preamp } from "./src/server/mod.ts";

// The compiled program is its own children too.
if (Deno.build.standalone && Deno.args[0] === "child") {
  const { runChild } = await (import("./src/cli/children" + ".ts") as Promise<
    typeof import("./src/cli/children.ts")
  >);
  await runChild(Deno.args.slice(1));
}

let preamp: Promise<Preamp> | undefined;

/** Answers a request; the server is made on the first one. */
async function fetch(request: Request, info?: Deno.ServeHandlerInfo): Promise<Response> {
  preamp ??= (import("./src/cli/embedded" + ".ts") as Promise<typeof import("./src/cli/embedded.ts")>)
    .then(({ openEmbedded }) => openEmbedded());
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
