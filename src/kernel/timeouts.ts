/** Waiting for a promise with a deadline or an abort signal. Time comes from the host's clock. */
import type { HostClock } from "./host.ts";

/** Settles as `promise` does, or rejects with `onTimeout()` after `ms` milliseconds. */
export function withDeadline<T>(
  promise: PromiseLike<T>,
  ms: number,
  clock: HostClock,
  onTimeout: () => Error,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = clock.later(ms, () => reject(onTimeout()));
    Promise.resolve(promise).then((value) => { // a module may return any thenable
      stop();
      resolve(value);
    }, (error) => {
      stop();
      reject(error);
    });
  });
}

/** Settles as `promise` does, or rejects with the signal's reason as soon as the signal aborts. */
export function withAbort<T>(promise: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  const pending = Promise.resolve(promise); // a module may return any thenable
  if (signal.aborted) {
    pending.catch(() => {}); // the caller receives the reason of the abort instead
    return Promise.reject(signal.reason);
  }
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    pending.then((value) => {
      signal.removeEventListener("abort", abort);
      resolve(value);
    }, (error) => {
      signal.removeEventListener("abort", abort);
      reject(error);
    });
  });
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
  const pending = Promise.resolve(promise); // a module may return any thenable
  return new Promise<T>((resolve, reject) => {
    let stop: (() => void) | null = null;
    const wait = () => {
      stop = clock.later(grace_ms, () => reject(signal.reason));
    };
    const done = () => {
      stop?.();
      signal.removeEventListener("abort", wait);
    };
    if (signal.aborted) wait();
    else signal.addEventListener("abort", wait, { once: true });
    pending.then(resolve, reject).finally(done);
  });
}
