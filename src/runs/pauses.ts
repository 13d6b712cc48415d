/**
 * Makes a run that never waits pause now and then. Without pauses, all its work would happen in one turn of
 * the event loop, and no request would be answered meanwhile.
 */
import { setImmediate } from "node:timers";

/** Entries between two readings of the clock: a run with fewer entries never pauses. */
const EVERY = 32;
/** Milliseconds of work after which a run pauses. */
const SLICE_MS = 20;

/** Counts the entries of one run and decides when the run pauses. */
export class Pauses {
  #entries = 0;
  #since = performance.now();

  /** Counts an entry. Returns a promise when the run must wait for the next turn of the event loop. */
  next(): Promise<void> | void {
    if (++this.#entries % EVERY !== 0 || performance.now() - this.#since < SLICE_MS) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    setImmediate(() => {
      this.#since = performance.now();
      resolve();
    });
    return promise;
  }
}
