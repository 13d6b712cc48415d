/**
 * Lets a few runs begin in each turn of the event loop, so that a thousand callers at once do not hold up all
 * other requests, and refuses new runs while the process is late or its heap is nearly full, so that those in
 * progress end: a server that takes all work at once answers none of it in time.
 */
import { setImmediate } from "node:timers";
import { getHeapStatistics } from "node:v8";
import { PreampError } from "../../sdk/errors.ts";
import type { Middleware } from "../context.ts";

/** Lateness of the event loop from which new runs are refused, in milliseconds. */
const MAX_LATE_MS = 1_000;
/** Part of the heap from which new runs are refused. */
const MAX_HEAP_PART = 0.8;
/** Milliseconds for which a measurement of the heap is used: it takes 20 µs. */
const HEAP_EVERY_MS = 100;
/** Runs that begin in one turn of the event loop: each takes about a millisecond of it. */
const STARTS_PER_TURN = 8;
/** Milliseconds that a run may wait for its turn. */
const MAX_WAIT_MS = 10_000;
/** `Retry-After` of a refusal, in seconds. */
const RETRY_S = 2;

/** What {@link ProcessLoad} measures. */
export interface LoadDeps {
  /** Monotonic milliseconds. */
  now(): number;
  /** Calls `then` in the next turn of the event loop. */
  nextTurn(then: () => void): void;
  /** Used part of the heap that the process may have, from 0. */
  heapPart(): number;
}

const PROCESS: LoadDeps = {
  now: () => performance.now(),
  nextTurn: (then) => void setImmediate(then),
  heapPart() {
    const { used_heap_size, heap_size_limit } = getHeapStatistics();
    return used_heap_size / heap_size_limit;
  },
};

/** Measures how late the event loop is and how full the heap, and spreads work; only while it is asked. */
export class ProcessLoad {
  readonly #deps: LoadDeps;
  /** Runs that have begun in the current turn. */
  #begun = 0;
  /** Those that wait for a later turn, the first one first. */
  readonly #waiting: (() => void)[] = [];
  /** When the current turn was asked for; null: none is. */
  #asked_ms: number | null = null;
  /** How long the last turn took that was asked for. */
  #last_ms = 0;
  #heap = { part: 0, until_ms: -Infinity };

  constructor(deps: LoadDeps = PROCESS) {
    this.#deps = deps;
  }

  /** Resolves when one more run may begin. @throws {PreampError} `overloaded` when it has waited too long. */
  async turn(): Promise<void> {
    if (this.#begun < STARTS_PER_TURN && this.#waiting.length === 0) {
      this.#begun++;
      return this.#askForTurn();
    }
    const since_ms = this.#deps.now();
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const waited_ms = this.#deps.now() - since_ms;
    if (waited_ms > MAX_WAIT_MS) throw overloaded(`${this.#waiting.length} runs wait to begin`);
  }

  #askForTurn(): void {
    if (this.#asked_ms !== null) return;
    const asked_ms = this.#asked_ms = this.#deps.now();
    this.#deps.nextTurn(() => {
      this.#last_ms = this.#deps.now() - asked_ms;
      this.#asked_ms = null;
      const next = this.#waiting.splice(0, STARTS_PER_TURN);
      this.#begun = next.length;
      if (next.length > 0) this.#askForTurn();
      for (const begin of next) begin();
    });
  }

  /** Returns why the process can take no new work; null if it can. */
  reason(): string | null {
    const now_ms = this.#deps.now();
    const late_ms = this.#asked_ms === null
      ? this.#last_ms
      : Math.max(this.#last_ms, now_ms - this.#asked_ms);
    this.#askForTurn();
    if (late_ms > MAX_LATE_MS) return `its event loop is ${(late_ms / 1000).toFixed(1)} s late`;
    if (now_ms >= this.#heap.until_ms) {
      this.#heap = { part: this.#deps.heapPart(), until_ms: now_ms + HEAP_EVERY_MS };
    }
    return this.#heap.part > MAX_HEAP_PART
      ? `${Math.round(this.#heap.part * 100)} % of its memory are used`
      : null;
  }
}

/** Lets a request that starts a run begin in its turn, or refuses it. Throws `overloaded`. */
export function shedLoad(load: ProcessLoad): Middleware {
  return async (_, next) => {
    await load.turn();
    const reason = load.reason();
    if (reason !== null) throw overloaded(reason);
    await next();
  };
}

function overloaded(reason: string): PreampError {
  return new PreampError("overloaded", `Cannot start a run: the server is overloaded: ${reason}`, {
    facts: { retry_after_s: RETRY_S },
  });
}
