/**
 * Ends what a turn waits for: on immediate cancellation, and when the run reaches `max_duration_s`. One object
 * a turn, so that its signal has no listener for each call.
 */
import { withAbort } from "../timeouts.ts";

/** The abort of the current step of a turn. */
export class StepAbort {
  readonly #controller = new AbortController();
  /** Rejects the promise of each {@link race}. */
  readonly #waiting = new Set<(reason: unknown) => void>();

  /** Aborts when the step must end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts the signal, and rejects what waits. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
    for (const reject of this.#waiting) reject(reason);
  }

  /** Settles as `promise` does, or rejects with the reason as soon as the step must end. */
  race<T>(promise: PromiseLike<T>): Promise<T> {
    if (this.signal.aborted) return withAbort(promise, this.signal);
    return new Promise<T>((resolve, reject) => {
      this.#waiting.add(reject);
      Promise.resolve(promise).then((value) => { // a module may return any thenable
        this.#waiting.delete(reject);
        resolve(value);
      }, (error) => {
        this.#waiting.delete(reject);
        reject(error);
      });
    });
  }
}
