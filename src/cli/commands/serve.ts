/** `preamp serve`: serves the HTTP API. By default it listens on loopback and requires a key. */
import { defaultPolicy } from "../../policy/settings.ts";
import { processRedactor } from "../../policy/redact.ts";
import { formatDetail } from "../../plan/check/findings.ts";
import { mayNotRead } from "../../app/home_report.ts";
import { NamedPlans, type PlanFile } from "../../app/named_plans.ts";
import type { Runtime } from "../../app/types.ts";
import { addressKind } from "../../sdk/http/ip_address.ts";
import { errorMessage } from "../../sdk/errors.ts";
import { KeyRing } from "../../policy/api_keys.ts";
import { describeError } from "../../server/log_line.ts";
import { authenticateWith, createPreamp, type Preamp, serve } from "../../server/mod.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import { readCoderPlan } from "../chat/coder_plan.ts";
import type { Command } from "../commands.ts";
import { TERMINAL } from "../terminal_caller.ts";
import { EXIT } from "../errors.ts";
import { createLog, JSON_LINES, type Log, logStrayOutput } from "../../deploy/log.ts";
import { serverOptions } from "../../deploy/server_options.ts";
import { prettyLines } from "../pretty_log.ts";
import { readSettings, type Settings, settingsHelp, withSettings } from "../settings.ts";
import { type OwnKey, ownKey } from "../own_key.ts";
import { flagVariable, readInput } from "../../settings/paths.ts";
import type { Io } from "../terminal/io.ts";

/** Formats of the log. */
const LOG_FORMATS = ["json", "pretty"] as const;

export const command: Command = {
  usage: "serve [flags]",
  summary: "Serves the HTTP API. The first line on stdout is the base URL; the log goes to stderr.",
  flags: withSettings([
    {
      name: "plan",
      short: "p",
      value: "FILE",
      help: "plan or bundle of requests that name none, read now: the plan `default`",
    },
    { name: "no-auth", help: "accept requests without a key; on loopback only" },
    { name: "open", help: "open the page in your browser, logged in" },
    { name: "new-key", help: "replace your own key, which is kept in $PREAMP_HOME" },
    {
      name: "log-format",
      choices: LOG_FORMATS,
      help: "format of the log on stderr, default pretty on a terminal, else json",
    },
  ], ["host", "port", "plans", "model", "store", "frozen", "behind-proxy", "base-path"]),
  details: () => settingsHelp(),
  max_arguments: 0,
  run,
};

/** Milliseconds from the first signal to the end of the process. It must end within 5 s. */
const END_MS = 4_800;

async function run(args: Arguments, io: Io): Promise<number> {
  const settings = await readSettings(args, io, { serves: true, sources: true, plans: "all" });
  const format = logFormat(args, io);
  const auth = await authOf(args, io, settings);
  const key = auth.kind === "generated" ? auth.key : undefined;
  const own = key === undefined ? [] : [key];
  const secrets = processRedactor([...settings.api_keys, ...own], io.env);
  const log = createLog(format === "json" ? JSON_LINES : prettyLines(io.err), io.err, secrets);
  if (auth.kind === "generated" && auth.not_kept !== null) {
    log.note("warning", "key", { message: `Your key is for this start only: ${auth.not_kept}` });
  }
  const { policy } = settings;
  const own_server = auth.kind === "generated"; // its only caller is the person who has started it
  const first = await defaultPlan(args, io);
  const plans = own_server
    ? new NamedPlans(settings.plan_folders, await coderPlan(), first)
    : new NamedPlans(settings.plans ? [settings.plans] : [], [], first);
  const used = own_server ? { ...settings, workspace: settings.workspace ?? io.cwd } : settings;
  const [options] = await Promise.all([
    serverOptions(used, plans, secrets, log),
    import("../../app/create_services.ts"), // loaded while the store is opened by its worker
  ]);
  const preamp = createPreamp({
    ...options,
    authenticate: auth.kind === "none" ? null : authenticateWith(new KeyRing(policy.auth.keys, key)),
    // A server with configured keys accepts every host name, because DNS rebinding does not supply a key and
    // a foreign Origin is refused anyway. Other servers accept only the names of loopback.
    hosts: auth.kind === "configured" ? "any" : [policy.listen.host],
  });
  const signal = stopSignal(io, () => log.note("info", "stopping", {}));
  logStrayOutput(log);
  const facts = { auth, plans, store: options.store?.kind ?? "memory", opens: args.has("open") };
  return await listen(preamp, settings, facts, io, log, signal);
}

/** Resolves to the plan of `preamp chat` as a named plan; none if this process may not read its own files. */
async function coderPlan(): Promise<PlanFile[]> {
  try {
    const { text, url } = await readCoderPlan();
    return [{ name: "coder", text, base_url: url.href }];
  } catch (error) {
    if (mayNotRead(error)) return [];
    throw error;
  }
}

async function listen(
  preamp: Preamp,
  { policy, plans: folder, home }: Settings,
  { auth, plans, store, opens }: {
    auth: StartupBanner["auth"];
    plans: NamedPlans;
    store: string;
    opens: boolean;
  },
  io: Io,
  log: Log,
  signal: AbortSignal,
): Promise<number> {
  const { host, port } = policy.listen;
  await checkPlansFolder(policy.plans, folder?.url ?? null, log);
  const banner = { auth, demo: await isDemo(plans, log), page: policy.page };
  let closeBrowser: () => Promise<void> = () => Promise.resolve();
  const open = async (address: string) => {
    try {
      if (home === null) throw new Error("there is no home folder");
      const { openBrowser } = await import("../open_browser.ts");
      closeBrowser = await openBrowser(address, home, io);
    } catch (error) {
      log.note("warning", "browser", { message: `Cannot open a browser: ${errorMessage(error)}` });
    }
  };
  try {
    const served = serve({
      app: preamp,
      host,
      port,
      signal,
      onError: (error) => log.note("error", "answer_failed", describeError(error)),
      onListen({ url }) {
        io.out.write(`${url}\n${startupBanner({ url, ...banner })}`);
        const facts = { url, store, auth: auth.kind };
        log.note("info", "listening", facts);
        // a server without requests, such as one in reserve, continues the runs of others too
        preamp.runtime.start().catch((error) => log.note("error", "recovery_failed", describeError(error)));
        if (opens) void open(pageAddress({ url, auth }));
        void warnOfBrokenPlans(preamp.runtime.plans, plans, log);
      },
    });
    await Promise.race([served.then(preamp.close), ended(signal)]);
    log.note("info", "stopped", {});
    return EXIT.done;
  } catch (error) {
    io.err.write(`error: Cannot listen on ${host}:${port}: ${reasonOf(error)}\n`);
    return EXIT.failed;
  } finally {
    await closeBrowser();
  }
}

/** Warns when a folder of plans that was named does not exist, or is a file. */
async function checkPlansFolder(name: string, folder: URL | null, log: Log): Promise<void> {
  if (folder === null || name === defaultPolicy().plans) return;
  const found = await Deno.stat(folder).catch(() => null);
  if (found?.isDirectory) return;
  const message = `Cannot find the folder of plans ${
    JSON.stringify(name)
  }: until it exists, no plan has a name`;
  log.note("warning", "plans", { message });
}

/** Resolves to the plan of `-p`, by the name of requests without a plan. @throws {UsageError} */
async function defaultPlan(args: Arguments, io: Io): Promise<PlanFile[]> {
  const file = args.value("plan");
  if (file === undefined) return [];
  const { text, url } = await readInput(file, io);
  return [{ name: "default", text, base_url: url.href }];
}

/** Warns of each named plan that cannot run, after the server listens. */
async function warnOfBrokenPlans(plans: Runtime["plans"], named: NamedPlans, log: Log): Promise<void> {
  const names = await named.names().catch(() => []); // isDemo has reported it
  for (const name of names) {
    try {
      const { errors: [first] } = await plans.check({ plan_ref: name }, TERMINAL);
      if (first) log.note("warning", "plan_invalid", { plan: name, message: formatDetail(first, name) });
    } catch (error) {
      log.note("warning", "plan_invalid", { plan: name, ...describeError(error) });
    }
  }
}

/** Returns whether a request without a plan gets the built-in demo: whether no plan is named `default`. */
async function isDemo(named: NamedPlans, log: Log): Promise<boolean> {
  try {
    return await named.find("default") === null;
  } catch (error) {
    log.note("warning", "plans", { message: errorMessage(error) });
    return false;
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

function logFormat(args: Arguments, io: Io): typeof LOG_FORMATS[number] {
  const standard = io.err.terminal ? "pretty" : "json";
  const written = args.value("log-format") ?? (io.env("PREAMP_LOG_FORMAT") || standard);
  const format = LOG_FORMATS.find((name) => name === written);
  if (format) return format;
  const fact = `must be ${LOG_FORMATS.join(" or ")}, but is ${JSON.stringify(written)}`;
  throw new UsageError(`Cannot use PREAMP_LOG_FORMAT: ${fact}`); // the parser has checked the flag
}

/** Returns how callers authenticate. @throws {UsageError} for a server without keys beyond loopback. */
async function authOf(args: Arguments, io: Io, { policy, home }: Settings): Promise<StartupBanner["auth"]> {
  const { host } = policy.listen;
  const renews = args.has("new-key");
  const no_auth = args.has("no-auth") || flagVariable(io, "PREAMP_NO_AUTH");
  if (renews && (no_auth || policy.auth.keys.length > 0)) {
    throw new UsageError("Cannot use --new-key: this server does not use your own key");
  }
  if (no_auth) {
    if (isLoopback(host)) return { kind: "none" };
    throw new UsageError(
      `Cannot serve without keys on ${host}: --no-auth is accepted on loopback only (127.0.0.1, ::1, localhost)`,
    );
  }
  if (policy.auth.keys.length > 0) return { kind: "configured" };
  if (isLoopback(host)) return { kind: "generated", ...await ownKey(home, renews) };
  throw new UsageError(
    `Cannot serve on ${host}: an address beyond loopback needs keys; set PREAMP_API_KEYS, or auth.keys in preamp.yaml`,
  );
}

/** Returns whether an address is reachable from this machine only. */
function isLoopback(host: string): boolean {
  return host === "localhost" || addressKind(host) === "loopback";
}

/** Returns a signal that aborts on SIGINT or SIGTERM. A second one ends the process. */
function stopSignal(io: Io, onFirst: () => void): AbortSignal {
  const stop = new AbortController();
  io.onStop(() => {
    if (stop.signal.aborted) io.exit(EXIT.interrupted);
    onFirst();
    stop.abort();
  });
  return stop.signal;
}

/** Options of {@link startupBanner}. */
interface StartupBanner {
  /** Base URL. */
  url: string;
  /**
   * Authentication: the `generated` key of the person who has started the server is printed; `configured`
   * keys are never printed; `none` needs no header.
   */
  auth: { kind: "generated" } & OwnKey | { kind: "configured" } | { kind: "none" };
  /** Whether a request without a plan gets the built-in demo, with its tool call and its approval. */
  demo: boolean;
  /** Whether browsers get the page. */
  page: boolean;
}

const PROMPT = "What is 6 × 7?";

/**
 * Returns the text that follows the first line, the base URL: where the page is, and an example request to
 * paste into a shell.
 */
function startupBanner({ page, ...banner }: StartupBanner): string {
  return page ? `\n${pageHint(banner)}\n${exampleOf(banner)}` : exampleOf(banner);
}

function pageHint(banner: Pick<StartupBanner, "url" | "auth">): string {
  const address = pageAddress(banner);
  if (banner.auth.kind === "configured") {
    return `# Open ${address} in a browser, and enter a key of this server`;
  }
  return `# Open ${address} in a browser.`;
}

/** Returns the address of the page. The fragment logs in, and browsers send it to no server. */
function pageAddress({ url, auth }: Pick<StartupBanner, "url" | "auth">): string {
  return auth.kind === "generated" ? `${url}/#key=${auth.key}` : `${url}/`;
}

function exampleOf({ url, auth, demo }: Omit<StartupBanner, "page">): string {
  const key = auth.kind === "generated" ? auth.key : "$PREAMP_API_KEY";
  const header = auth.kind === "none" ? "" : ` \\\n  -H "Authorization: Bearer ${key}"`;
  const before = auth.kind === "configured" ? "# PREAMP_API_KEY is one of the keys of this server.\n" : "";
  const run = `curl -N ${url}/v1/runs${header} \\
  -H "Accept: text/event-stream" \\
  -H "Content-Type: application/json" \\
  -d '{"prompt": "${demo ? PROMPT : "Hello"}"}'`;
  if (!demo) return `\n# Run the plan "default" and watch its events:\n${before}${run}\n`;
  return `
# A run with a tool call that needs an approval. Paste this into another shell:
${before}${run}

# The run now waits for the approval. Allow the call from a third shell; the run continues in the second:
waiting=$(curl -s "${url}/v1/runs?status=awaiting_approval&limit=1"${header})
run=$(echo "$waiting" | grep -o 'run_[0-9A-Za-z]*' | head -n 1)
approval=$(echo "$waiting" | grep -o 'apr_[0-9A-Za-z]*' | head -n 1)
curl -s "${url}/v1/runs/$run/approvals/$approval"${header} \\
  -H "Content-Type: application/json" \\
  -d '{"decision": "allow"}'
`;
}
