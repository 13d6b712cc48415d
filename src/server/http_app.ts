/**
 * Outermost request handler: host check, CORS, `/healthz`, error responses, access log. Loads the routes on
 * the first request that needs them, so that the server can listen before they are loaded.
 */
import { newId } from "../process/ids.ts";
import { createHostCheck, type Hosts } from "./auth.ts";
import { type SystemClock, systemClock } from "../process/system_clock.ts";
import { createCors } from "./cors.ts";
import { jsonResponse } from "./context.ts";
import { describeError, type Log, type LogRecord, recordOf, type RequestInfo } from "./access_log.ts";
import { problemResponse, toProblem } from "./problems.ts";
import { encodedResponse, headResponse, isLargeText } from "./text_response.ts";

/** The connection of a request; compatible with `Deno.ServeHandlerInfo`. */
export interface ConnectionInfo {
  readonly remoteAddr?: unknown;
}

/** The HTTP API as a function from request to response. */
export interface App {
  /** Answers a request; never rejects. */
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  /**
   * Drains the runtime; streams of runs that end within `grace_ms` still receive `run:end`. Then ends the
   * other streams with a `retry:` hint and answers 202 to requests that still wait for a run. Resolves
   * shortly after `grace_ms` at the latest.
   */
  drain(grace_ms: number): Promise<void>;
}

/** Answers requests after the host check. */
export interface Routes {
  /** Answers a request; throws, or rejects with, a `PreampError` for a problem. */
  answer(request: Request, info: RequestInfo): Response | Promise<Response>;
  /** Drains as {@link App.drain} does. */
  drain(grace_ms: number): Promise<void>;
}

/** Options of {@link createHttpApp}. */
export interface HttpAppOptions {
  /** Host names of the server besides `localhost`, `127.0.0.1` and `[::1]`. Default none. */
  hosts?: Hosts;
  /**
   * Origins whose pages may send requests and read responses, such as `https://app.example.com`. Default
   * none.
   */
  cors?: { readonly origins: readonly string[] };
  /** Path prefix of the app, such as `/agents`. Default none. */
  basePath?: string;
  /** Receives one record for each request. */
  log?: Log;
  /** Default: the system clock. */
  clock?: SystemClock;
  /**
   * The routes, or a function that loads them. Called on the first request; retried on the next request if it
   * rejects.
   */
  routes: Routes | (() => Promise<Routes>);
}

/** Path of the health check, which is answered before the routes are loaded. */
export const HEALTH_PATH = "/healthz";

/** Handles `GET /healthz`: the process is up. Reads no other state. */
export function health(): Response {
  return jsonResponse({ status: "ok" });
}

/** An app whose routes can be loaded before the first request. */
export interface HttpApp extends App {
  /** Loads the routes; resolves when they are loaded. */
  open(): Promise<unknown>;
}

/** Creates the outermost request handler. */
export function createHttpApp(options: HttpAppOptions): HttpApp {
  const { log, clock = systemClock() } = options;
  const cors = createCors(options.cors?.origins ?? []);
  const checkHost = createHostCheck(options.hosts ?? [], cors);
  const health_paths = new Set([HEALTH_PATH, (options.basePath ?? "") + HEALTH_PATH]);
  const source = options.routes;
  let routes = typeof source === "function" ? undefined : source;
  let opening: Promise<Routes> | undefined;

  async function open(): Promise<Routes> {
    opening ??= typeof source === "function" ? source() : Promise.resolve(source);
    try {
      return routes = await opening;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  }

  function route(request: Request, info: RequestInfo): Response | Promise<Response> {
    if (health_paths.has(info.path) && request.method === "GET") return health();
    return routes ? routes.answer(request, info) : open().then((routes) => routes.answer(request, info));
  }

  async function fetch(request: Request, connection?: ConnectionInfo): Promise<Response> {
    const started = clock.monotonic();
    const info: RequestInfo = {
      request_id: newId("req"),
      caller: null,
      method: request.method,
      path: pathOf(request.url),
    };
    let response: Response;
    let failure: Partial<LogRecord> | undefined;
    try {
      checkHost(request, connection?.remoteAddr !== undefined);
      response = cors?.preflight(request) ??
        await route(request.method === "HEAD" ? getOf(request) : request, info);
    } catch (error) {
      const problem = toProblem(error);
      failure = {
        code: problem.code,
        ...(problem.code === "internal" ? { error: describeError(error) } : {}),
      };
      response = problemResponse(problem, info.request_id);
    }
    if (isLargeText(response)) response = await encodedResponse(request, response);
    if (request.method === "HEAD") response = await headResponse(response);
    cors?.expose(request, response.headers);
    response.headers.set("preamp-request-id", info.request_id);
    log?.({ ...recordOf(info, response.status, clock.monotonic() - started, clock), ...failure });
    return response;
  }

  return { fetch, open, drain: async (grace_ms) => (await open()).drain(grace_ms) };
}

/** Returns the path of a URL without parsing the URL, cut to 1,024 characters for the log. */
function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.indexOf("?", start);
  return start === -1 ? "/" : url.slice(start, end === -1 ? undefined : end).slice(0, 1024);
}

/**
 * Returns the GET request for a HEAD. Drops the signal: Deno logs a warning when a request's signal is used.
 */
function getOf({ url, headers }: Request): Request {
  return new Request(url, { headers });
}
