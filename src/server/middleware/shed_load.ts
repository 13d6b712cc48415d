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
/** Late turns in a row from which the process is overloaded. */
const LATE_TURNS = 2;
/** Part of the heap from which new runs wait, as it is expected, and from which they are refused. */
const CROWDED_PART = 0.6;
const MAX_HEAP_PART = 0.8;
/**
 * Bytes that a run is expected to take still: its answer of some 100 kB is several times in memory, as text
 * and as entries of the log. Answers of runs that begin together also grow together.
 */
const RUN_BYTES = 1024 * 1024;
/** Milliseconds for which a measurement of the heap is used: it takes 20 µs. */
const HEAP_EVERY_MS = 20;
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
  /** Calls `then` after a time. */
  later(ms: number, then: () => void): void;
  /** Bytes of the heap that are used, and that the process may have. */
  heap(): { used: number; limit: number };
}

/**
 * Bytes of V8's limit that only short-lived objects may use: three parts of 32 MiB. A process ends when the
 * rest is full.
 */
const YOUNG_BYTES = 3 * 32 * 1024 * 1024;

const PROCESS: LoadDeps = {
  now: () => performance.now(),
  nextTurn: (then) => void setImmediate(then),
  later: (ms, then) => void setTimeout(then, ms),
  heap() {
    const { used_heap_size: used, heap_size_limit } = getHeapStatistics();
    return { used, limit: Math.max(heap_size_limit - YOUNG_BYTES, YOUNG_BYTES) };
  },
};

/** A run that waits to begin. */
interface Waiting {
  readonly since_ms: number;
  begin(begun: () => void): void;
  refuse(error: PreampError): void;
}

/** Measures how late the event loop is and how full the heap, and spreads work; only while it is asked. */
export class ProcessLoad {
  readonly #executing: () => number;
  readonly #deps: LoadDeps;
  /** Runs that have begun in the current turn. */
  #begun = 0;
  /** Runs that have begun and do not execute yet. */
  #starting = 0;
  /** Those that wait for a later turn, the first one first. */
  #waiting: Waiting[] = [];
  /** When the current turn was asked for; null: none is. */
  #asked_ms: number | null = null;
  /** Turns in a row that took too long, and when the last one came. */
  #late = { turns: 0, at_ms: -Infinity };
  #heap = { used: 0, limit: Infinity, until_ms: -Infinity };

  /** @param executing Returns the number of runs that execute. */
  constructor(executing: () => number, deps: LoadDeps = PROCESS) {
    this.#executing = executing;
    this.#deps = deps;
  }

  /**
   * Resolves when one more run may begin, to a function that is to be called when it executes, or does not.
   * @throws {PreampError} `overloaded` while the process can take no new work, or after too long a wait.
   */
  async turn(): Promise<() => void> {
    const now_ms = this.#deps.now();
    const is_late = this.#asked_ms !== null && now_ms - this.#asked_ms > MAX_LATE_MS;
    const before = now_ms - this.#late.at_ms < MAX_LATE_MS ? this.#late.turns : 0;
    this.#askForTurn();
    // one slow turn, as of a first run that loads its modules, is no overload
    if (before + Number(is_late) >= LATE_TURNS) {
      throw overloaded(`its event loop is more than ${MAX_LATE_MS / 1000} s late`);
    }
    const { used, expected } = this.#heapParts();
    if (used > MAX_HEAP_PART) throw overloaded(`${Math.round(used * 100)} % of its memory are used`);
    if (expected <= CROWDED_PART && this.#begun < STARTS_PER_TURN && this.#waiting.length === 0) {
      this.#begun++;
      return this.#start();
    }
    return await new Promise((begin, refuse) => this.#waiting.push({ since_ms: now_ms, begin, refuse }));
  }

  #start(): () => void {
    this.#starting++;
    let is_open = true;
    return () => {
      if (is_open) this.#starting--;
      is_open = false;
    };
  }

  /** Returns the part of the heap that is used, and that is expected with the answers of all runs. */
  #heapParts(): { used: number; expected: number } {
    const now_ms = this.#deps.now();
    if (now_ms >= this.#heap.until_ms) {
      this.#heap = { ...this.#deps.heap(), until_ms: now_ms + HEAP_EVERY_MS };
    }
    const { used, limit } = this.#heap;
    const live_bytes = (this.#starting + this.#executing()) * RUN_BYTES;
    return { used: used / limit, expected: (used + live_bytes) / limit };
  }

  #askForTurn(): void {
    if (this.#asked_ms !== null) return;
    const asked_ms = this.#asked_ms = this.#deps.now();
    this.#deps.nextTurn(() => {
      const now_ms = this.#deps.now();
      const is_late = now_ms - asked_ms > MAX_LATE_MS;
      this.#late = { turns: is_late ? this.#late.turns + 1 : 0, at_ms: now_ms };
      this.#asked_ms = null;
      this.#next(now_ms);
    });
  }

  /** Lets the next runs begin, and refuses those that have waited too long. */
  #next(now_ms: number): void {
    const late = this.#waiting.findLastIndex(({ since_ms }) => now_ms - since_ms > MAX_WAIT_MS) + 1;
    for (const { refuse } of this.#waiting.splice(0, late)) {
      refuse(overloaded("it has runs that wait to begin"));
    }
    for (
      this.#begun = 0;
      this.#begun < STARTS_PER_TURN && this.#heapParts().expected <= CROWDED_PART;
      this.#begun++
    ) {
      const next = this.#waiting.shift();
      if (!next) return;
      next.begin(this.#start());
    }
    if (this.#waiting.length === 0) return;
    if (this.#begun > 0) this.#askForTurn();
    else this.#deps.later(HEAP_EVERY_MS, () => this.#askForTurn()); // it is crowded
  }
}

/** Lets a request that starts a run begin in its turn, or refuses it. Throws `overloaded`. */
export function shedLoad(load: ProcessLoad): Middleware {
  return async ({ env }, next) => {
    env.begun = await load.turn();
    try {
      await next();
    } finally {
      env.begun();
    }
  };
}

function overloaded(reason: string): PreampError {
  return new PreampError("overloaded", `Cannot start a run: the server is overloaded: ${reason}`, {
    facts: { retry_after_s: RETRY_S },
  });
}
