/** Waiting for a promise, unless a deadline passes or something aborts. Time comes from the host's clock. */
import { onAbort, unless } from "../sdk/abortable.ts";
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
 * Settles as `promise` does, or rejects with the signal's reason `grace_ms` milliseconds after the signal
 * aborts, so that a module has time to clean up.
 */
export function withGrace<T>(
  promise: PromiseLike<T>,
  signal: AbortSignal,
  grace_ms: number,
  clock: HostClock,
): Promise<T> {
  return unless(promise, (reject) => {
    let stop: (() => void) | null = null;
    const ignore = onAbort(signal, () => {
      stop = clock.later(grace_ms, () => reject(signal.reason));
    });
    return () => {
      stop?.();
      ignore();
    };
  });
}

/**
 * Ends what a turn waits for: on immediate cancellation, and when the run reaches `max_duration_s`. One
 * object a turn, so that its signal has no listener for each call.
 */
export class StepAbort {
  readonly #controller = new AbortController();
  /** Reason of the abort; null before. perf: reading `signal.aborted` takes ten times as long. */
  #ended: { reason: unknown } | null = null;
  /** perf: few wait at a time, and a Set allocates a new table with every other deletion. */
  readonly #waiting: ((reason: unknown) => void)[] = [];

  get is_ended(): boolean {
    return this.#ended !== null;
  }

  /** Whether something waits that the abort would end. */
  get is_waited_for(): boolean {
    return this.#ended === null && this.#waiting.length > 0;
  }

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
    return unless(promise, (reject) => {
      this.add(reject);
      return () => this.remove(reject);
    });
  }
}
