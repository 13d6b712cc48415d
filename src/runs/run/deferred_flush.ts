/**
 * Flushing what nobody waits for: a little later, together with what comes until then. Nearly every such flush is called off,
 * because a barrier comes first, so asking for one must cost next to nothing.
 */
import { setImmediate } from "node:timers";

/** The flush of one log that is asked for and not done yet. */
export class DeferredFlush {
  readonly #flush: () => void;
  readonly #after_ms: number;
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** Where it stands among those of the next turn of the event loop; -1: not there. */
  #at = -1;

  /** @param after_ms Milliseconds until the flush; 0: at the next turn of the event loop. */
  constructor(flush: () => void, after_ms: number) {
    this.#flush = flush;
    this.#after_ms = after_ms;
  }

  /** Whether it was asked for. */
  get pending(): boolean {
    return this.#at >= 0 || this.#timer !== null;
  }

  /** Asks for it; once. */
  schedule(): void {
    if (this.pending) return;
    if (this.#after_ms > 0) this.#timer = setTimeout(this.#run, this.#after_ms);
    else DeferredFlush.#next(this);
  }

  /** Takes back what was asked for. */
  cancel(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#at < 0) return;
    const soon = DeferredFlush.#soon;
    const last = soon.pop()!; // it is there itself
    if (last !== this) soon[last.#at = this.#at] = last;
    this.#at = -1;
  }

  readonly #run = (): void => {
    this.cancel();
    this.#flush();
  };

  /**
   * All that are to be done at the next turn, by one immediate: one for each cost a run of one answer 3 KB and six calls into the
   * runtime. A list whose gaps are filled, not a set: what a set of runs holds outlives them (`scheduler/releasing_map.ts`).
   */
  static readonly #soon: DeferredFlush[] = [];
  static #is_armed = false;

  static #next(one: DeferredFlush): void {
    one.#at = DeferredFlush.#soon.push(one) - 1;
    if (DeferredFlush.#is_armed) return;
    DeferredFlush.#is_armed = true;
    setImmediate(() => {
      DeferredFlush.#is_armed = false;
      for (const flush of [...DeferredFlush.#soon]) if (flush.pending) flush.#run();
    });
  }
}
