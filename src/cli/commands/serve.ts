/** `preamp serve`: serves the HTTP API. By default it listens on loopback and requires a key. */
import { generateKey } from "../../policy/api_keys.ts";
import { processRedactor } from "../../policy/redact.ts";
import { errorMessage } from "../../sdk/errors.ts";
import type { Backend } from "../../server/mod.ts";
import { systemClock } from "../../process/system_clock.ts";
import { describeError } from "../../server/access_log.ts";
import { createHttpApp, type HttpApp } from "../../server/http_app.ts";
import { serve } from "../../server/net/listen.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import type { BackendOptions } from "../server_backend.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { createLog, type Log, type LogFormat } from "../log.ts";
import { policyFlags, readSettings, settingFlags, type Settings, settingsHelp } from "../settings.ts";
import { logNodeWarnings, logStrayOutput } from "../stray_output.ts";
import type { StartupBanner } from "../terminal/startup_banner.ts";

const OWN_FLAGS: readonly Flag[] = [
  ...settingFlags(["host", "port", "plans", "store", "frozen"]),
  { name: "no-auth", help: "accept requests without a key; on loopback only" },
  {
    name: "log-format",
    value: "json|pretty",
    help: "format of the log on stderr, default pretty on a terminal, else json",
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
 * Delay in milliseconds after listening before the banner is printed and the runtime is preloaded, so that neither
 * delays start-up or the first request.
 */
const PRELOAD_DELAY_MS = 50;

/** Milliseconds from the first signal to the end of the process. It must end within 5 s. */
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

/** A server whose routes may not be loaded yet. */
interface RunningServer {
  readonly app: HttpApp;
  /** Ends all runs and closes the store. */
  close(): Promise<void>;
}

/**
 * Creates a server that answers `/healthz` before its routes and the runtime are loaded, which take several times as
 * long as the rest of the start. Other requests, `/readyz` included, wait for them.
 */
function open(options: BackendOptions): RunningServer {
  const { policy } = options.settings;
  let backend: Backend | undefined;
  const app = createHttpApp({
    // A server with configured keys accepts every host name, because DNS rebinding does not supply a key and a foreign
    // Origin is refused anyway. Other servers accept only the names of loopback.
    hosts: options.auth.kind === "configured" ? "any" : [policy.listen.host],
    cors: policy.cors,
    log: (record) => options.log.request(record),
    async routes() {
      const { openBackend } = await import("../server_backend.ts");
      await logNodeWarnings(options.log);
      return (backend = openBackend(options)).routes;
    },
  });
  return { app, close: async () => await backend?.close() };
}

async function listen(
  { app, close }: RunningServer,
  { policy, plans }: Settings,
  auth: StartupBanner["auth"],
  io: Io,
  log: Log,
  signal: AbortSignal,
): Promise<number> {
  const { host, port } = policy.listen;
  const printBanner = async (url: string) => {
    const [{ NamedPlans }, { startupBanner }] = await Promise.all([
      import("../../app/named_plans.ts"),
      import("../terminal/startup_banner.ts"),
    ]);
    const demo = await new NamedPlans(plans).find("default") === null;
    io.out.write(startupBanner({ url, auth, demo }));
  };
  try {
    const served = serve({
      app,
      host,
      port,
      signal,
      onError: (error) => log.note("error", "answer_failed", describeError(error)),
      onListen({ url }) {
        io.out.write(`${url}\n`);
        log.note("info", "listening", { url, store: policy.store, auth: auth.kind });
        systemClock().tick(PRELOAD_DELAY_MS, () => {
          printBanner(url).catch((error) =>
            log.note("warning", "greeting", { message: errorMessage(error) })
          );
          app.open().catch((error) => {
            log.flush();
            io.err.write(`error: Cannot serve: the routes could not be loaded: ${errorMessage(error)}\n`);
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

/** Resolves when a stopped process must end. */
function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => setTimeout(resolve, END_MS), { once: true })
  );
}

function reasonOf(error: unknown): string {
  if (error instanceof Deno.errors.AddrInUse) {
    return "the port is already in use; stop the other process or pass --port (0 picks a free port)";
  }
  if (error instanceof Deno.errors.AddrNotAvailable) return "this machine does not have this address";
  if (error instanceof Deno.errors.PermissionDenied) {
    return "this user may not use the port; choose one above 1023";
  }
  if (error instanceof Deno.errors.NotCapable) {
    return "this process may not listen; start it with --allow-net";
  }
  return errorMessage(error);
}

function logFormat(args: Arguments, io: Io): LogFormat {
  const format = args.value("log-format") ?? (io.env("PREAMP_LOG_FORMAT") || undefined);
  if (format === undefined) return io.err.terminal ? "pretty" : "json";
  if (format === "json" || format === "pretty") return format;
  const name = args.has("log-format") ? "--log-format" : "PREAMP_LOG_FORMAT";
  throw new UsageError(`Cannot use ${name}: must be json or pretty, but is ${JSON.stringify(format)}`);
}

/** Returns how callers authenticate. @throws {UsageError} for a server without keys beyond loopback. */
function authOf(args: Arguments, io: Io, { policy }: Settings): StartupBanner["auth"] {
  const { host } = policy.listen;
  const no_auth = args.has("no-auth") || flagVariable(io, "PREAMP_NO_AUTH");
  if (no_auth) {
    if (isLoopback(host)) return { kind: "none" };
    throw new UsageError(
      `Cannot serve without keys on ${host}: --no-auth is accepted on loopback only (127.0.0.1, ::1, localhost)`,
    );
  }
  if (policy.auth.keys.length > 0) return { kind: "configured" };
  if (isLoopback(host)) return { kind: "generated", key: generateKey() };
  throw new UsageError(
    `Cannot serve on ${host}: an address beyond loopback needs keys; set PREAMP_API_KEYS, or auth.keys in preamp.yaml`,
  );
}

function flagVariable(io: Io, name: string): boolean {
  const value = io.env(name) ?? "";
  if (value === "" || value === "0" || value === "false") return false;
  if (value === "1" || value === "true") return true;
  throw new UsageError(`Cannot use ${name}: must be 1 or 0, but is ${JSON.stringify(value)}`);
}

/** Returns whether an address is reachable from this machine only. */
function isLoopback(host: string): boolean {
  if (host === "localhost" || host === "::1" || host === "[::1]") return true;
  const parts = host.split(".");
  return parts.length === 4 && parts[0] === "127" &&
    parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256);
}

/** Returns a signal that aborts on SIGINT or SIGTERM. A second one ends the process. */
export function stopSignal(io: Io, onFirst: () => void): AbortSignal {
  const stop = new AbortController();
  io.onStop(() => {
    if (stop.signal.aborted) io.exit(EXIT.interrupted);
    onFirst();
    stop.abort();
  });
  return stop.signal;
}
