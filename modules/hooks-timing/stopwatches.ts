/** Running stopwatches by key. Knows nothing of tools, providers or events. */
import type { Clock } from "preamp";

/** Stopwatches that may run at once; the oldest is forgotten first. Calls that were denied never stop theirs. */
const MAX_RUNNING = 1_000;

/** Measures with the monotonic clock of the session, so a jump of the wall clock changes nothing. */
export class Stopwatches {
  readonly #clock: Clock;
  readonly #started = new Map<string, number>();

  /** Creates none running. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts one; one of the same key starts again. */
  start(key: string): void {
    this.#started.delete(key);
    this.#started.set(key, this.#clock.monotonic());
    if (this.#started.size > MAX_RUNNING) {
      const oldest = this.#started.keys().next();
      if (!oldest.done) this.#started.delete(oldest.value);
    }
  }

  /** Starts a running one again; does nothing to one that is not running. */
  restart(key: string): void {
    if (this.#started.has(key)) this.start(key);
  }

  /** Stops one and returns its milliseconds; undefined when it was not running. */
  stop(key: string): number | undefined {
    const started = this.#started.get(key);
    if (started === undefined) return undefined;
    this.#started.delete(key);
    return Math.max(0, this.#clock.monotonic() - started);
  }

  /** Forgets one. */
  drop(key: string): void {
    this.#started.delete(key);
  }

  /** Forgets all. */
  clear(): void {
    this.#started.clear();
  }
}
