/**
 * Preamp as a library: a runtime and the HTTP API over it, as one `fetch`.
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
import type { Log } from "./context.ts";
import { createDefaultLog } from "./access_log.ts";
import { type App, createHttpApp, type Routes } from "./http_app.ts";
import { type CallerBounds, createRoutes } from "./routes.ts";

export { ANONYMOUS, type Authenticate, authenticateWith, type Hosts } from "./auth.ts";
export { type App, type AppOptions, type CallerBounds, type ConnectionInfo, createApp } from "./app.ts";
export type { Log } from "./context.ts";
export { formatLogRecord, type LogRecord } from "./access_log.ts";
export { serve, type ServeOptions } from "./net/listen.ts";
export { defaultPolicy, policyFromData };
export type { Caller, InProcessModule, Policy, Runtime, RuntimeConfig };

/** What {@link createPreamp} is made of: the runtime's configuration, and who may reach it. */
export interface PreampOptions extends Omit<RuntimeConfig, "log"> {
  /** Knows the keys. Default: the policy's `auth.keys`, so that without any only the open routes answer. Null: everyone may do everything. */
  authenticate?: Authenticate | null;
  /** Names the server is reached by. Default `any`: whoever embeds it knows its address. */
  hosts?: Hosts;
  /** Origins whose pages may send requests and read answers. Default: the policy's `cors`, which is none. */
  cors?: { readonly origins: readonly string[] };
  /**
   * Path that the server is mounted under, such as `/agents`: `Location`, `events_url` and the OpenAPI document name it. Requests
   * are answered with it and, since Hono's `mount()` removes it, without it. Default none.
   */
  basePath?: string;
  /** Gets one record for each request. Default: those that failed are lines of JSON on stderr. Null: none are logged. */
  log?: Log | null;
  /** Gets what happens in the runtime. Default: warnings and errors are lines of JSON on stderr. Null: nothing is logged. */
  runtime_log?: NonNullable<RuntimeConfig["log"]> | null;
}

/** A server to mount inside another, or to call without any. */
export interface Preamp extends App, AsyncDisposable {
  /** What `fetch` works on. */
  readonly runtime: Runtime;
  /** Ends all runs and closes the store. */
  close(): Promise<void>;
}

/** Returns a runtime with its HTTP API. Nothing is loaded, opened or started before the first request. */
export function createPreamp(options: PreampOptions = {}): Preamp {
  const { hosts = "any", cors = options.policy?.cors, ...rest } = options;
  const basePath = checkBasePath(rest.basePath ?? "");
  const secrets = rest.secrets instanceof Redactor ? rest.secrets : processRedactor(rest.secrets ?? []);
  const standard = createDefaultLog(secrets);
  const { log = standard.request, runtime_log = standard.runtime } = rest;
  const { runtime, routes, close } = createBackend({ ...rest, basePath, secrets, log, runtime_log });
  const app = createHttpApp({ hosts, basePath, routes, ...(cors ? { cors } : {}), ...(log ? { log } : {}) });
  return { fetch: app.fetch, drain: app.drain, runtime, close, [Symbol.asyncDispose]: close };
}

/** Returns the path that a server is mounted under, without a slash at its end. @throws {TypeError} When it is not a path. */
function checkBasePath(path: string): string {
  if (path === "" || path === "/") return "";
  const given = path.endsWith("/") ? path.slice(0, -1) : path;
  if (/^(?:\/[\w.~-]+)+$/.test(given) && new URL(given, "http://localhost").pathname === given) return given;
  throw new TypeError(
    `Cannot use basePath ${JSON.stringify(path)}: write names that each begin with a slash, as in "/agents"`,
  );
}

/** All of a server but the pass in front of it, for who has a pass already. */
export interface Backend {
  readonly runtime: Runtime;
  readonly routes: Routes;
  /** Ends all runs and closes the store. */
  close(): Promise<void>;
}

/** Returns a runtime with its routes. */
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

/** Returns the bounds that a policy gives each caller; those of a key's own policy are worked out once. */
export function callerBounds(policy: Policy): (caller: Caller) => CallerBounds {
  const known = new Map<string | undefined, CallerBounds>();

  return function boundsOf({ policy: name }) {
    let bounds = known.get(name);
    if (!bounds) {
      const own = policyFor(policy, name); // names are the policy's own: as many as it has
      const { max_body_bytes, max_page_limit } = own.limits;
      bounds = { ...own.rates, max_body_bytes, max_page_limit, plan: documentLimits(own) };
      known.set(name, bounds);
    }
    return bounds;
  };
}
