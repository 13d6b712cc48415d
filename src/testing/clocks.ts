/** Time in tests: a clock that a test advances, waits for conditions, and timeouts. */
import { setImmediate } from "node:timers";
import { waitOf } from "../sdk/abortable.ts";
import type { Clock } from "../sdk/contracts.ts";

interface Timer {
  readonly at: number;
  readonly fire: () => void;
}

/**
 * A clock that advances only when a test advances it. `now()` starts at 2026-01-01T00:00:00Z by default. Uses
 * no timers: it waits for turns of the event loop.
 */
export class FakeClock implements Clock {
  readonly #start: number;
  #elapsed = 0;
  /** In the order in which they are due; of two at the same time, the older is first. */
  readonly #timers: Timer[] = [];

  /** Creates a clock whose `now()` starts at `start` (milliseconds since the epoch). */
  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#start = start;
  }

  now(): number {
    return this.#start + this.#elapsed;
  }

  /** Returns the milliseconds that this clock was advanced. */
  monotonic(): number {
    return this.#elapsed;
  }

  /** Number of pending waits. */
  get pending(): number {
    return this.#timers.length;
  }

  /**
   * Resolves when the clock has advanced by `ms` (at once when `ms` is not above 0); rejects if the signal
   * aborts first.
   */
  after(ms: number, signal?: AbortSignal): Promise<void> {
    return ms > 0 || signal?.aborted ? waitOf((end) => this.later(ms, end), signal) : Promise.resolve();
  }

  /** Calls `callback` when the clock has advanced by `ms`, unless the returned function is called first. */
  later(ms: number, callback: () => void): () => void {
    const timer: Timer = { at: this.#elapsed + Math.max(0, ms), fire: callback };
    const before = this.#timers.findLastIndex(({ at }) => at <= timer.at);
    this.#timers.splice(before + 1, 0, timer);
    return () => {
      const index = this.#timers.indexOf(timer);
      if (index !== -1) this.#timers.splice(index, 1);
    };
  }

  /**
   * Advances the clock by `ms`. Due waits end in order of their times. All work runs between two of them, so
   * that a wait started after the first may end before the second.
   */
  async advance(ms: number): Promise<void> {
    if (!(ms >= 0)) throw new RangeError(`Cannot advance a clock: must not go backwards: received ${ms}`);
    const target = this.#elapsed + ms;
    await turn();
    while (await this.#fireNext(target));
    this.#elapsed = target;
  }

  /** Advances the clock to the next due wait. Resolves to false when no wait is pending. */
  async advanceToNext(): Promise<boolean> {
    await turn();
    return await this.#fireNext(Infinity);
  }

  /** Ends the first wait that is due at `until`, if there is one. */
  async #fireNext(until: number): Promise<boolean> {
    const timer = this.#timers[0];
    if (timer === undefined || timer.at > until) return false;
    this.#timers.shift();
    this.#elapsed = timer.at;
    timer.fire();
    await turn();
    return true;
  }
}

/**
 * Resolves after a turn of the event loop, when all promises that can settle have settled, also those of work
 * that waits for an immediate.
 */
export function turn(): Promise<void> {
  // not by a message to itself: after `process.getBuiltinModule()` that arrives before other promises settle
  // (Deno 2.9)
  return new Promise((resolve) => void setImmediate(() => setImmediate(resolve)));
}

/** The real clock, with which {@link waitFor} and the timeouts of a suite measure. */
export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, signal) =>
    waitOf((end) => {
      const timer = setTimeout(end, ms);
      return () => clearTimeout(timer);
    }, signal),
};

/** Options of {@link waitFor}. */
export interface WaitOptions {
  /** Timeout in milliseconds; default 30,000, which a busy machine needs now and then. */
  timeout_ms?: number;
  /** Milliseconds between two checks; default 10. */
  interval_ms?: number;
  /** Clock of the waits; default: real time. A FakeClock must be advanced elsewhere. */
  clock?: Clock;
}

/** Resolves to true as soon as the condition holds, or to false after the timeout. */
export async function waitFor(
  condition: () => unknown,
  { timeout_ms = 30_000, interval_ms = 10, clock = realClock }: WaitOptions = {},
): Promise<boolean> {
  const end = clock.monotonic() + timeout_ms;
  while (!(await condition())) {
    if (clock.monotonic() >= end) return false;
    await clock.after(interval_ms);
  }
  return true;
}

/**
 * Resolves to the value of `pending`.
 *
 * @throws {Error} with `message` when that takes longer than `ms` milliseconds (0 = no limit).
 */
export async function withinTime<T>(
  pending: Promise<T>,
  ms: number,
  message: string,
  clock: Clock = realClock,
): Promise<T> {
  if (ms <= 0) return await pending;
  const settled = new AbortController();
  const late = clock.after(ms, settled.signal).then(() => {
    throw new Error(message);
  });
  late.catch(() => {}); // aborted by `settled` below; its rejection is not awaited
  try {
    return await Promise.race([pending, late]);
  } finally {
    settled.abort();
  }
}
