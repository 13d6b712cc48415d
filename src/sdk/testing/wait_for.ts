/** Waits for conditions and enforces timeouts in tests. The only part of the test kit that uses real time. */
import type { Clock } from "../contracts.ts";

/** The real clock. */
export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const abort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", abort);
        resolve();
      }, ms);
      signal?.addEventListener("abort", abort, { once: true });
    }),
};

/** Options of {@link waitFor}. */
export interface WaitOptions {
  /** Timeout in milliseconds; default 1,000. */
  timeout_ms?: number;
  /** Milliseconds between two checks; default 10. */
  interval_ms?: number;
  /** Clock of the waits; default: real time. A FakeClock must be advanced elsewhere. */
  clock?: Clock;
}

/** Resolves to true as soon as the condition holds, or to false after the timeout. */
export async function waitFor(
  condition: () => unknown,
  { timeout_ms = 1000, interval_ms = 10, clock = realClock }: WaitOptions = {},
): Promise<boolean> {
  const end = clock.monotonic() + timeout_ms;
  while (!(await condition())) {
    if (clock.monotonic() >= end) return false;
    await clock.after(interval_ms);
  }
  return true;
}

/**
 * Resolves to the value of `pending`.
 *
 * @throws {Error} with `message` when that takes longer than `ms` milliseconds (0 = no limit).
 */
export async function withinTime<T>(
  pending: Promise<T>,
  ms: number,
  message: string,
  clock: Clock = realClock,
): Promise<T> {
  if (ms <= 0) return await pending;
  const settled = new AbortController();
  const late = clock.after(ms, settled.signal).then(() => {
    throw new Error(message);
  });
  late.catch(() => {}); // aborted by `settled` below; its rejection is not awaited
  try {
    return await Promise.race([pending, late]);
  } finally {
    settled.abort();
  }
}
