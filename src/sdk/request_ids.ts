/**
 * Ids of model calls. `llm:request` begins one, and gets a new id unless its emitter states one;
 * `llm:response` and `provider:error` of the same call have it and end it; `provider:retry` and
 * `provider:throttle` have it. What belongs together is what one asynchronous context emits, so that calls at
 * the same time keep their own. An event that belongs to no open call gets none.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { JsonObject } from "./json.ts";
import { Set } from "./primordials.ts";

const ENDS: Set<string> = new Set(["llm:response", "provider:error"]);
const WITHIN: Set<string> = new Set(["provider:retry", "provider:throttle"]);

interface ModelRequest {
  /** Null when it has ended. */
  id: string | null;
  /** The call of a provider within which it began; null: none. */
  readonly call: ProviderCall | null;
}

const current = new AsyncLocalStorage<ModelRequest>();

/** Returns the data of an event with the id of the model call that it belongs to, if there is one. */
export function withRequestId(event: string, data: JsonObject): JsonObject {
  const stated = typeof data.request_id === "string" ? data.request_id : null;
  if (event === "llm:request") {
    const request = { id: stated ?? crypto.randomUUID(), call: current.getStore()?.call ?? null };
    current.enterWith(request); // until the end of the emitter's asynchronous function
    request.call?.begin(request);
    return stated === null ? { ...data, request_id: request.id } : data;
  }
  const ends = ENDS.has(event);
  if (!ends && !WITHIN.has(event)) return data;
  const request = current.getStore();
  const id = request?.id ?? null;
  if (ends && request) request.id = null;
  return id === null || stated !== null ? data : { ...data, request_id: id };
}

/** A call of a provider: the model calls within it are its own, and no one else's. */
export class ProviderCall {
  #last: ModelRequest | null = null;

  /** Calls a function in a context of its own. */
  run<T>(call: () => T): T {
    return current.run({ id: null, call: this }, call);
  }

  /** Notes the last model call. */
  begin(request: ModelRequest): void {
    this.#last = request;
  }

  /** Ends the last model call; returns its id, or null if it had ended. */
  end(): string | null {
    const id = this.#last?.id ?? null;
    if (this.#last) this.#last.id = null;
    return id;
  }
}

/** Calls a function whose events belong to no model call of the caller. */
export function outsideOfCalls<T>(call: () => T): T {
  return current.run({ id: null, call: null }, call);
}
