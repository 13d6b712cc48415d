/** One request and all that its handler may use; how answers are made. */
import type { Context } from "hono";
import type { Runtime } from "../app/types.ts";
import type { Caller } from "../runs/types.ts";
import type { BodyLimits } from "./body/read_bytes.ts";
import type { ServerClock } from "./clock.ts";
import type { LogRecord } from "./access_log.ts";
import { textResponse } from "./text_response.ts";

/** What all requests share. */
export interface ServerState {
  readonly runtime: Runtime;
  /** Path that the API is mounted under, such as `/agents`; empty for none. */
  readonly basePath: string;
  readonly clock: ServerClock;
  /** Streams that are open; when the server stops they are ended with the runs. */
  readonly streams: DisposerSet;
  /** Requests that wait for a run; answered last when the server stops. */
  readonly waiting: DisposerSet;
  /** Notes what failed after the answer began. */
  note(exchange: RequestContext, error: unknown): void;
}

/** One request, as the log tells of it. */
export interface RequestInfo {
  readonly request_id: string;
  /** Null until the key was checked. */
  caller: Caller | null;
  readonly method: string;
  readonly path: string;
}

/** What a handler finds in its context's `env`. */
export interface RequestContext extends RequestInfo {
  readonly server: ServerState;
  /** Bounds of the body; the caller's own once it is known. */
  body: BodyLimits;
  /** Items that the caller may ask for on one page of a list. */
  max_page_limit: number;
}

/** A handler's context. */
export type HandlerContext = Context<{ Bindings: RequestContext }>;

/** Answers one request; throws a `PreampError` for a problem. An open route's caller is anonymous. */
export type Handler = (call: HandlerContext, caller: Caller) => Response | Promise<Response>;

/** Receives one record for each request. Must not throw. */
export type Log = (record: LogRecord) => void;

const JSON_HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
} as const;

/** Returns a JSON answer. */
export function jsonResponse(body: unknown, status = 200, headers?: Record<string, string>): Response {
  return textResponse(JSON.stringify(body), status, headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS);
}

/** Returns a JSON list that is its own only page. */
export function listResponse(data: readonly unknown[]): Response {
  return jsonResponse({ data, next_cursor: null });
}

/** Returns the answer of a deletion. */
export function noContent(headers: Record<string, string> = {}): Response {
  return new Response(null, { status: 204, headers: { "cache-control": "no-store", ...headers } });
}

/** Things to be ended when the server stops. Each takes itself out when it is over before. */
export class DisposerSet {
  readonly #closers = new Set<() => void>();
  #closed = false;
  #whenEmpty: (() => void) | undefined;

  /** Adds one, to be ended soon when all were ended before; returns a function that takes it out. */
  add(close: () => void): () => void {
    this.#closers.add(close);
    if (this.#closed) queueMicrotask(() => this.#closers.delete(close) && close());
    return () => {
      this.#closers.delete(close);
      if (this.#closers.size === 0) this.#whenEmpty?.();
    };
  }

  /** Resolves when all are over by themselves, at the latest after `ms` milliseconds. */
  async over(ms: number, clock: ServerClock): Promise<void> {
    if (this.#closers.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#whenEmpty = resolve;
    const stop = clock.timer(ms, resolve);
    await promise;
    stop();
    this.#whenEmpty = undefined;
  }

  /** How many there are. */
  get size(): number {
    return this.#closers.size;
  }

  /** Ends all. */
  closeAll(): void {
    this.#closed = true;
    for (const close of [...this.#closers]) close();
    this.#closers.clear();
  }
}
