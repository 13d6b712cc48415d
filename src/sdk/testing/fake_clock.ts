/** A clock that stands still until a test moves it. Uses no timer: a turn of the event loop is a message to itself. */
import type { Clock } from "../contracts.ts";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly fire: () => void;
}

/** Time under a test's control. `now()` starts at 2026-01-01T00:00:00Z unless told otherwise. */
export class FakeClock implements Clock {
  readonly #start: number;
  #elapsed = 0;
  #order = 0;
  #timers: Timer[] = [];

  /** Creates a clock whose `now()` starts at `start` (milliseconds since the epoch). */
  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#start = start;
  }

  /** Milliseconds since the epoch. */
  now(): number {
    return this.#start + this.#elapsed;
  }

  /** Milliseconds this clock was moved. */
  monotonic(): number {
    return this.#elapsed;
  }

  /** How many waits are open. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Resolves once the clock was moved `ms` further (at once when `ms` is not above 0); rejects when the signal aborts first. */
  after(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (!(ms > 0)) return resolve();
      const timer: Timer = {
        at: this.#elapsed + ms,
        order: this.#order++,
        fire: () => {
          signal?.removeEventListener("abort", abort);
          resolve();
        },
      };
      const abort = () => {
        this.#timers = this.#timers.filter((one) => one !== timer);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#timers.push(timer);
    });
  }

  /**
   * Moves the clock by `ms`. Waits that fall due end in order of their times, and between two of them everything that can run
   * does, so that a wait started by the first may end before the second.
   */
  async advance(ms: number): Promise<void> {
    if (!(ms >= 0)) throw new RangeError(`Cannot advance a clock: must not go backwards: received ${ms}`);
    const target = this.#elapsed + ms;
    await turn();
    for (let timer = this.#next(target); timer; timer = this.#next(target)) {
      this.#elapsed = timer.at;
      await this.#fire(timer);
    }
    this.#elapsed = target;
  }

  /** Moves the clock to the next wait that falls due. Resolves to false when there is none. */
  async advanceToNext(): Promise<boolean> {
    await turn();
    const timer = this.#next(Infinity);
    if (!timer) return false;
    this.#elapsed = timer.at;
    await this.#fire(timer);
    return true;
  }

  #next(until: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at > until) continue;
      if (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) {
        first = timer;
      }
    }
    return first;
  }

  async #fire(timer: Timer): Promise<void> {
    this.#timers = this.#timers.filter((one) => one !== timer);
    timer.fire();
    await turn();
  }
}

/** Resolves after one turn of the event loop: every promise that could settle by itself has. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      port2.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
