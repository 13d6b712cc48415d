/** The HTTP API as one Hono app: every step of a request, in order. */
import { HonoBase } from "hono/hono-base";
import { TrieRouter } from "hono/router/trie-router";
import type { Runtime } from "../app/types.ts";
import { DOCUMENT_LIMITS } from "../plan/parse/document_limits.ts";
import { type SystemClock, systemClock } from "../process/system_clock.ts";
import { PreampError } from "../sdk/errors.ts";
import { Metrics } from "../telemetry/metrics.ts";
import type { OpenTelemetry } from "../telemetry/open_telemetry.ts";
import {
  type AppEnv,
  type ConnectionInfo,
  DisposerSet,
  type Middleware,
  RequestContext,
  type ServerState,
} from "./context.ts";
import { errorRecord, type Log, logRequests } from "./middleware/access_log.ts";
import { checkHost, type Hosts } from "./middleware/check_host.ts";
import { allowOrigins } from "./middleware/cors.ts";
import { type BoundsOf, limitRequests, limitRuns } from "./middleware/limit_caller.ts";
import { observeRequests } from "./middleware/observe_requests.ts";
import { ProcessLoad, shedLoad } from "./middleware/shed_load.ts";
import { ANONYMOUS, type Authenticate, requireKey } from "./middleware/require_key.ts";
import { TrustedProxies } from "./net/forwarded.ts";
import type { Page } from "./page/page.ts";
import { answerErrors } from "./problems.ts";
import { respond } from "./respond.ts";
import { ROUTES } from "./route_table.ts";
import { METRICS_PATH } from "./routes/meta.ts";
import type { Route } from "./routes/route.ts";
import { OpenStreams } from "./streaming/open_streams.ts";

/** The HTTP API as a function from request to response. */
export interface App {
  /** Answers a request; never rejects. */
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  /**
   * Drains the runtime; answers from now on have `Connection: close`. Streams of runs that end within
   * `grace_ms` still receive `run:end`. Then ends the other streams with a `retry:` hint and answers 202 to
   * requests that still wait for a run. Resolves shortly after `grace_ms` at the latest.
   */
  drain(grace_ms: number): Promise<void>;
}

/** Options of {@link createApp}. */
export interface AppOptions {
  /** Executes the requests. The owner of the runtime closes it. */
  runtime: Runtime;
  /** Finds the caller of a key; null: no keys are checked (`--no-auth`, loopback only). */
  authenticate: Authenticate | null;
  /** Host names of the server besides `localhost`, `127.0.0.1` and `[::1]`. Default none. */
  hosts?: Hosts;
  /**
   * Origins whose pages may send requests and read responses, such as `https://app.example.com`. Default
   * none.
   */
  cors?: { readonly origins: readonly string[] };
  /**
   * Addresses of reverse proxies, such as `10.0.0.0/8`, whose `Forwarded` or `X-Forwarded-*` headers name the
   * client, its scheme and host. Default none: a request comes from its peer.
   */
  trusted_proxies?: readonly string[];
  /**
   * Path prefix of the routes, such as `/agents`; requests without the prefix are answered too. Default none.
   */
  basePath?: string;
  /** The page that browsers get at `/`. Default: none; browsers get a short introduction. */
  page?: Page | null;
  /** Script and style of the documentation. Default: none; its pages are plain HTML. */
  docs?: Page | null;
  /**
   * Returns the limits of a caller; called for each request. Default: no rate limit, the runtime's
   * `max_body_bytes`.
   */
  bounds?: BoundsOf;
  /** Milliseconds for reading a body; default 10,000. */
  body_deadline_ms?: number;
  /** Counts requests, for `GET /metrics`. Default: metrics of this app only. */
  metrics?: Metrics;
  /** Names the spans of requests. Default: they are not named. */
  tracing?: OpenTelemetry;
  /** Answers `GET /metrics` without a key. Default false. */
  open_metrics?: boolean;
  /**
   * Milliseconds after which a response that waits sends a byte that changes nothing, for hosts that stop an
   * idle process: a comment, an empty line, or a space before JSON. Default: comments of event streams only,
   * every 15 s.
   */
  heartbeat_ms?: number;
  /**
   * Whether a run may continue without an open request. Default true; false for a host that stops idle
   * processes.
   */
  background?: boolean;
  /** Measures whether the process can take new runs. Default: its event loop and its heap. */
  load?: ProcessLoad;
  /** Receives one record for each request, and one for an error after the response started. */
  log?: Log;
  /** Default: the system clock. */
  clock?: SystemClock;
}

const BODY_DEADLINE_MS = 10_000;
/** Milliseconds for clients to read the last entries of runs that ended in the drain. */
const LAST_ENTRIES_MS = 400;
const MAX_PAGE_LIMIT = 1000;

/** Creates the HTTP API of a runtime. */
export function createApp(options: AppOptions): App {
  const { runtime, authenticate, bounds, basePath = "", clock = systemClock(), log } = options;
  const { metrics = new Metrics() } = options;
  const origins = options.cors?.origins ?? [];
  const server: ServerState = {
    runtime,
    basePath,
    page: options.page ?? null,
    docs: options.docs ?? null,
    clock,
    body: {
      max_bytes: runtime.limits.max_body_bytes,
      deadline_ms: options.body_deadline_ms ?? BODY_DEADLINE_MS,
      plan: DOCUMENT_LIMITS,
    },
    proxies: new TrustedProxies(options.trusted_proxies ?? []),
    max_page_limit: MAX_PAGE_LIMIT,
    heartbeat_ms: options.heartbeat_ms ?? null,
    background: options.background ?? true,
    draining: false,
    streams: new DisposerSet(),
    open_streams: new OpenStreams(),
    waiting: new DisposerSet(),
    logError: (context, error) => log?.(errorRecord(context, error)),
    metrics,
  };
  metrics.watch("preamp_event_streams", () => [{ labels: {}, value: server.streams.size }]);

  // The trie router is built in 1 ms. Hono's default router takes 5 ms, since it compiles the routes into a
  // regular expression, and saves 0.3 µs for each request.
  const app = new HonoBase<AppEnv>({ router: new TrieRouter() });

  // Steps of every request, the outermost first.
  app.use(observeRequests(metrics, options.tracing));
  if (log) app.use(logRequests(log));
  if (origins.length > 0) app.use(allowOrigins(origins));
  app.use(answerErrors);
  app.use(checkHost(options.hosts ?? [], origins));

  // Steps of a route that needs a key. They also apply to a method that the path does not have.
  const keyed = [requireKey(authenticate), ...(bounds ? [limitRequests(bounds, clock)] : [])];
  const starting = [
    shedLoad(options.load ?? new ProcessLoad(() => runtime.executing())),
    ...(bounds ? [limitRuns(bounds, clock)] : []),
  ];
  for (const [path, routes] of Map.groupBy(ROUTES, ({ path }) => path)) {
    const paths = pathPatterns(path, basePath);
    const open = routes.some(({ open }) => open) || (options.open_metrics && path === METRICS_PATH);
    app.on("ALL", paths, setRoute(path), ...(open ? [] : keyed));
    for (const { method, starts_run, handle } of routes) {
      if (starts_run) app.on(method, paths, ...starting);
      app.on(method, paths, async (c) => {
        const { env } = c;
        const answer = await handle(env, env.caller ?? ANONYMOUS);
        if (env.run_id !== undefined) answer.headers["preamp-run-id"] ??= env.run_id;
        return respond(c, answer);
      });
    }
    app.on("ALL", paths, ({ req }) => {
      throw methodNotAllowed(routes, req.method);
    });
  }
  app.notFound(({ env }) => { // needs no key: the list of routes is public
    throw new PreampError("not_found", `Cannot find ${env.path}: there is no such resource`);
  });
  app.onError((error) => { // leaves it to answerErrors, since Hono calls onError for instances of Error only
    throw error;
  });

  return {
    async fetch(request, info) {
      const { method } = request;
      // Hono would answer a HEAD of a stream with `Content-Length: 0`; `respond` removes the body instead.
      // Its GET is without the signal: Deno logs a warning when a request's signal is used.
      const handled = method === "HEAD" ? new Request(request.url, { headers: request.headers }) : request;
      return await app.fetch(handled, new RequestContext(server, handled, method, info));
    },
    async drain(grace_ms) {
      server.draining = true;
      try {
        await runtime.drain(grace_ms);
        // Streams of runs that ended in the drain send their last entries; waiting requests are answered.
        await Promise.all(
          [server.streams, server.waiting].map((set) => set.whenEmpty(LAST_ENTRIES_MS, clock)),
        );
      } finally {
        server.streams.closeAll();
        server.waiting.closeAll();
      }
    },
  };
}

/** Returns the step that sets the route of a request. */
function setRoute(path: string): Middleware {
  return ({ env, req }, next) => {
    env.setRoute(path, req);
    return next();
  };
}

/** Returns the paths of a route in Hono's syntax, such as `/v1/runs/:id`, without and with the base path. */
function pathPatterns(path: string, basePath: string): string[] {
  const pattern = path.replaceAll(/\{(\w+)\}/g, ":$1");
  if (basePath === "") return [pattern];
  return pattern === "/" ? [pattern, basePath, `${basePath}/`] : [pattern, basePath + pattern];
}

function methodNotAllowed(routes: readonly Route[], method: string): PreampError {
  const allow = routes.flatMap(({ method }) => method === "GET" ? ["GET", "HEAD"] : [method]).join(", ");
  return new PreampError(
    "method_not_allowed",
    `Cannot answer the request: the method must be ${allow}: received ${method}`,
    { facts: { allow } },
  );
}
