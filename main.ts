/**
 * The composition root: a command line, or a module that `deno serve` and Deno Deploy serve.
 *
 *   deno run … main.ts serve        the same as `preamp serve`
 *   deno serve … main.ts            the HTTP API on an address that Deno chooses; keys come from PREAMP_API_KEYS
 */
import type { EmbeddedServer } from "./src/cli/deno_serve.ts";
import { cli } from "./src/cli/mod.ts";
import { systemIo } from "./src/cli/terminal/system_io.ts";

// The compiled program is its own children too.
if (Deno.build.standalone && Deno.args[0] === "child") {
  const { runChild } = await import("./src/cli/child_roles.ts");
  await runChild(Deno.args.slice(1));
}

let server: Promise<EmbeddedServer> | undefined;

/** Answers a request; the server is created by the first one. */
async function fetch(request: Request, info?: Deno.ServeHandlerInfo): Promise<Response> {
  server ??= import("./src/cli/deno_serve.ts").then(({ openEmbedded }) => openEmbedded());
  try {
    return await (await server).fetch(request, info);
  } catch (error) {
    server = undefined; // it could not be loaded: the next request tries again
    throw error;
  }
}

/** Prints the usage, as `preamp` alone does: `deno run` got no arguments, and nothing is left to do. */
function usage(event: Event): void {
  event.preventDefault();
  cli([]).then(Deno.exit);
}

/** Milliseconds that the last bytes of answers get to be sent. */
const LINGER_MS = 1_000;

/**
 * Ends streams and runs after SIGTERM or SIGINT. The process ends by itself when Deno, which gets the signal too, has closed
 * all connections.
 */
async function stop(): Promise<void> {
  globalThis.removeEventListener("beforeunload", usage);
  await (await server)?.stop();
  Deno.unrefTimer(setTimeout(() => Deno.exit(0), LINGER_MS));
}

if (import.meta.main && (Deno.args.length > 0 || Deno.build.standalone)) Deno.exit(await cli(Deno.args));

// Without arguments `deno run` and `deno serve` look the same here. The event loop of `deno run` is empty at once; that of
// `deno serve` gets empty after a signal, which `stop` handles before.
if (import.meta.main) {
  systemIo().onStop(() => void stop());
  globalThis.addEventListener("beforeunload", usage, { once: true });
}

export default Deno.args.length ? {} : { fetch };
