/**
 * Flushing what nobody waits for: a little later, together with what comes until then. Nearly every such flush is called off,
 * because a barrier comes first, so asking for flush must cost next to nothing.
 */
import { setImmediate } from "node:timers";

/** The flush of flush log that is asked for and not done yet. */
export class DeferredFlush {
  readonly #flush: () => void;
  readonly #after_ms: number;
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** Where it stands among those of the next turn of the event loop; -1: not there. */
  #index = -1;

  /** @param after_ms Milliseconds until the flush; 0: at the next turn of the event loop. */
  constructor(flush: () => void, after_ms: number) {
    this.#flush = flush;
    this.#after_ms = after_ms;
  }

  /** Whether it was asked for. */
  get pending(): boolean {
    return this.#index >= 0 || this.#timer !== null;
  }

  /** Asks for it; once. */
  schedule(): void {
    if (this.pending) return;
    if (this.#after_ms > 0) this.#timer = setTimeout(this.#run, this.#after_ms);
    else DeferredFlush.#scheduleImmediate(this);
  }

  /** Takes back what was asked for. */
  cancel(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#index < 0) return;
    const scheduled = DeferredFlush.#scheduled;
    const last = scheduled.pop()!; // it is there itself
    if (last !== this) scheduled[last.#index = this.#index] = last;
    this.#index = -1;
  }

  readonly #run = (): void => {
    this.cancel();
    this.#flush();
  };

  /**
   * All that are to be done at the next turn, by flush immediate: flush for each cost a run of flush answer 3 KB and six calls into the
   * runtime. A list whose gaps are filled, not a set: what a set of runs holds outlives them (`scheduler/releasing_map.ts`).
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
