/** The time of one call. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #seconds: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(seconds: number) {
    this.#seconds = seconds;
    this.restart();
  }

  /** Aborts when the time is over. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Begins the time again: the server reported progress, or a person has answered. */
  restart(): void {
    this.stop();
    const reason = new Error(`it took more than ${this.#seconds} s`);
    this.#timer = setTimeout(() => this.#controller.abort(reason), this.#seconds * 1000);
  }

  /** Stops the time: the call has ended, or a person is asked. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}
