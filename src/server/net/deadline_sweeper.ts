/**
 * Closes objects whose deadline has passed, with one periodic tick for all of them. A timer for each body, or for each
 * connection, whose deadline moves several times per request, would be set and cleared each time.
 */
import type { SystemClock } from "../../process/system_clock.ts";

/** An object with a deadline. */
export interface HasDeadline {
  /** Monotonic milliseconds; `Infinity` disables it. The owner updates it. */
  readonly deadline: number;
  /** Called once the deadline has passed. Must remove the object from the sweeper. */
  close(): void;
}

/** Closes objects whose deadline has passed. Ticks only while it has objects. */
export class DeadlineSweeper {
  readonly #items = new Set<HasDeadline>();
  readonly #clock: SystemClock;
  readonly #tick_ms: number;
  #ticking = false;

  /** @param tick_ms Milliseconds between two checks; an object is closed up to this much early. */
  constructor(clock: SystemClock, tick_ms: number) {
    this.#clock = clock;
    this.#tick_ms = tick_ms;
  }

  /** Returns the current time on the scale of deadlines. */
  now(): number {
    return this.#clock.monotonic();
  }

  add(item: HasDeadline): void {
    this.#items.add(item);
    this.#scheduleTick();
  }

  delete(item: HasDeadline): void {
    this.#items.delete(item);
  }

  #scheduleTick(): void {
    if (this.#ticking || this.#items.size === 0) return;
    this.#ticking = true;
    this.#clock.tick(this.#tick_ms, () => {
      this.#ticking = false;
      const next_check = this.#clock.monotonic() + this.#tick_ms;
      for (const item of this.#items) if (item.deadline < next_check) item.close();
      this.#scheduleTick();
    });
  }
}
