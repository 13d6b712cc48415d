/** The context of a request handler, and helpers that create responses. */
import type { Context } from "hono";
import type { Runtime } from "../app/types.ts";
import type { Caller } from "../runs/types.ts";
import type { BodyLimits } from "./body/read_bytes.ts";
import type { SystemClock } from "../process/system_clock.ts";
import type { RequestInfo } from "./access_log.ts";
import { textResponse } from "./text_response.ts";

/** State shared by all requests. */
export interface ServerState {
  readonly runtime: Runtime;
  /** Path prefix of the API, such as `/agents`; empty for none. */
  readonly basePath: string;
  readonly clock: SystemClock;
  /** Open streams; ended when the server stops. */
  readonly streams: DisposerSet;
  /** Requests that wait for a run; answered with 202 when the server stops. */
  readonly waiting: DisposerSet;
  /** Logs an error that occurred after the response started. */
  logError(context: RequestContext, error: unknown): void;
}

/** The `env` of a handler's context. */
export interface RequestContext extends RequestInfo {
  readonly server: ServerState;
  /** Limits of the body: those of the caller once the key is checked. */
  body: BodyLimits;
  /** Maximum number of items on one page of a list. */
  max_page_limit: number;
}

/** The context that Hono passes to a handler. */
export type HandlerContext = Context<{ Bindings: RequestContext }>;

/**
 * Answers one request; throws a `PreampError` for a problem response. The caller of an open route is
 * anonymous.
 */
export type Handler = (context: HandlerContext, caller: Caller) => Response | Promise<Response>;

const JSON_HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
} as const;

/** Creates a JSON response. */
export function jsonResponse(body: unknown, status = 200, headers?: Record<string, string>): Response {
  return textResponse(JSON.stringify(body), status, headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS);
}

/** Creates the response of a list that has one page. */
export function listResponse(data: readonly unknown[]): Response {
  return jsonResponse({ data, next_cursor: null });
}

/** Creates an empty response with status 204. */
export function noContent(headers: Record<string, string> = {}): Response {
  return new Response(null, { status: 204, headers: { "cache-control": "no-store", ...headers } });
}

/** Functions to call when the server stops, such as the ends of open streams. */
export class DisposerSet {
  readonly #closers = new Set<() => void>();
  #closed = false;
  #resolveEmpty: (() => void) | undefined;

  /**
   * Adds a function; after `closeAll` the function is called in a microtask. Returns a function that removes
   * it again.
   */
  add(close: () => void): () => void {
    this.#closers.add(close);
    if (this.#closed) queueMicrotask(() => this.#closers.delete(close) && close());
    return () => {
      this.#closers.delete(close);
      if (this.#closers.size === 0) this.#resolveEmpty?.();
    };
  }

  /** Resolves when all functions have been removed, after `ms` milliseconds at the latest. */
  async whenEmpty(ms: number, clock: SystemClock): Promise<void> {
    if (this.#closers.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resolveEmpty = resolve;
    const stop = clock.later(ms, resolve);
    await promise;
    stop();
    this.#resolveEmpty = undefined;
  }

  /** Number of functions in the set. */
  get size(): number {
    return this.#closers.size;
  }

  /** Calls and removes all functions. */
  closeAll(): void {
    this.#closed = true;
    for (const close of [...this.#closers]) close();
    this.#closers.clear();
  }
}
