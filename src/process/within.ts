/** Limits the time of a wait. */
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
