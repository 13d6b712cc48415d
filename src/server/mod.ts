/**
 * Preamp as a library: a runtime with its HTTP API as one `fetch` function.
 *
 * ```ts
 * import { createPreamp } from "preamp/server";
 *
 * const preamp = createPreamp({ authenticate: null });
 * const response = await preamp.fetch(new Request("http://localhost/healthz"));
 * console.assert(response.status === 200);
 * await preamp.close();
 * ```
 */
import { createRuntime, type RuntimeConfig } from "../app/runtime.ts";
import type { InProcessModule } from "../app/module_table.ts";
import type { Runtime } from "../app/types.ts";
import { KeyRing } from "../policy/api_keys.ts";
import { policyFromData } from "../policy/parse_policy.ts";
import { defaultPolicy, documentLimits, type Policy, policyFor } from "../policy/policy.ts";
import { processRedactor, Redactor } from "../policy/redact.ts";
import type { Caller } from "../runs/types.ts";
import { type Authenticate, authenticateWith, type Hosts } from "./auth.ts";
import { createDefaultLog, type Log } from "./access_log.ts";
import { type App, createHttpApp, type Routes } from "./http_app.ts";
import { type CallerBounds, createRoutes } from "./routes.ts";

export { ANONYMOUS, type Authenticate, authenticateWith, type Hosts } from "./auth.ts";
export type { App, ConnectionInfo } from "./http_app.ts";
export { type AppOptions, type CallerBounds, createApp } from "./routes.ts";
export { formatLogRecord, type Log, type LogRecord } from "./access_log.ts";
export { serve, type ServeOptions } from "./net/listen.ts";
export { defaultPolicy, policyFromData };
export type { Caller, InProcessModule, Policy, Runtime, RuntimeConfig };

/** Options of {@link createPreamp}: the runtime's configuration and those of the HTTP API. */
export interface PreampOptions extends Omit<RuntimeConfig, "log"> {
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
   * Requests without the prefix are answered too, since Hono's `mount()` removes it. Default none.
   */
  basePath?: string;
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
  /** Ends all runs and closes the store. */
  close(): Promise<void>;
}

/** Creates a runtime with its HTTP API. Modules and store are loaded on the first request. */
export function createPreamp(options: PreampOptions = {}): Preamp {
  const { hosts = "any", cors = options.policy?.cors, ...rest } = options;
  const basePath = checkBasePath(rest.basePath ?? "");
  const secrets = rest.secrets instanceof Redactor ? rest.secrets : processRedactor(rest.secrets ?? []);
  const defaults = createDefaultLog(secrets);
  const { log = defaults.request, runtime_log = defaults.runtime } = rest;
  const { runtime, routes, close } = createBackend({ ...rest, basePath, secrets, log, runtime_log });
  const app = createHttpApp({ hosts, basePath, routes, ...(cors ? { cors } : {}), ...(log ? { log } : {}) });
  return { fetch: app.fetch, drain: app.drain, runtime, close, [Symbol.asyncDispose]: close };
}

/** Returns the path prefix without a trailing slash. @throws {TypeError} if it is not a path. */
function checkBasePath(path: string): string {
  if (path === "" || path === "/") return "";
  const prefix = path.endsWith("/") ? path.slice(0, -1) : path;
  if (/^(?:\/[\w.~-]+)+$/.test(prefix) && new URL(prefix, "http://localhost").pathname === prefix) {
    return prefix;
  }
  throw new TypeError(
    `Cannot use basePath ${
      JSON.stringify(path)
    }: it must consist of names that each begin with a slash, such as "/agents"`,
  );
}

/** A runtime with its routes, for a program that has its own {@link createHttpApp}. */
export interface Backend {
  readonly runtime: Runtime;
  readonly routes: Routes;
  /** Ends all runs and closes the store. */
  close(): Promise<void>;
}

/** Creates a runtime with its routes. */
export function createBackend(options: Omit<PreampOptions, "hosts" | "cors"> = {}): Backend {
  const { authenticate, log, runtime_log, ...config } = options;
  const policy = config.policy ?? defaultPolicy();
  const runtime = createRuntime({ ...config, policy, ...(runtime_log ? { log: runtime_log } : {}) });
  const routes = createRoutes({
    runtime,
    basePath: options.basePath ?? "",
    authenticate: authenticate === undefined ? authenticateWith(new KeyRing(policy.auth.keys)) : authenticate,
    bounds: callerBounds(policy),
    ...(log ? { log } : {}),
  });
  return { runtime, routes, close: () => runtime.close() };
}

/** Returns a function that finds the limits of a caller in the policy, or in the own policy of its key. */
export function callerBounds(policy: Policy): (caller: Caller) => CallerBounds {
  const known = new Map<string | undefined, CallerBounds>();

  return function boundsOf({ policy: name }) {
    let bounds = known.get(name);
    if (!bounds) {
      const own = policyFor(policy, name); // names of policies, so the map stays small
      const { max_body_bytes, max_page_limit } = own.limits;
      bounds = { ...own.rates, max_body_bytes, max_page_limit, plan: documentLimits(own) };
      known.set(name, bounds);
    }
    return bounds;
  };
}
