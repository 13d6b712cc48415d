/** A clock that a test moves. */
import type { ServerClock } from "../../src/server/clock.ts";

/** Time that stands still until {@link FakeClock.advance}. */
export class FakeClock implements ServerClock {
  #now = 0;
  readonly #timers = new Map<() => void, { at: number; callback: () => void }>();

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  monotonic(): number {
    return this.#now;
  }

  now(): number {
    return Date.UTC(2026, 10, 21, 10) + this.#now;
  }

  timer(ms: number, callback: () => void): () => void {
    const stop = () => void this.#timers.delete(stop);
    this.#timers.set(stop, { at: this.#now + ms, callback });
    return stop;
  }

  tick(ms: number, callback: () => void): void {
    this.timer(ms, callback);
  }

  /** Moves time and calls what became due, in order, letting each callback's promises run. */
  async advance(ms: number): Promise<void> {
    await settle();
    const end = this.#now + ms;
    for (;;) {
      const due = [...this.#timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      const [stop, { at, callback }] = due;
      stop();
      this.#now = at;
      callback();
      await settle();
    }
    this.#now = end;
    await settle();
  }
}

/** Resolves when `condition` holds; whoever waits for what never comes is stopped by the test's own end. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await settle();
  await settle();
}

/** Lets everything run that waits for nothing but promises. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port2.onmessage = () => {
      port1.close();
      port2.close();
      resolve();
    };
    port1.postMessage(null);
  });
}
