/** Stopwatches by key. */
import type { Clock } from "preamp/base";

/** Maximum number of running stopwatches; the oldest is dropped first. Those of denied calls are never stopped. */
const MAX_RUNNING = 1_000;

/** Measures with the session's monotonic clock, which changes of the system time do not affect. */
export class Stopwatches {
  readonly #clock: Clock;
  readonly #started = new Map<string, number>();

  /** Creates a set without running stopwatches. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts the stopwatch of a key, from zero if it is running. */
  start(key: string): void {
    this.#started.delete(key);
    this.#started.set(key, this.#clock.monotonic());
    if (this.#started.size > MAX_RUNNING) {
      const oldest = this.#started.keys().next();
      if (!oldest.done) this.#started.delete(oldest.value);
    }
  }

  /** Restarts the stopwatch of a key from zero if it is running. */
  restart(key: string): void {
    if (this.#started.has(key)) this.start(key);
  }

  /** Stops the stopwatch of a key and returns its milliseconds; undefined when it was not running. */
  stop(key: string): number | undefined {
    const started = this.#started.get(key);
    if (started === undefined) return undefined;
    this.#started.delete(key);
    return Math.max(0, this.#clock.monotonic() - started);
  }

  /** Removes the stopwatch of a key. */
  drop(key: string): void {
    this.#started.delete(key);
  }

  /** Removes all stopwatches. */
  clear(): void {
    this.#started.clear();
  }
}
