/**
 * Flushes entries that have no waiting caller at the next turn of the event loop, together with those that
 * follow until then. While a store still commits, further entries wait for the next commit. Most deferred
 * flushes are cancelled because a barrier comes first, so scheduling one must be cheap.
 */
import { setImmediate } from "node:timers";

/** The deferred flush of one log. */
export class DeferredFlush {
  readonly #log: { flush(): Promise<void> | void };
  /** Index in the list of the next immediate; -1 when not in it. */
  #index = -1;

  constructor(log: { flush(): Promise<void> | void }) {
    this.#log = log;
  }

  /** Whether a flush is scheduled. */
  get pending(): boolean {
    return this.#index >= 0;
  }

  /** Schedules a flush at the next turn of the event loop, unless one is scheduled. */
  schedule(): void {
    if (!this.pending) DeferredFlush.#scheduleImmediate(this);
  }

  /** Cancels the scheduled flush. */
  cancel(): void {
    if (this.#index < 0) return;
    const scheduled = DeferredFlush.#scheduled;
    const last = scheduled.pop()!; // not empty: it contains this flush
    if (last !== this) scheduled[last.#index = this.#index] = last;
    this.#index = -1;
  }

  #run(): void {
    this.cancel();
    this.#log.flush()?.catch(() => {}); // the next barrier meets the same store and rejects
  }

  /**
   * Flushes of the next turn of the event loop, by one immediate: one immediate each would cost a short run 3
   * KB and six calls into the runtime. A list with swap-remove, because a Set would retain ended runs
   * (`scheduler/releasing_map.ts`).
   */
  static readonly #scheduled: DeferredFlush[] = [];
  static #is_immediate_set = false;

  static #scheduleImmediate(flush: DeferredFlush): void {
    flush.#index = DeferredFlush.#scheduled.push(flush) - 1;
    if (DeferredFlush.#is_immediate_set) return;
    DeferredFlush.#is_immediate_set = true;
    setImmediate(() => {
      DeferredFlush.#is_immediate_set = false;
      for (const flush of [...DeferredFlush.#scheduled]) if (flush.pending) flush.#run();
    });
  }
}
