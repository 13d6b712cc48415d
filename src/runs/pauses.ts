/**
 * Pauses of a run that works long without waiting for anything: then all that it does happens in one turn of the event loop, and
 * no request is answered meanwhile.
 */
import { setImmediate } from "node:timers";

/** Entries between two looks at the clock: a run with fewer never pauses. */
const EVERY = 32;
/** Milliseconds of work after which a run pauses. */
const SLICE_MS = 20;

/** The pauses of one run. */
export class Pauses {
  #entries = 0;
  #since = performance.now();

  /** Counts an entry; returns a promise when the run is to wait until the event loop has gone round. */
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
