/**
 * The server under `deno serve main.ts` and Deno Deploy, which choose the address. Settings come from
 * variables and `preamp.yaml`. Without configured keys every route that needs a key answers 401.
 *
 * A host that starts the program as Deno Deploy does may stop it whenever its responses are silent, and its
 * disk does not last: there, waiting responses send a byte every few seconds, runs are kept in the database
 * of the host, and the log goes to the console. See src/docs/deploy.md#deno-deploy.
 */
import { processRedactor } from "../policy/redact.ts";
import { errorMessage } from "../sdk/errors.ts";
import { NamedPlans } from "../app/named_plans.ts";
import { createRuntime } from "../app/runtime.ts";
import { createApp, createPreamp, type Preamp } from "../server/mod.ts";
import { readArguments, UsageError } from "./arguments.ts";
import { parseStoreName, type StoreName } from "../store/store.ts";
import { logSettings, serverOptions } from "./commands/serve.ts";
import { createLog, logStrayOutput } from "./log.ts";
import { readSettings, type Settings } from "./settings.ts";
import { type Io, isHosted, type Output, systemIo } from "./terminal/io.ts";

/** Milliseconds that runs have to stop on a shutdown signal. Deno Deploy allows 5 s for the whole process. */
const GRACE_MS = 3_000;

/**
 * Milliseconds between the bytes of a waiting response on a host that stops silent processes; Deno Deploy
 * waits for 5 s.
 */
const HEARTBEAT_MS = 3_000;
/**
 * Milliseconds that {@link EmbeddedServer.resume} waits for the runs that it continued: until the next call.
 */
const RESUME_MS = 58_000;

const NO_KEYS =
  "No API key is configured: routes that need a key answer 401; set PREAMP_API_KEYS, or auth.keys in preamp.yaml";

/** A server whose requests come from `deno serve` or Deno Deploy. */
export interface EmbeddedServer {
  readonly fetch: Preamp["fetch"];
  /** Continues the runs of processes that ended; resolves when they have ended, after 58 s at the latest. */
  resume(): Promise<void>;
  /** Ends streams and runs, and flushes the log. */
  stop(): Promise<void>;
}

/**
 * Creates the server. It logs JSON lines to stderr. With invalid settings it answers 500 and logs the reason.
 */
export async function openEmbedded(): Promise<EmbeddedServer> {
  const io = systemIo();
  const hosted = isHosted(io);
  const output = hosted ? consoleOutput() : io.err;
  let settings: Settings;
  try {
    settings = await readSettings(readArguments([], []), io, { sources: true, plans: "all", asks: false });
  } catch (error) {
    return unusable(output, error);
  }
  const secrets = processRedactor(settings.api_keys, io.env);
  const log = createLog("json", output, secrets);
  logStrayOutput(log);
  logSettings(settings, log);
  if (settings.policy.auth.keys.length === 0) log.note("warning", "settings", { message: NO_KEYS });
  const found = hosted ? { ...settings, store: hostedStore(settings, io) } : settings;
  const plans = new NamedPlans(settings.plans ? [settings.plans] : []);
  const options = await serverOptions(found, plans, secrets, log);
  const background = !hosted || options.store !== undefined;
  const preamp = createPreamp({ ...options, background, ...(hosted ? { heartbeat_ms: HEARTBEAT_MS } : {}) });
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
function unusable(output: Output, error: unknown): EmbeddedServer {
  const log = createLog("json", output);
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

/**
 * Returns the store of a hosted server. `auto` is the database of `DATABASE_URL`, else that of `PGHOST` and
 * its like, else memory: the disk of the host does not last.
 *
 * @throws {UsageError} for a `DATABASE_URL` that is no URL of Postgres.
 */
export function hostedStore(
  { store }: Pick<Settings, "store">,
  { env }: Pick<Io, "env">,
): StoreName | "memory" {
  if (store !== "auto") return store;
  const url = env("DATABASE_URL") || urlOfParts(env);
  if (url === null) return "memory";
  const name = parseStoreName(url);
  if (name?.kind === "postgres") return name;
  const variable = env("DATABASE_URL") ? "DATABASE_URL" : "PGHOST, PGPORT and PGDATABASE";
  throw new UsageError(`Cannot use ${variable}: must be postgres://USER:PASSWORD@HOST/DATABASE`);
}

/** Returns the URL of the database that Postgres' own variables name; null without `PGHOST`. */
function urlOfParts(env: Io["env"]): string | null {
  const part = (name: string) => encodeURIComponent(env(name) ?? "");
  if (part("PGHOST") === "") return null;
  const user = part("PGUSER") && `${part("PGUSER")}:${part("PGPASSWORD")}@`;
  const port = part("PGPORT") && `:${part("PGPORT")}`;
  const mode = part("PGSSLMODE") && `?sslmode=${part("PGSSLMODE")}`;
  return `postgres://${user}${env("PGHOST")}${port}/${part("PGDATABASE")}${mode}`;
}

/**
 * Returns the console as an output of lines: Deno Deploy keeps what is written to the console. The methods
 * are those of now, so that a log which receives the console's output later does not receive its own lines.
 */
function consoleOutput(): Output {
  const write = console.log.bind(console);
  return {
    terminal: false,
    color: false,
    columns: () => 80,
    write(text) {
      for (const line of text.split("\n")) if (line !== "") write(line);
    },
  };
}
