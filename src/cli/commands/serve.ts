/** `preamp serve`: the HTTP API on a socket. Safe by default: loopback and a key, unless told otherwise (trust.md). */
import { generateKey } from "../../policy/api_keys.ts";
import { processRedactor } from "../../policy/redact.ts";
import { errorMessage } from "../../sdk/errors.ts";
import type { Backend } from "../../server/mod.ts";
import { systemClock } from "../../process/system_clock.ts";
import { describeError } from "../../server/access_log.ts";
import { createHttpApp, type HttpApp } from "../../server/http_app.ts";
import { serve } from "../../server/net/listen.ts";
import type { Arguments, Flag } from "../arguments.ts";
import type { BackendParts } from "../server_backend.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../terminal/io.ts";
import { createLog, type Log, type LogFormat } from "../log.ts";
import { policyFlags, readSettings, settingFlags, type Settings, settingsHelp } from "../settings.ts";
import { logNodeWarnings, logStrayOutput } from "../stray_output.ts";
import { stopSignal } from "../shutdown_signal.ts";
import { UsageError } from "../usage_error.ts";
import type { Welcome } from "../terminal/startup_banner.ts";

const OWN_FLAGS: readonly Flag[] = [
  ...settingFlags(["host", "port", "plans", "store", "frozen"]),
  { name: "no-auth", help: "take every request without a key; on loopback only" },
  {
    name: "log-format",
    value: "json|pretty",
    help: "form of the log on stderr, default pretty on a terminal",
  },
];

/** The command. */
export const command: Command = {
  usage: "serve [flags]",
  summary: "Serves the HTTP API. The first line on stdout is the base URL; the log goes to stderr.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: settingsHelp,
  run,
};

/**
 * Milliseconds of listening after which a person is greeted, and everything is loaded, asked for or not: the first run should not
 * wait for it, and whoever started the server not for either.
 */
const SETTLE_MS = 50;

/** Milliseconds between the first signal and the end of the process, whatever is left (http.md: within 5 s). */
const END_MS = 4_800;

async function run(args: Arguments, io: Io): Promise<number> {
  if (args.rest.length > 0) {
    throw new UsageError(`Cannot serve ${JSON.stringify(args.rest[0])}: serve takes flags only`);
  }
  const settings = await readSettings(args, io);
  const format = logFormat(args, io);
  const auth = authOf(args, io, settings);
  const secrets = processRedactor([
    ...settings.api_keys,
    ...(auth.kind === "generated" ? [auth.key] : []),
  ]);
  const log = createLog(format, io.err, secrets);
  for (const message of settings.warnings) log.note("warning", "settings", { message });
  const server = open({ settings, auth, secrets, log });
  const signal = stopSignal(io, () => log.note("info", "stopping", {}));
  logStrayOutput(log);
  return await listen(server, settings, auth, io, log, signal);
}

/** What answers, while most of it is not there yet. */
interface RunningServer {
  readonly pass: HttpApp;
  /** Ends all runs and closes the store. */
  close(): Promise<void>;
}

/**
 * Returns a server that is up, and says so, before its routes and the runtime are loaded: they take several times as long as the
 * rest of the start. Whatever needs them waits for them, so that `/readyz` tells the truth.
 */
function open(parts: BackendParts): RunningServer {
  const { policy } = parts.settings;
  let backend: Backend | undefined;
  const pass = createHttpApp({
    // With keys of its own a server may stand behind any name: a rebound one brings no key, and a foreign Origin is refused
    // all the same. Without, only loopback's names are its own (trust.md).
    hosts: parts.auth.kind === "configured" ? "any" : [policy.listen.host],
    cors: policy.cors,
    log: (record) => parts.log.request(record),
    async routes() {
      const { openBackend } = await import("../server_backend.ts");
      await logNodeWarnings(parts.log);
      return (backend = openBackend(parts)).routes;
    },
  });
  return { pass, close: async () => await backend?.close() };
}

async function listen(
  { pass, close }: RunningServer,
  { policy, plans }: Settings,
  auth: Welcome["auth"],
  io: Io,
  log: Log,
  signal: AbortSignal,
): Promise<number> {
  const { host, port } = policy.listen;
  const greet = async (url: string) => {
    const [{ NamedPlans }, { welcomeText }] = await Promise.all([
      import("../../app/named_plans.ts"),
      import("../terminal/startup_banner.ts"),
    ]);
    const demo = await new NamedPlans(plans).find("default") === null;
    io.out.write(welcomeText({ url, auth, demo }));
  };
  try {
    const served = serve({
      app: pass,
      host,
      port,
      signal,
      onError: (error) => log.note("error", "answer_failed", describeError(error)),
      onListen({ url }) {
        io.out.write(`${url}\n`);
        log.note("info", "listening", { url, store: policy.store, auth: auth.kind });
        systemClock().tick(SETTLE_MS, () => {
          greet(url).catch((error) => log.note("warning", "greeting", { message: errorMessage(error) }));
          pass.open().catch((error) => {
            log.flush();
            io.err.write(`error: Cannot serve: the program could not be loaded: ${errorMessage(error)}\n`);
            io.exit(EXIT.failed);
          });
        });
      },
    });
    await Promise.race([served.then(close), ended(signal)]);
    log.note("info", "stopped", {});
    return EXIT.done;
  } catch (error) {
    io.err.write(`error: Cannot listen on ${host}:${port}: ${reasonOf(error)}\n`);
    return EXIT.failed;
  }
}

/** Resolves when a stopped process has no more time. */
function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => setTimeout(resolve, END_MS), { once: true })
  );
}

function reasonOf(error: unknown): string {
  if (error instanceof Deno.errors.AddrInUse) {
    return "the port is in use: stop who has it, or choose another with --port (0: any free one)";
  }
  if (error instanceof Deno.errors.AddrNotAvailable) return "this machine has no such address";
  if (error instanceof Deno.errors.PermissionDenied) {
    return "this user may not have the port: choose one from 1024";
  }
  if (error instanceof Deno.errors.NotCapable) {
    return "this process may not listen: start it with --allow-net";
  }
  return errorMessage(error);
}

function logFormat(args: Arguments, io: Io): LogFormat {
  const given = args.value("log-format") ?? (io.env("PREAMP_LOG_FORMAT") || undefined);
  if (given === undefined) return io.err.terminal ? "pretty" : "json";
  if (given === "json" || given === "pretty") return given;
  const name = args.has("log-format") ? "--log-format" : "PREAMP_LOG_FORMAT";
  throw new UsageError(`Cannot use ${name}: must be json or pretty: received ${JSON.stringify(given)}`);
}

/** Decides how callers show who they are. @throws {UsageError} for an open door beyond loopback (trust.md). */
function authOf(args: Arguments, io: Io, { policy }: Settings): Welcome["auth"] {
  const { host } = policy.listen;
  const no_auth = args.has("no-auth") || flagVariable(io, "PREAMP_NO_AUTH");
  if (no_auth) {
    if (isLoopback(host)) return { kind: "none" };
    throw new UsageError(
      `Cannot serve without keys on ${host}: --no-auth is for loopback only (127.0.0.1, ::1, localhost)`,
    );
  }
  if (policy.auth.keys.length > 0) return { kind: "configured" };
  if (isLoopback(host)) return { kind: "generated", key: generateKey() };
  throw new UsageError(
    `Cannot serve on ${host}: an address beyond loopback needs keys: set PREAMP_API_KEYS, or auth.keys in preamp.yaml`,
  );
}

function flagVariable(io: Io, name: string): boolean {
  const value = io.env(name) ?? "";
  if (value === "" || value === "0" || value === "false") return false;
  if (value === "1" || value === "true") return true;
  throw new UsageError(`Cannot use ${name}: must be 1 or 0: received ${JSON.stringify(value)}`);
}

/** Whether nobody but this machine reaches an address. */
function isLoopback(host: string): boolean {
  if (host === "localhost" || host === "::1" || host === "[::1]") return true;
  const parts = host.split(".");
  return parts.length === 4 && parts[0] === "127" &&
    parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256);
}
