/**
 * A server whose host chooses the address: under `deno serve` and on Deno Deploy. Without configured keys
 * every route that needs a key answers 401.
 *
 * A host that starts the program as Deno Deploy does may stop it whenever its responses are silent, and its
 * disk does not last: there, waiting responses send a byte every few seconds, runs are kept in the database
 * of the host, and the log goes to the console. See src/docs/deploy.md#deno-deploy.
 */
import { createRuntime } from "../app/runtime.ts";
import { NamedPlans } from "../app/named_plans.ts";
import { processRedactor } from "../policy/redact.ts";
import { errorMessage } from "../sdk/errors.ts";
import { createApp, createPreamp, type Preamp } from "../server/mod.ts";
import type { Settings } from "../settings/settings.ts";
import { isHosted } from "./host.ts";
import { attachedStore } from "./attached_store.ts";
import { createLog, JSON_LINES, logStrayOutput } from "./log.ts";
import { serverOptions } from "./server_options.ts";

/** Milliseconds that runs have to stop on a shutdown signal. Deno Deploy allows 5 s for the whole process. */
const GRACE_MS = 3_000;

/**
 * Milliseconds between the bytes of a waiting response on a host that stops silent processes; Deno Deploy
 * waits for 5 s.
 */
const HEARTBEAT_MS = 3_000;
/**
 * Milliseconds that {@link AgentServer.resume} waits for the runs that it continued: until the next call.
 */
const RESUME_MS = 58_000;

const NO_KEYS =
  "No API key is configured: routes that need a key answer 401; set PREAMP_API_KEYS, or auth.keys in preamp.yaml";

/** A server whose requests come from its host. */
export interface AgentServer {
  readonly fetch: Preamp["fetch"];
  /** Continues the runs of processes that ended; resolves when they have ended, after 58 s at the latest. */
  resume(): Promise<void>;
  /** Ends streams and runs, and flushes the log. */
  stop(): Promise<void>;
}

/** What a server is opened from. */
export interface AgentServerDeps {
  settings(): Promise<Settings>;
  /** Returns a variable. */
  env(name: string): string | undefined;
  /** Whether `DATABASE_URL` and its like name the store where the settings do not, also beside a host. */
  attaches: boolean;
}

/**
 * Creates the server. It logs JSON lines to stderr, on a host to the console. With invalid settings it
 * answers 500 and logs the reason.
 */
export async function openAgentServer(deps: AgentServerDeps): Promise<AgentServer> {
  const { env } = deps;
  const hosted = isHosted(env);
  const output = hosted ? consoleOutput() : { write: writeToStderr };
  let settings: Settings;
  try {
    settings = await deps.settings();
    const store = hosted || deps.attaches ? attachedStore(settings, { env }) : settings.store;
    settings = { ...settings, store: store === "auto" && hosted ? "memory" : store };
  } catch (error) {
    return unusable(output, error);
  }
  const secrets = processRedactor(settings.api_keys, env);
  const log = createLog(JSON_LINES, output, secrets);
  logStrayOutput(log);
  const plans = new NamedPlans(settings.plans ? [settings.plans] : []);
  const options = await serverOptions(settings, plans, secrets, log);
  if (settings.policy.auth.keys.length === 0) log.note("warning", "settings", { message: NO_KEYS });
  const background = !hosted || options.store !== undefined;
  const own_beat = settings.policy.listen.heartbeat_s > 0;
  const beats = hosted && !own_beat ? { heartbeat_ms: HEARTBEAT_MS } : {};
  const preamp = createPreamp({ ...options, background, ...beats });
  const { isolation } = await preamp.runtime.ready();
  log.note("info", "serving", { store: options.store?.kind ?? "memory", background, isolation });
  await preamp.runtime.start();
  return {
    fetch: preamp.fetch,
    resume: () => preamp.runtime.resume(RESUME_MS),
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
function unusable(output: { write(text: string): void }, error: unknown): AgentServer {
  const log = createLog(JSON_LINES, output);
  const failure = new Error(`Cannot use the settings: ${errorMessage(error)}`, { cause: error });
  const { fetch } = createApp({
    runtime: { ...createRuntime(), ready: () => Promise.reject(failure) },
    authenticate() {
      throw failure;
    },
    hosts: "any",
    log: (record) => log.request(record),
  });
  return { fetch, resume: () => Promise.reject(failure), stop: () => Promise.resolve(log.flush()) };
}

const encoder = new TextEncoder();

/** Writes to stderr; a line that it cannot take is lost, because there is no other output. */
function writeToStderr(text: string): void {
  const bytes = encoder.encode(text);
  for (let written = 0; written < bytes.length;) written += Deno.stderr.writeSync(bytes.subarray(written));
}

/**
 * Returns the console as an output of lines: Deno Deploy keeps what is written to the console. The methods
 * are those of now, so that a log which receives the console's output later does not receive its own lines.
 */
function consoleOutput(): { write(text: string): void } {
  const write = console.log.bind(console);
  return {
    write(text) {
      for (const line of text.split("\n")) if (line !== "") write(line);
    },
  };
}
