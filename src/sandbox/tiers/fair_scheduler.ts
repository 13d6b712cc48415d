/** The server's thread, shared out among guests: whoever has had it for a while lets everybody else have it first. */

/** Milliseconds of work after which others have their turn: well below what a request may have to wait. */
const SLICE_MS = 4;
/** Milliseconds after which work is forgotten: little now and little then needs no turn. */
const WINDOW_MS = 50;

/** Turns of one thread. */
export class FairScheduler {
  readonly #monotonic: () => number;
  readonly #later: (then: () => void) => void;
  readonly #waiting: (() => void)[] = [];
  #window_start = 0;
  #worked_ms = 0;
  #started_at = 0;

  /**
   * @param monotonic Milliseconds of a clock that never goes back. Default `performance.now`.
   * @param later Calls back when the event loop has been round. Default a timer.
   */
  constructor(
    monotonic: () => number = () => performance.now(),
    later: (then: () => void) => void = (then) => void setTimeout(then, 0),
  ) {
    this.#monotonic = monotonic;
    this.#later = later;
  }

  /** A piece of work begins. */
  begin(): void {
    this.#started_at = this.#monotonic();
  }

  /**
   * The piece of work is done. A promise: the slice is used up, and it resolves when everybody else had their turn; those who wait
   * for it come one at a time.
   */
  end(): Promise<void> | undefined {
    const now = this.#monotonic();
    if (now - this.#window_start > WINDOW_MS) {
      this.#window_start = now;
      this.#worked_ms = 0;
    }
    this.#worked_ms += now - this.#started_at;
    if (this.#worked_ms < SLICE_MS && this.#waiting.length === 0) return undefined;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) this.#later(() => this.#resumeNext());
    });
  }

  #resumeNext(): void {
    this.#worked_ms = 0;
    this.#window_start = this.#monotonic();
    const next = this.#waiting.shift();
    if (this.#waiting.length > 0) this.#later(() => this.#resumeNext());
    next?.();
  }
}
