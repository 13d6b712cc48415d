/** Waiting for a promise, unless a deadline passes or something aborts. Time comes from the host's clock. */
import { unless } from "../sdk/abortable.ts";
import type { HostClock } from "./host.ts";

/** Settles as `promise` does, or rejects with `onTimeout()` after `ms` milliseconds. */
export function withDeadline<T>(
  promise: PromiseLike<T>,
  ms: number,
  clock: HostClock,
  onTimeout: () => Error,
): Promise<T> {
  return unless(promise, (reject) => clock.later(ms, () => reject(onTimeout())));
}

/**
 * Ends what a turn waits for: on immediate cancellation, and when the run reaches `max_duration_s`. One
 * object a turn, so that its signal has no listener for each call; a run has one for all its turns.
 */
export class StepAbort {
  #controller: AbortController | null = null;
  /** Reason of the abort; null before. perf: reading `signal.aborted` takes ten times as long. */
  #reason: unknown = null;
  /** perf: few wait at a time, and a Set allocates a new table with every other deletion. */
  readonly #waiting: ((reason: unknown) => void)[] = [];

  /** Reason of the abort; null before. */
  get reason(): unknown {
    return this.#reason;
  }

  get is_ended(): boolean {
    return this.#reason !== null;
  }

  /** Whether something waits that the abort would end. */
  get is_waited_for(): boolean {
    return !this.is_ended && this.#waiting.length > 0;
  }

  /** Aborts when the step must end. Created on first use. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.is_ended) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Aborts the signal, and ends what waits. Only the first abort counts. `reason` is not null. */
  abort(reason: unknown): void {
    if (this.is_ended) return;
    this.#reason = reason;
    this.#controller?.abort(reason);
    for (const end of [...this.#waiting]) end(reason);
  }

  /** Calls `end` with the reason when the step must end, at once when it has, unless it is removed before. */
  add(end: (reason: unknown) => void): void {
    if (this.is_ended) end(this.#reason);
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
    return unless(promise, (reject) => {
      this.add(reject);
      return () => this.remove(reject);
    });
  }

  /**
   * Settles as `promise` does, or rejects with the reason `grace_ms` milliseconds after the step must end, so
   * that a module has time to clean up.
   */
  raceWithGrace<T>(promise: PromiseLike<T>, grace_ms: number, clock: HostClock): Promise<T> {
    return unless(promise, (reject) => {
      let stop: (() => void) | null = null;
      const end = (reason: unknown) => {
        stop = clock.later(grace_ms, () => reject(reason));
      };
      this.add(end);
      return () => {
        stop?.();
        this.remove(end);
      };
    });
  }
}
