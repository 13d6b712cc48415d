/**
 * Entry point: a command line, or a module for `deno serve` and Deno Deploy.
 *
 *   deno run … main.ts serve        the same as `preamp serve`
 *   deno serve … main.ts            the HTTP API on the address of `deno serve`; keys: PREAMP_API_KEYS
 */
import { cli } from "./src/cli/mod.ts";
import { systemIo } from "./src/cli/terminal/io.ts";
import { serveAgent } from "./src/deploy/mod.ts";

/** Oldest version of Deno that has everything this program uses. */
const OLDEST = [2, 6] as const;

const [major = 0, minor = 0] = Deno.version.deno.split(".").map(Number);
if (major < OLDEST[0] || major === OLDEST[0] && minor < OLDEST[1]) {
  throw new Error(
    `Preamp needs Deno ${OLDEST.join(".")} or later, and this is ${Deno.version.deno}: run deno upgrade`,
  );
}

// Node's warnings are about Deno's own code here: the executable printed one before each unknown host name
const { process } = globalThis as { process?: { noDeprecation?: boolean } };
if (process) process.noDeprecation = true;

// The compiled program starts itself for its child processes, which end themselves. Under `deno run` each has
// an entry file.
if (Deno.build.standalone && Deno.args[0] === "child") {
  switch (Deno.args[1]) {
    case "guest": // a sandboxed module (src/sandbox/guest_process.ts)
      await (await import("./src/sandbox/guest_child.ts")).runGuestChild();
      break;
    case "bundle": // the bundler (src/loader/bundler/bundler_process.ts)
      await (await import("./src/loader/bundler/bundler_child.ts")).runBundlerChild();
      break;
    case "validate": // a module under `preamp module validate` (src/app/validation/process.ts)
      await (await import("./src/app/validation/validator_child.ts")).runValidatorChild();
  }
}

/** The server, unless this is a command line; its settings are those of a command that serves. */
const agent = Deno.args.length > 0 ? null : serveAgent({
  signals: false,
  async settings() {
    const [{ readSettings }, { readArguments }] = await Promise.all([
      import("./src/cli/settings.ts"),
      import("./src/cli/arguments.ts"),
    ]);
    const use = { serves: true, sources: true, plans: "all", asks: false } as const;
    return await readSettings(readArguments([], []), systemIo(), use);
  },
});

/** Does what `preamp` does without arguments, when `deno run` got none. */
function withoutArguments(event: Event): void {
  event.preventDefault();
  ignoreSignals(); // they are the command's
  cli([]).then(Deno.exit);
}

/** Removes the handler of signals that ends the server. */
let ignoreSignals = () => {};

/**
 * Ends streams and runs after SIGTERM or SIGINT. Deno handles the signal too, and the process ends when all
 * connections are closed.
 */
async function stop(): Promise<void> {
  globalThis.removeEventListener("beforeunload", withoutArguments);
  await agent?.stop();
}

if (import.meta.main && (Deno.args.length > 0 || Deno.build.standalone)) Deno.exit(await cli(Deno.args));

// Without arguments, `deno run` and `deno serve` are indistinguishable here. With `deno run` the event loop
// is empty at once; with `deno serve` it becomes empty only after a signal, and `stop` removes the listener
// before that.
if (import.meta.main) {
  ignoreSignals = systemIo().onStop(() => void stop());
  globalThis.addEventListener("beforeunload", withoutArguments, { once: true });
}

export default agent === null ? {} : { fetch: agent.fetch };
