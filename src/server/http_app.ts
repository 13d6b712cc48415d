/**
 * The one pass every request takes, from its host name to its line in the log. Light: what answers the requests (routes, runtime)
 * is behind it and need not be there yet; whether the process is up is told without it.
 */
import { newId } from "../process/ids.ts";
import { createHostCheck, type Hosts } from "./auth.ts";
import { type ServerClock, systemClock } from "./clock.ts";
import { createCors } from "./cors.ts";
import { jsonResponse, type Log, type RequestInfo } from "./context.ts";
import { describeError, type LogRecord, recordOf } from "./access_log.ts";
import { problemResponse, toProblem } from "./problems.ts";
import { encodedResponse, headResponse, isLargeText } from "./text_response.ts";

/** What came with a request that a socket brought; `Deno.ServeHandlerInfo` is one. */
export interface ConnectionInfo {
  readonly remoteAddr?: unknown;
}

/** A server without a socket. */
export interface App {
  /** Answers a request; never rejects. */
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  /**
   * Drains the runtime: streams of runs that end with it get their `run:end`. Then ends the other streams with a `retry:` hint,
   * and answers 202 to requests that still wait for a run. Resolves when that is done, at most a little after `grace_ms`.
   */
  drain(grace_ms: number): Promise<void>;
}

/** What is behind the pass. */
export interface Routes {
  /** Answers a request; throws, or rejects with, a `PreampError` for a problem. */
  answer(request: Request, visit: RequestInfo): Response | Promise<Response>;
  /** {@link App.drain}. */
  drain(grace_ms: number): Promise<void>;
}

/** What a pass is made of. */
export interface HttpAppOptions {
  /** Names the server is reached by, beside `localhost`, `127.0.0.1` and `[::1]`. Default none. */
  hosts?: Hosts;
  /** Origins whose pages may send requests and read answers, such as `https://app.example.com`. Default none. */
  cors?: { readonly origins: readonly string[] };
  /** Path that the app is mounted under, such as `/agents`. Default none. */
  basePath?: string;
  /** Gets one record for each request. */
  log?: Log;
  /** Time; default the machine's. */
  clock?: ServerClock;
  /** The routes, or a function that gives them: called by the first request that needs them, and again when it could not. */
  routes: Routes | (() => Promise<Routes>);
}

/** Path of the route that is answered here. */
export const HEALTH_PATH = "/healthz";

/** `GET /healthz`: the process is up. Touches nothing. */
export function health(): Response {
  return jsonResponse({ status: "ok" });
}

/** An app whose routes can be opened before they are asked for. */
export interface HttpApp extends App {
  /** Resolves when the routes are there. */
  open(): Promise<unknown>;
}

/** Returns the pass, and with it the app. */
export function createHttpApp(options: HttpAppOptions): HttpApp {
  const { log, clock = systemClock } = options;
  const cors = createCors(options.cors?.origins ?? []);
  const checkHost = createHostCheck(options.hosts ?? [], cors);
  const health_paths = new Set([HEALTH_PATH, (options.basePath ?? "") + HEALTH_PATH]);
  const given = options.routes;
  let routes = typeof given === "function" ? undefined : given;
  let opening: Promise<Routes> | undefined;

  async function open(): Promise<Routes> {
    opening ??= typeof given === "function" ? given() : Promise.resolve(given);
    try {
      return routes = await opening;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  }

  function answerVisit(request: Request, visit: RequestInfo): Response | Promise<Response> {
    if (health_paths.has(visit.path) && request.method === "GET") return health();
    return routes ? routes.answer(request, visit) : open().then((routes) => routes.answer(request, visit));
  }

  async function fetch(request: Request, info?: ConnectionInfo): Promise<Response> {
    const started = clock.monotonic();
    const visit: RequestInfo = {
      request_id: newId("req"),
      caller: null,
      method: request.method,
      path: pathOf(request.url),
    };
    let response: Response;
    let failure: Partial<LogRecord> | undefined;
    try {
      checkHost(request, info?.remoteAddr !== undefined);
      response = cors?.preflight(request) ??
        await answerVisit(request.method === "HEAD" ? getOf(request) : request, visit);
    } catch (error) {
      const problem = toProblem(error);
      failure = {
        code: problem.code,
        ...(problem.code === "internal" ? { error: describeError(error) } : {}),
      };
      response = problemResponse(problem, visit.request_id);
    }
    if (isLargeText(response)) response = await encodedResponse(request, response);
    if (request.method === "HEAD") response = await headResponse(response);
    cors?.expose(request, response.headers);
    response.headers.set("preamp-request-id", visit.request_id);
    log?.({ ...recordOf(visit, response.status, clock.monotonic() - started, clock), ...failure });
    return response;
  }

  return { fetch, open, drain: async (grace_ms) => (await open()).drain(grace_ms) };
}

/** Returns the path of a URL, without the cost of parsing it; cut where the log would. */
function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.indexOf("?", start);
  return start === -1 ? "/" : url.slice(start, end === -1 ? undefined : end).slice(0, 1024);
}

/** Returns a HEAD as the GET that it asks about; without the signal, since Deno logs a warning when a request's signal is used. */
function getOf({ url, headers }: Request): Request {
  return new Request(url, { headers });
}
