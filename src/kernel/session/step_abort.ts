/**
 * Ends what a turn waits for: on immediate cancellation, and when the run reaches `max_duration_s`. One object
 * a turn, so that its signal has no listener for each call.
 */

/** The abort of the current step of a turn. */
export class StepAbort {
  readonly #controller = new AbortController();
  /** Reason of the abort; null before. perf: reading `signal.aborted` takes ten times as long. */
  #ended: { reason: unknown } | null = null;
  /** perf: few wait at a time, and a Set allocates a new table with every other deletion. */
  readonly #waiting: ((reason: unknown) => void)[] = [];

  /** Aborts when the step must end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts the signal, and ends what waits. Only the first abort counts. */
  abort(reason: unknown): void {
    if (this.#ended) return;
    this.#ended = { reason };
    this.#controller.abort(reason);
    for (const end of [...this.#waiting]) end(reason);
  }

  /** Calls `end` with the reason when the step must end, at once when it has, unless it is removed before. */
  add(end: (reason: unknown) => void): void {
    if (this.#ended) end(this.#ended.reason);
    else this.#waiting.push(end);
  }

  /** Removes a function that {@link add} added. */
  remove(end: (reason: unknown) => void): void {
    const index = this.#waiting.indexOf(end);
    if (index < 0) return;
    const last = this.#waiting.pop()!; // not empty: it contains this one
    if (last !== end) this.#waiting[index] = last;
  }

  /** Settles as `promise` does, or rejects with the reason as soon as the step must end. */
  race<T>(promise: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.add(reject);
      Promise.resolve(promise).then((value) => { // a module may return any thenable
        this.remove(reject);
        resolve(value);
      }, (error) => {
        this.remove(reject);
        reject(error);
      });
    });
  }
}
