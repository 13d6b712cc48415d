import type { SystemClock } from "../../src/process/system_clock.ts";

/** A clock that only {@link FakeClock.advance} moves. */
export class FakeClock implements SystemClock {
  #now = 0;
  readonly #timers = new Map<() => void, { at: number; callback: () => void }>();

  /** Number of timers. */
  get pending(): number {
    return this.#timers.size;
  }

  monotonic(): number {
    return this.#now;
  }

  now(): number {
    return Date.UTC(2026, 10, 21, 10) + this.#now;
  }

  later(ms: number, callback: () => void): () => void {
    const stop = () => void this.#timers.delete(stop);
    this.#timers.set(stop, { at: this.#now + ms, callback });
    return stop;
  }

  after(ms: number): Promise<void> {
    return new Promise((resolve) => void this.later(ms, resolve));
  }

  tick(ms: number, callback: () => void): void {
    this.later(ms, callback);
  }

  /** Moves time; calls due callbacks in order of time and runs pending microtasks after each. */
  async advance(ms: number): Promise<void> {
    await settle();
    const end = this.#now + ms;
    for (;;) {
      const next = [...this.#timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!next) break;
      const [stop, { at, callback }] = next;
      stop();
      this.#now = at;
      callback();
      await settle();
    }
    this.#now = end;
    await settle();
  }
}

/** Resolves when `condition` holds; has no timeout of its own. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await settle();
  await settle();
}

/** Resolves after one turn of the event loop, when all settled promises have been handled. */
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
