/** The state of the server and of one request, as middleware and handlers see it. */
import type { OpenStreams, StreamLimits } from "./streaming/open_streams.ts";
import type { Context, MiddlewareHandler } from "hono";
import type { Runtime } from "../app/types.ts";
import { newId } from "../sdk/ids.ts";
import type { SystemClock } from "../process/system_clock.ts";
import type { Caller } from "../runs/types.ts";
import type { ErrorCode } from "../sdk/errors.ts";
import type { Answer } from "./answers.ts";
import type { BodyLimits } from "./body/read_bytes.ts";
import type { Client, TrustedProxies } from "./net/forwarded.ts";
import type { Page } from "./page/page.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { LoggedError } from "./log_line.ts";

/** State shared by all requests. */
export interface ServerState {
  readonly runtime: Runtime;
  /** Path prefix of the API, such as `/agents`; empty for none. */
  readonly basePath: string;
  /** The page of the server; null if it has none. */
  readonly page: Page | null;
  /** Script and style of the documentation; null: its pages have none. */
  readonly docs: Page | null;
  readonly clock: SystemClock;
  /** Limits of a body and of a page for requests without a caller. */
  readonly body: BodyLimits;
  readonly proxies: TrustedProxies;
  readonly max_page_limit: number;
  /** Milliseconds of silence of a response that waits; null: the default of each kind of response. */
  readonly heartbeat_ms: number | null;
  /** Whether a run may continue without an open request. */
  readonly background: boolean;
  /** True while the server stops: each answer is the last one of its connection. */
  draining: boolean;
  /** Open streams; ended when the server stops. */
  readonly streams: DisposerSet;
  /** The same streams, counted by caller. */
  readonly open_streams: OpenStreams;
  /** Requests that wait for a run; answered with 202 when the server stops. */
  readonly waiting: DisposerSet;
  /** Logs an error that occurred after the response started. */
  logError(context: RequestContext, error: unknown): void;
  readonly metrics: Metrics;
}

/** The connection of a request; compatible with `Deno.ServeHandlerInfo`. */
export interface ConnectionInfo {
  /** The peer; its `hostname` is an IP address. */
  readonly remoteAddr?: unknown;
}

function addressOf(connection: ConnectionInfo | undefined): string | null {
  const { hostname } = (connection?.remoteAddr ?? {}) as { hostname?: unknown };
  return typeof hostname === "string" ? hostname : null;
}

/** One request: the `env` of its Hono context. */
export class RequestContext {
  readonly server: ServerState;
  readonly request: Request;
  readonly request_id: string = newId("req");
  /** Monotonic milliseconds of its arrival. */
  readonly started: number;
  /** Method as received: `HEAD` for a request that is handled as its GET. */
  readonly method: string;
  /** False for a request that a program made itself, without a socket. */
  readonly over_connection: boolean;
  /** Who sent the request. */
  readonly client: Client;
  /** Path of the route, such as `/v1/runs/{id}`; null for a path without a route. */
  route: string | null = null;
  /** Null until the key is checked. */
  caller: Caller | null = null;
  /** Limits of open event streams, once the key is checked. */
  streams: StreamLimits = {};
  /** Limits of the body: those of the caller once the key is checked. */
  body: BodyLimits;
  /** Maximum number of items on one page of a list. */
  max_page_limit: number;
  /** Called when the run that the request starts executes. */
  begun: () => void = () => {};
  /** Fields of the log record when the response is a problem. */
  failure: { code: ErrorCode; error?: LoggedError } | undefined;
  #parameters: { param(name: string): string | undefined } | undefined;

  /** @param request The request; a HEAD as its GET. @param method Its method as received. */
  constructor(server: ServerState, request: Request, method: string, connection: ConnectionInfo | undefined) {
    this.server = server;
    this.started = server.clock.monotonic();
    this.request = request;
    this.method = method;
    this.over_connection = connection?.remoteAddr !== undefined;
    this.client = server.proxies.clientOf(addressOf(connection), request.headers);
    this.body = server.body;
    this.max_page_limit = server.max_page_limit;
  }

  /** Sets the route that was found for the path, and the parameters of the path. */
  setRoute(route: string, parameters: { param(name: string): string | undefined }): void {
    this.route = route;
    this.#parameters = parameters;
  }

  /** Returns a parameter of the path, decoded; empty for one that the route does not have. */
  param(name: string): string {
    return this.#parameters?.param(name) ?? "";
  }

  /** Id of the run that the path names; undefined for other paths. */
  get run_id(): string | undefined {
    return this.route?.startsWith("/v1/runs/{id}") ? this.param("id") : undefined;
  }

  /** Scheme and host of the server as the client sees them, such as `https://agents.example.com`. */
  get origin(): string {
    const { protocol, host } = new URL(this.request.url);
    const { client } = this;
    return `${client.scheme ? `${client.scheme}:` : protocol}//${client.host ?? host}`;
  }

  /** Path without query, for the log: at most 1,024 characters. */
  get path(): string {
    const { url } = this.request; // not parsed: it is read for every line of the log
    const start = url.indexOf("/", url.indexOf("://") + 3);
    const end = url.indexOf("?", start);
    return start === -1 ? "/" : url.slice(start, end === -1 ? undefined : end).slice(0, 1024);
  }
}

/** Types of the Hono app: `c.env` is the request, `c.get("answer")` its answer, once there is one. */
export interface AppEnv {
  Bindings: RequestContext;
  Variables: { answer: Answer };
}

/** Hono's context of a request. */
export type HonoContext = Context<AppEnv>;

/** One step of the way of a request. Throws a `PreampError` for a problem. */
export type Middleware = MiddlewareHandler<AppEnv>;

/** Answers one request; throws a `PreampError` for a problem. The caller of an open route is anonymous. */
export type Handler = (context: RequestContext, caller: Caller) => Answer | Promise<Answer>;

/** A function of a {@link DisposerSet}. */
interface Slot {
  /**
   * Undefined once it is removed, so that a table that the set has outgrown keeps nothing:
   * src/docs/performance.md#closures
   */
  close: (() => void) | undefined;
}

/** Functions to call when the server stops, such as the ends of open streams. */
export class DisposerSet {
  readonly #slots = new Set<Slot>();
  #closed = false;
  #resolveEmpty: (() => void) | undefined;

  /**
   * Adds a function; after `closeAll` the function is called in a microtask. Returns a function that removes
   * it again.
   */
  add(close: () => void): () => void {
    const slot: Slot = { close };
    this.#slots.add(slot);
    if (this.#closed) queueMicrotask(() => this.#slots.delete(slot) && slot.close?.());
    return () => {
      slot.close = undefined;
      this.#slots.delete(slot);
      if (this.#slots.size === 0) this.#resolveEmpty?.();
    };
  }

  /** Resolves when all functions have been removed, after `ms` milliseconds at the latest. */
  async whenEmpty(ms: number, clock: SystemClock): Promise<void> {
    if (this.#slots.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resolveEmpty = resolve;
    const stop = clock.later(ms, resolve);
    await promise;
    stop();
    this.#resolveEmpty = undefined;
  }

  /** Number of functions in the set. */
  get size(): number {
    return this.#slots.size;
  }

  /** Calls and removes all functions. */
  closeAll(): void {
    this.#closed = true;
    for (const { close } of [...this.#slots]) close?.();
    this.#slots.clear();
  }
}
