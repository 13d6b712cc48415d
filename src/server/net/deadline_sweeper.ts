/**
 * Deadlines of many things with one tick for all of them: a deadline is moved several times for each request, and a timer of its
 * own would be set and called off each time.
 */
import type { ServerClock } from "../clock.ts";

/** What is told that its time is over. */
export interface HasDeadline {
  /** When, by {@link ServerClock.monotonic}; `Infinity`: never. Whoever is watched moves it. */
  readonly deadline: number;
  /** Its time is over. Takes it out of the watch. */
  close(): void;
}

/** Watches deadlines. Has a tick under way only while there is something to watch. */
export class DeadlineSweeper {
  readonly #watched = new Set<HasDeadline>();
  readonly #clock: ServerClock;
  readonly #tick_ms: number;
  #ticking = false;

  /** @param tick_ms How early a deadline may be taken, in milliseconds. */
  constructor(clock: ServerClock, tick_ms: number) {
    this.#clock = clock;
    this.#tick_ms = tick_ms;
  }

  add(one: HasDeadline): void {
    this.#watched.add(one);
    this.#wait();
  }

  delete(one: HasDeadline): void {
    this.#watched.delete(one);
  }

  #wait(): void {
    if (this.#ticking || this.#watched.size === 0) return;
    this.#ticking = true;
    this.#clock.tick(this.#tick_ms, () => {
      this.#ticking = false;
      const before = this.#clock.monotonic() + this.#tick_ms; // who is due before the next look
      for (const one of this.#watched) if (one.deadline < before) one.close();
      this.#wait();
    });
  }
}
