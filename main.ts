/**
 * The composition root: a command line, or a module that `deno serve` and Deno Deploy serve.
 *
 *   deno run … main.ts serve        the same as `preamp serve`
 *   deno serve … main.ts            the HTTP API on an address that Deno chooses; keys come from PREAMP_API_KEYS
 */
import { cli } from "./src/cli/mod.ts";
import type { Preamp } from "./src/server/mod.ts";

// The compiled program as the bundler of modules (src/loader/bundler_process.ts starts it so): holds nothing, does nothing else.
if (Deno.build.standalone && Deno.args.join(" ") === "child bundle") {
  const { runBundlerChild } = await import("./src/loader/bundler_child.ts");
  await runBundlerChild();
}
// …as the place where one module of a run lives (src/sandbox/child_command.ts)…
if (Deno.build.standalone && Deno.args[0] === "child" && Deno.args[1] === "guest") {
  const { runGuestChild } = await import("./src/sandbox/child/child.ts");
  await runGuestChild();
}
// …and as the place where `preamp module validate` tries a module (src/app/validation/process.ts).
if (Deno.build.standalone && Deno.args.join(" ") === "child validate") {
  const { runValidatorChild } = await import("./src/app/validation/child.ts");
  await runValidatorChild();
}

let preamp: Promise<Preamp> | undefined;

/** Answers a request; the server is made on the first one. */
async function fetch(request: Request, info?: Deno.ServeHandlerInfo): Promise<Response> {
  preamp ??= import("./src/cli/embedded.ts").then(({ openEmbedded }) => openEmbedded());
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
