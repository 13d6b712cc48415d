/** Measures how late the event loop runs timers. `monitorEventLoopDelay` of Deno 2.9 does not see a busy loop. */
import type { GaugeValue } from "./metric_table.ts";

/** Milliseconds between measurements. */
const EVERY_MS = 250;

/** The longest delay since it was last read. Measures only after the first reading, so that it is free before. */
export class LoopDelay {
  #timer: ReturnType<typeof setInterval> | undefined;
  #due = 0;
  #longest_ms = 0;

  /** Returns the longest delay since the previous call in seconds; nothing on the first call. */
  take(): readonly GaugeValue[] {
    if (this.#timer === undefined) {
      this.#due = performance.now() + EVERY_MS;
      const timer = this.#timer = setInterval(() => this.#measure(), EVERY_MS);
      Deno.unrefTimer(timer);
      return [];
    }
    const value = Math.max(this.#longest_ms, performance.now() - this.#due, 0) / 1000;
    this.#longest_ms = 0;
    return [{ labels: {}, value }];
  }

  #measure(): void {
    const now = performance.now();
    this.#longest_ms = Math.max(this.#longest_ms, now - this.#due);
    this.#due = now + EVERY_MS;
  }

  /** Stops measuring. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
