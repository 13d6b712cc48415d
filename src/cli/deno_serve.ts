/**
 * The server where the address is not ours: `deno serve main.ts`, Deno Deploy. Settings come from variables and
 * `preamp.yaml`; without configured keys all but the open routes is 401.
 */
import { processRedactor } from "../policy/redact.ts";
import { errorMessage } from "../sdk/errors.ts";
import { createPreamp, type Preamp } from "../server/mod.ts";
import { createHttpApp } from "../server/http_app.ts";
import { readArguments } from "./arguments.ts";
import { ownOptions } from "./server_backend.ts";
import type { Io } from "./terminal/io.ts";
import { createLog } from "./log.ts";
import { logNodeWarnings, logStrayOutput } from "./stray_output.ts";
import { readSettings, type Settings } from "./settings.ts";
import { systemIo } from "./terminal/system_io.ts";

/** Milliseconds that runs get to come to rest when the process is told to stop; Deno Deploy gives 5 s for all. */
const GRACE_MS = 3_000;

/** A server that gets its requests from `deno serve` or Deno Deploy. */
export interface EmbeddedServer {
  readonly fetch: Preamp["fetch"];
  /** Ends streams and runs, and writes what the log still holds. */
  stop(): Promise<void>;
}

/** Returns the server; its log is lines of JSON on stderr. With settings that cannot be used it answers 500 and logs why. */
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
  const preamp = createPreamp(ownOptions(settings, secrets, log));
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

function unusable(io: Io, error: unknown): EmbeddedServer {
  const log = createLog("json", io.err);
  const failure = new Error(`Cannot use the settings: ${errorMessage(error)}`, { cause: error });
  const { fetch } = createHttpApp({
    hosts: "any",
    routes: () => Promise.reject(failure),
    log: (record) => log.request(record),
  });
  return { fetch, stop: () => Promise.resolve(log.flush()) };
}
