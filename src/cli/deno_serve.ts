/**
 * The server under `deno serve main.ts` and Deno Deploy, which choose the address. Settings come from variables and
 * `preamp.yaml`. Without configured keys every route that needs a key answers 401.
 */
import { processRedactor } from "../policy/redact.ts";
import { errorMessage } from "../sdk/errors.ts";
import { createRuntime } from "../app/runtime.ts";
import { createApp, createPreamp, type Preamp } from "../server/mod.ts";
import { readArguments } from "./arguments.ts";
import { serverOptions } from "./server_options.ts";
import { type Io, systemIo } from "./terminal/io.ts";
import { createLog } from "./log.ts";
import { logNodeWarnings, logStrayOutput } from "./stray_output.ts";
import { readSettings, type Settings } from "./settings.ts";

/** Milliseconds that runs have to stop on a shutdown signal. Deno Deploy allows 5 s for the whole process. */
const GRACE_MS = 3_000;

/** A server whose requests come from `deno serve` or Deno Deploy. */
export interface EmbeddedServer {
  readonly fetch: Preamp["fetch"];
  /** Ends streams and runs, and flushes the log. */
  stop(): Promise<void>;
}

/** Creates the server. It logs JSON lines to stderr. With invalid settings it answers 500 and logs the reason. */
export async function openEmbedded(): Promise<EmbeddedServer> {
  const io = systemIo();
  let settings: Settings;
  try {
    settings = await readSettings(readArguments([], []), io);
  } catch (error) {
    return unusable(io, error);
  }
  const secrets = processRedactor(settings.api_keys);
  const log = createLog("json", io.err, secrets);
  logStrayOutput(log);
  await logNodeWarnings(log);
  for (const message of settings.warnings) log.note("warning", "settings", { message });
  const preamp = createPreamp(await serverOptions(settings, secrets, log));
  return {
    fetch: preamp.fetch,
    async stop() {
      try {
        await preamp.drain(GRACE_MS);
      } finally {
        log.flush();
      }
    },
  };
}

/** Creates a server that only says that the process is up; other requests answer 500 and log the reason. */
function unusable(io: Io, error: unknown): EmbeddedServer {
  const log = createLog("json", io.err);
  const failure = new Error(`Cannot use the settings: ${errorMessage(error)}`, { cause: error });
  const { fetch } = createApp({
    runtime: { ...createRuntime(), ready: () => Promise.reject(failure) },
    authenticate() {
      throw failure;
    },
    hosts: "any",
    log: (record) => log.request(record),
  });
  return { fetch, stop: () => Promise.resolve(log.flush()) };
}
