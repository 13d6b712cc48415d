/** `Request` in, `Response` out: the one pass every request takes, from its host name to its line in the log. */
import { HonoBase } from "hono/hono-base";
import { TrieRouter } from "hono/router/trie-router";
import type { Runtime } from "../app/types.ts";
import { newId } from "../runs/ids.ts";
import type { Caller } from "../runs/types.ts";
import { PreampError } from "../sdk/errors.ts";
import { ANONYMOUS, type Authenticate, authorise, createHostCheck, type Hosts } from "./access.ts";
import type { BodyLimits } from "./body.ts";
import { type ServerClock, systemClock } from "./clock.ts";
import { type Call, Closers, type Exchange, type Log, type Server } from "./exchange.ts";
import { describeError, type LogRecord, logTime, roundMs } from "./log.ts";
import { problemResponse, toProblem } from "./problems.ts";
import { createRate } from "./rates.ts";
import { type Route, ROUTES } from "./route_table.ts";

/** What an app is made of. */
export interface AppOptions {
  /** Does the work. Closing it is its owner's business. */
  runtime: Runtime;
  /** Knows the keys; null: everyone may do everything (`--no-auth`, loopback only). */
  authenticate: Authenticate | null;
  /** Names the server is reached by, beside `localhost`, `127.0.0.1` and `[::1]`. Default none. */
  hosts?: Hosts;
  /** What a caller may do; asked for each request. Default: any rate, the runtime's `max_body_bytes`. */
  bounds?: (caller: Caller) => CallerBounds;
  /** Milliseconds a body may take; default 10,000. */
  body_deadline_ms?: number;
  /** Gets one record for each request. */
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
}

/** What came with a request that a socket brought; `Deno.ServeHandlerInfo` is one. */
export interface ConnectionInfo {
  readonly remoteAddr?: unknown;
}

/** A server without a socket. */
export interface App {
  /** Answers a request; never rejects. */
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  /**
   * Ends open streams with a `retry:` hint, drains the runtime, then answers 202 to whoever still waits for a run. Resolves
   * when that is done, at most a little after `grace_ms`.
   */
  drain(grace_ms: number): Promise<void>;
}

const BODY_DEADLINE_MS = 10_000;

/** Returns the app of a runtime. */
export function createApp(options: AppOptions): App {
  const { runtime, authenticate, log, clock = systemClock } = options;
  const checkHost = createHostCheck(options.hosts ?? []);
  const takeRequest = createRate("requests", clock);
  const takeRun = createRate("runs", clock);
  const body: BodyLimits = {
    max_bytes: runtime.limits.max_body_bytes,
    deadline_ms: options.body_deadline_ms ?? BODY_DEADLINE_MS,
  };
  const server: Server = {
    runtime,
    clock,
    streams: new Closers(),
    waiting: new Closers(),
    note: (exchange, error) =>
      log?.({ ...record(exchange, 200, 0), level: "error", error: describeError(error) }),
  };
  const router = createRouter(admit);

  /** Lets a request in that needs a key. */
  function admit(call: Call, starts_run: boolean): Caller {
    const caller = authorise(call.req.raw, authenticate);
    call.env.caller = caller;
    const bounds = options.bounds?.(caller);
    if (bounds) {
      takeRequest(caller.name, bounds.requests_per_minute);
      if (starts_run) takeRun(caller.name, bounds.runs_per_minute);
      call.env.body = { ...body, max_bytes: bounds.max_body_bytes };
    }
    return caller;
  }

  function record(exchange: Exchange, status: number, ms: number): LogRecord {
    const { request_id, method, path, caller } = exchange;
    return {
      level: status >= 500 ? "error" : "info",
      ts: logTime(clock),
      message: "request",
      request_id,
      method,
      path,
      status,
      ms: roundMs(ms),
      caller: caller?.name ?? null,
    };
  }

  async function fetch(request: Request, info?: ConnectionInfo): Promise<Response> {
    const started = clock.monotonic();
    const exchange: Exchange = {
      server,
      request_id: newId("req"),
      caller: null,
      body,
      method: request.method,
      path: pathOf(request.url),
    };
    let response: Response;
    let failure: Partial<LogRecord> | undefined;
    try {
      checkHost(request, info?.remoteAddr !== undefined);
      response = request.method === "HEAD"
        ? await withoutBody(await router.fetch(new Request(request, { method: "GET" }), exchange))
        : await router.fetch(request, exchange);
    } catch (error) {
      const problem = toProblem(error);
      failure = {
        code: problem.code,
        ...(problem.code === "internal" ? { error: describeError(error) } : {}),
      };
      response = problemResponse(problem, exchange.request_id);
      if (request.method === "HEAD") response = await withoutBody(response);
    }
    response.headers.set("preamp-request-id", exchange.request_id);
    log?.({ ...record(exchange, response.status, clock.monotonic() - started), ...failure });
    return response;
  }

  async function drain(grace_ms: number): Promise<void> {
    server.streams.closeAll();
    try {
      await runtime.drain(grace_ms);
    } finally {
      server.streams.closeAll(); // those that were opened meanwhile
      server.waiting.closeAll();
    }
  }

  return { fetch, drain };
}

type Admit = (call: Call, starts_run: boolean) => Caller;

/**
 * Hono with one router instead of its choice of two: the one it would choose writes a regular expression of all routes at the
 * first request, 5 ms; this one is made in 1 and takes 0.3 µs more for each request.
 */
function createRouter(admit: Admit): HonoBase<{ Bindings: Exchange }> {
  const router = new HonoBase<{ Bindings: Exchange }>({ router: new TrieRouter() });
  for (const route of ROUTES) {
    router.on(route.method, pathPattern(route), (call) => {
      if (route.open) return route.handle(call, ANONYMOUS);
      return route.handle(call, admit(call, route.starts_run === true));
    });
  }
  for (const [path, routes] of Map.groupBy(ROUTES, pathPattern)) {
    const allow = routes.flatMap(({ method }) => method === "GET" ? ["GET", "HEAD"] : [method]).join(", ");
    const open = routes.every((route) => route.open);
    router.all(path, (call) => {
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

/** Returns a path as Hono writes it: `/v1/runs/:id`. */
function pathPattern({ path }: Route): string {
  return path.split("/").map((part) => part.startsWith("{") ? `:${part.slice(1, -1)}` : part).join("/");
}

/** Returns the path of a URL, without the cost of parsing it; cut where the log would. */
function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.indexOf("?", start);
  return start === -1 ? "/" : url.slice(start, end === -1 ? undefined : end).slice(0, 1024);
}

/** Returns the answer to a HEAD; a stream that was opened for it is closed. */
async function withoutBody(response: Response): Promise<Response> {
  await response.body?.cancel();
  return new Response(null, { status: response.status, headers: response.headers });
}
