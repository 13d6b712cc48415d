/** Waiting that ends: a promise against a deadline, a promise against a signal. Owns no clock; refuses to wait for ever. */
import type { HostClock } from "./host.ts";

/** Reason of timers that are no longer needed; one object, because a fresh `DOMException` each time costs more than the timer. */
export const STOPPED = new Error("Stopped: no longer needed");

/**
 * Calls back after `ms`, unless the returned function is called before. A clock that knows no cheaper way waits under a
 * signal, which costs as much again as the timer.
 */
export function later(clock: HostClock, ms: number, then: () => void): () => void {
  if (clock.later) return clock.later(ms, then);
  const timer = new AbortController();
  clock.after(ms, timer.signal).then(then, () => {}); // called off
  return () => timer.abort(STOPPED);
}

/**
 * Resolves or rejects as `given` does, or rejects with `onTimeout()` after `ms`. A promise that settles within a few
 * turns of the microtask queue costs no timer.
 */
export async function withDeadline<T>(
  given: PromiseLike<T>,
  ms: number,
  clock: HostClock,
  onTimeout: () => Error,
): Promise<T> {
  const pending = Promise.resolve(given); // a thenable of a module's need not be a promise
  if (await settlesSoon(pending)) return pending;
  return await new Promise<T>((resolve, reject) => {
    const stop = later(clock, ms, () => reject(onTimeout()));
    pending.then(resolve, reject).finally(stop);
  });
}

/** Resolves to whether a promise settles within a few turns of the microtask queue: then no timer is needed to wait for it. */
export async function settlesSoon(pending: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const mark = () => {
    settled = true;
  };
  pending.then(mark, mark);
  for (let turn = 0; turn < 4 && !settled; turn++) await null;
  return settled;
}

/** Resolves or rejects as `given` does, or rejects with the signal's reason as soon as that aborts. */
export function withAbort<T>(given: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  const pending = Promise.resolve(given); // a thenable of a module's need not be a promise
  if (signal.aborted) {
    pending.catch(() => {}); // abandoned: the caller is told the reason of the abort instead
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
 * Resolves or rejects as `given` does; `grace_ms` after `signal` aborts it rejects with the signal's reason: time for a
 * module to put its things in order, and no more.
 */
export function withGrace<T>(
  given: PromiseLike<T>,
  signal: AbortSignal,
  grace_ms: number,
  clock: HostClock,
): Promise<T> {
  const pending = Promise.resolve(given); // a thenable of a module's need not be a promise
  return new Promise<T>((resolve, reject) => {
    let stop: (() => void) | null = null;
    const wait = () => {
      stop = later(clock, grace_ms, () => reject(signal.reason));
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
