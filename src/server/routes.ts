/** The table of routes as an answer to requests: the router, keys and rates at each door, and how all that is open is ended. */
import { HonoBase } from "hono/hono-base";
import { TrieRouter } from "hono/router/trie-router";
import type { Runtime } from "../app/types.ts";
import { DOCUMENT_LIMITS, type DocumentLimits } from "../plan/parse/document_limits.ts";
import type { Caller } from "../runs/types.ts";
import { PreampError } from "../sdk/errors.ts";
import { ANONYMOUS, type Authenticate, authorise } from "./auth.ts";
import type { BodyLimits } from "./body/read_bytes.ts";
import { type ServerClock, systemClock } from "./clock.ts";
import {
  DisposerSet,
  type HandlerContext,
  type Log,
  type RequestContext,
  type ServerState,
} from "./context.ts";
import { describeError, recordOf } from "./access_log.ts";
import type { Routes } from "./http_app.ts";
import { createRate } from "./rate_limiter.ts";
import { type Route, ROUTES } from "./route_table.ts";

/** What routes are made of. */
export interface RoutesOptions {
  /** Does the work. Closing it is its owner's business. */
  runtime: Runtime;
  /** Knows the keys; null: everyone may do everything (`--no-auth`, loopback only). */
  authenticate: Authenticate | null;
  /** Path that the routes are mounted under, such as `/agents`; they answer without it too. Default none. */
  basePath?: string;
  /** What a caller may do; asked for each request. Default: any rate, the runtime's `max_body_bytes`. */
  bounds?: (caller: Caller) => CallerBounds;
  /** Milliseconds a body may take; default 10,000. */
  body_deadline_ms?: number;
  /** Gets a record for what failed after its answer began. */
  log?: Log;
  /** Time; default the machine's. */
  clock?: ServerClock;
}

/** Bounds of one caller (trust.md). */
export interface CallerBounds {
  /** 0: any number. */
  requests_per_minute: number;
  /** 0: any number. */
  runs_per_minute: number;
  max_body_bytes: number;
  /** Items on a page of a list; default 1,000. */
  max_page_limit?: number;
  /** How large a plan may be; default {@link DOCUMENT_LIMITS}. */
  plan?: DocumentLimits;
}

const BODY_DEADLINE_MS = 10_000;
/** Milliseconds in which readers may take the last entries of runs that ended with the server. Our choice. */
const LAST_ENTRIES_MS = 400;
const MAX_PAGE_LIMIT = 1000;

/** Returns the routes of a runtime. */
export function createRoutes(options: RoutesOptions): Routes {
  const { runtime, authenticate, log, basePath = "", clock = systemClock } = options;
  const takeRequest = createRate("requests", clock);
  const takeRun = createRate("runs", clock);
  const body: BodyLimits = {
    max_bytes: runtime.limits.max_body_bytes,
    deadline_ms: options.body_deadline_ms ?? BODY_DEADLINE_MS,
    plan: DOCUMENT_LIMITS,
  };
  const server: ServerState = {
    runtime,
    basePath,
    clock,
    streams: new DisposerSet(),
    waiting: new DisposerSet(),
    note: (exchange, error) =>
      log?.({ ...recordOf(exchange, 200, 0, clock), level: "error", error: describeError(error) }),
  };
  const standard = { server, body, max_page_limit: MAX_PAGE_LIMIT };
  const router = createRouter(authenticateAndRateLimit, basePath);

  /** Lets a request in that needs a key. */
  function authenticateAndRateLimit(call: HandlerContext, starts_run: boolean): Caller {
    const caller = authorise(call.req.raw, authenticate);
    call.env.caller = caller;
    const bounds = options.bounds?.(caller);
    if (bounds) {
      takeRequest(caller.name, bounds.requests_per_minute);
      if (starts_run) takeRun(caller.name, bounds.runs_per_minute);
      const { max_body_bytes, plan = body.plan, max_page_limit = MAX_PAGE_LIMIT } = bounds;
      call.env.body = { ...body, max_bytes: max_body_bytes, plan };
      call.env.max_page_limit = max_page_limit;
    }
    return caller;
  }

  async function drain(grace_ms: number): Promise<void> {
    try {
      await runtime.drain(grace_ms);
      // who reads a run that has ended now gets its last entries, who waits for one its answer
      await Promise.all([server.streams, server.waiting].map((open) => open.over(LAST_ENTRIES_MS, clock)));
    } finally {
      server.streams.closeAll();
      server.waiting.closeAll();
    }
  }

  return { answer: (request, visit) => router.fetch(request, Object.assign(visit, standard)), drain };
}

type Admit = (call: HandlerContext, starts_run: boolean) => Caller;

/**
 * Hono with one router instead of its choice of two: the one it would choose writes a regular expression of all routes at the
 * first request, 5 ms; this one is made in 1 and takes 0.3 µs more for each request.
 */
function createRouter(admit: Admit, basePath: string): HonoBase<{ Bindings: RequestContext }> {
  const router = new HonoBase<{ Bindings: RequestContext }>({ router: new TrieRouter() });
  for (const route of ROUTES) {
    router.on(route.method, pathPatterns(route, basePath), (call) => {
      if (route.open) return route.handle(call, ANONYMOUS);
      return route.handle(call, admit(call, route.starts_run === true));
    });
  }
  for (const routes of Map.groupBy(ROUTES, ({ path }) => path).values()) {
    const paths = pathPatterns(routes[0]!, basePath); // a group has a route
    const allow = routes.flatMap(({ method }) => method === "GET" ? ["GET", "HEAD"] : [method]).join(", ");
    const open = routes.every((route) => route.open);
    router.on("ALL", paths, (call) => {
      if (!open) admit(call, false);
      throw new PreampError(
        "method_not_allowed",
        `Cannot answer the request: the method must be ${allow}: received ${call.req.method}`,
        { facts: { allow } },
      );
    });
  }
  // Without a key too: what is not there needs none, and that it is not there tells nothing (http.md, Problems).
  router.notFound((call) => {
    throw new PreampError("not_found", `Cannot find ${call.req.path}: there is no such resource`);
  });
  // Every error is answered in one place, which knows the request.
  router.onError((error) => {
    throw error;
  });
  return router;
}

/** Returns the paths of a route as Hono writes them: `/v1/runs/:id`, and the same under the base path. */
function pathPatterns({ path }: Route, basePath: string): string[] {
  const pattern = path.split("/").map((part) => part.startsWith("{") ? `:${part.slice(1, -1)}` : part)
    .join("/");
  if (basePath === "") return [pattern];
  return pattern === "/" ? [pattern, basePath, `${basePath}/`] : [pattern, basePath + pattern];
}
