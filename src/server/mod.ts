/**
 * Preamp as a library: a runtime that runs plans of the program, with its HTTP API as one `fetch` function.
 *
 * ```ts
 * import { createPreamp } from "preamp/server";
 *
 * await using preamp = createPreamp({ authenticate: null });
 * const run = await preamp.run({ prompt: "What is 6 × 7?" });
 * console.log(await run.text);
 * const response = await preamp.fetch(new Request("http://localhost/healthz"));
 * console.assert(response.status === 200);
 * ```
 */
import { createRuntime, type RuntimeConfig } from "../app/runtime.ts";
import type { InProcessModule } from "../app/module_table.ts";
import type { Runtime } from "../app/types.ts";
import { KeyRing } from "../policy/api_keys.ts";
import { policyFromData } from "../policy/parse_policy.ts";
import { documentLimits } from "../policy/limits.ts";
import { type Policy, policyFor } from "../policy/policy.ts";
import { basePathIn } from "../policy/setting_types.ts";
import { defaultPolicy } from "../policy/settings.ts";
import { readVariable } from "../process/environment.ts";
import { processRedactor, Redactor } from "../policy/redact.ts";
import type { Caller } from "../runs/types.ts";
import { LIBRARY, type LibraryRequest, type LibraryRun, startRun } from "./library_run.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { OpenTelemetry } from "../telemetry/open_telemetry.ts";
import { type App, type AppOptions, createApp } from "./app.ts";
import { checkOptions } from "./check_options.ts";
import { systemClock } from "../process/system_clock.ts";
import { Page } from "./page/page.ts";
import { createDefaultLog, type Log } from "./middleware/access_log.ts";
import type { Hosts } from "./middleware/check_host.ts";
import type { BoundsOf, CallerBounds } from "./middleware/limit_caller.ts";
import { type Authenticate, authenticateWith } from "./middleware/require_key.ts";

export { type App, type AppOptions, createApp } from "./app.ts";
export type { ConnectionInfo } from "./context.ts";
export { formatLogRecord, type Log, type LogRecord } from "./middleware/access_log.ts";
export type { Hosts } from "./middleware/check_host.ts";
export type { CallerBounds } from "./middleware/limit_caller.ts";
export { ANONYMOUS, type Authenticate, authenticateWith } from "./middleware/require_key.ts";
export { serve, type ServeOptions } from "./net/listen.ts";
export { openStore } from "../store/open.ts";
export type { Store } from "../store/store.ts";
export { defaultPolicy, policyFromData };
export { LIBRARY, type LibraryRequest, type LibraryRun };
export type { Caller, InProcessModule, Policy, Runtime, RuntimeConfig };

/** Options of {@link createPreamp}: the runtime's configuration and those of the HTTP API. */
export interface PreampOptions
  extends
    Omit<RuntimeConfig, "log" | "metrics" | "tracing">,
    Pick<AppOptions, "heartbeat_ms" | "background"> {
  /**
   * Finds the caller of a key. Default: the policy's `auth.keys`; without keys, only open routes answer.
   * Null: keys are not checked.
   */
  authenticate?: Authenticate | null;
  /** Host names of the server. Default `any`, since the embedding program knows its address. */
  hosts?: Hosts;
  /**
   * Origins whose pages may send requests and read responses. Default: the `cors` of the policy, by default
   * empty.
   */
  cors?: { readonly origins: readonly string[] };
  /**
   * Path prefix of the API, such as `/agents`, for `Location`, `events_url` and the OpenAPI document.
   * Requests without the prefix are answered too, since Hono's `mount()` removes it. Default: the policy's
   * `listen.base_path`.
   */
  basePath?: string;
  /** Whether browsers get the page at `/`. Default: the policy's `page`. */
  page?: boolean;
  /**
   * Receives one record for each request. Default: failed requests are logged to stderr as JSON. Null: no
   * log.
   */
  log?: Log | null;
  /**
   * Receives log events of the runtime. Default: warnings and errors are logged to stderr as JSON. Null: no
   * log.
   */
  runtime_log?: NonNullable<RuntimeConfig["log"]> | null;
}

/** A server without a socket, to mount in another server or to call directly. */
export interface Preamp extends App, AsyncDisposable {
  /** The runtime that executes the requests. */
  readonly runtime: Runtime;
  /**
   * Starts a run. Resolves once its modules are mounted.
   * @throws {PreampError} any code that a refused request has, see src/docs/http.md#errors; nothing is stored
   * then.
   */
  run(request: LibraryRequest): Promise<LibraryRun>;
  /**
   * Ends all runs and closes the store. Runs of a crashed server, which it continued, are left to the other
   * servers.
   */
  close(): Promise<void>;
}

/**
 * Creates a runtime with its HTTP API. Modules and store are loaded on the first request.
 *
 * @throws {TypeError} for an option that is not of its type.
 */
export function createPreamp(options: PreampOptions = {}): Preamp {
  checkOptions(options);
  const { authenticate, hosts = "any", ...config } = options;
  const policy = config.policy ?? defaultPolicy();
  const { base_path, heartbeat_s } = policy.listen;
  const basePath = checkBasePath(config.basePath ?? base_path);
  const heartbeat_ms = config.heartbeat_ms ?? (heartbeat_s > 0 ? heartbeat_s * 1000 : undefined);
  const { secrets: given = [], env = readVariable } = config;
  const secrets = given instanceof Redactor ? given : processRedactor(given, env);
  const defaults = createDefaultLog(secrets);
  const { cors = policy.cors, log = defaults.request, runtime_log = defaults.runtime } = config;
  const from_files = import.meta.url.startsWith("file:"); // a registry has no sources of them
  const metrics = new Metrics();
  const tracing = new OpenTelemetry(policy.tracing);
  const runtime = createRuntime({
    ...config,
    policy,
    basePath,
    secrets,
    metrics,
    tracing,
    log: runtime_log ?? (() => {}),
  });
  const app = createApp({
    runtime,
    authenticate: authenticate === undefined ? authenticateWith(new KeyRing(policy.auth.keys)) : authenticate,
    hosts,
    cors,
    basePath,
    page: from_files && (config.page ?? policy.page) ? browserPage("page", config.home) : null,
    docs: from_files ? browserPage("docs", config.home) : null,
    bounds: callerBounds(policy),
    metrics,
    tracing,
    open_metrics: policy.metrics.open,
    trusted_proxies: policy.listen.trusted_proxies,
    ...(heartbeat_ms === undefined ? {} : { heartbeat_ms }),
    ...(config.background === undefined ? {} : { background: config.background }),
    ...(log ? { log } : {}),
  });
  const close = () => runtime.close();
  const run = (request: LibraryRequest) => startRun(runtime.runs, request);
  return { ...app, runtime, run, close, [Symbol.asyncDispose]: close };
}

/** Returns a page that is built on the first request and kept in the folder of the cache. */
function browserPage(name: "page" | "docs", home: URL | null | undefined): Page {
  return new Page({
    name,
    cache: home ? new URL("cache/", home) : null,
    bundle: async (sources) => (await import("../app/page_bundle.ts")).bundleScript(sources),
    clock: systemClock(),
  });
}

/** Returns the path prefix without a trailing slash. @throws {TypeError} if it is not a path. */
function checkBasePath(path: string): string {
  const prefix = basePathIn(path);
  if (prefix !== undefined) return prefix;
  throw new TypeError(
    `Cannot use basePath ${
      JSON.stringify(path)
    }: it must consist of names that each begin with a slash, such as "/agents"`,
  );
}

/** Returns a function that finds the limits of a caller in the policy, or in the own policy of its key. */
export function callerBounds(policy: Policy): BoundsOf {
  const known = new Map<string | undefined, CallerBounds>();

  return function boundsOf({ policy: name }) {
    let bounds = known.get(name);
    if (!bounds) {
      const own = policyFor(policy, name); // names of policies, so the map stays small
      const { max_body_bytes, max_page_limit, max_streams, max_streams_per_key } = own.limits;
      const streams = { max_streams, max_streams_per_key };
      bounds = { ...own.rates, ...streams, max_body_bytes, max_page_limit, plan: documentLimits(own) };
      known.set(name, bounds);
    }
    return bounds;
  };
}
