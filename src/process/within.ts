/** Limits a wait: by time, or by a signal. The work that is waited for continues. */
import { later } from "./timer_queue.ts";

/** Thrown by {@link within}. */
export class LateError extends Error {}

/** Waits for a promise, which continues after a timeout. @throws {LateError} after `ms` milliseconds. */
export async function within<T>(
  ms: number,
  promise: Promise<T>,
  message = `not done within ${ms} ms`,
): Promise<T> {
  promise.catch(() => {}); // not awaited after a timeout
  const late = Promise.withResolvers<never>();
  const cancel = later(ms, () => late.reject(new LateError(message)));
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    cancel();
  }
}

/** Waits for a promise, which continues after an abort. @throws The signal's reason. */
export async function untilAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  promise.catch(() => {}); // not awaited after an abort
  signal.throwIfAborted();
  const ended = Promise.withResolvers<never>();
  const abort = () => ended.reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([promise, ended.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
