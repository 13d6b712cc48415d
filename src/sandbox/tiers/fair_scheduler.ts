/** Shares the main thread among guests: after 4 ms of work in 50 ms a guest waits until the others have been served. */

/** Milliseconds of work before a guest must wait; well below an acceptable delay of a request. */
const SLICE_MS = 4;
/** Milliseconds after which past work no longer counts. */
const WINDOW_MS = 50;

/** Scheduler of the messages of guests on one thread. */
export class FairScheduler {
  readonly #monotonic: () => number;
  readonly #later: (then: () => void) => void;
  readonly #waiting: (() => void)[] = [];
  #window_start = 0;
  #worked_ms = 0;
  #started_at = 0;

  /**
   * @param monotonic Returns monotonic milliseconds. Default `performance.now`.
   * @param later Calls back in the next event-loop turn. Default: a timer.
   */
  constructor(
    monotonic: () => number = () => performance.now(),
    later: (then: () => void) => void = (then) => void setTimeout(then, 0),
  ) {
    this.#monotonic = monotonic;
    this.#later = later;
  }

  /** Starts a unit of work. */
  begin(): void {
    this.#started_at = this.#monotonic();
  }

  /**
   * Ends a unit of work. Returns a promise if the slice is used up; it resolves after other events were handled. Waiting guests
   * resume one per event-loop turn.
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
