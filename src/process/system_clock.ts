/** The system clock. Deadlines use `monotonic` and timers; `now` is for display only. */
import { later } from "./timer_queue.ts";

/** A clock with timers. */
export interface SystemClock {
  /** Returns milliseconds since the epoch. */
  now(): number;
  /** Returns milliseconds that never go backwards. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. */
  after(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `callback` once after `ms` milliseconds. The returned function cancels the timer. */
  later(ms: number, callback: () => void): () => void;
  /** Calls `callback` once after about `ms` milliseconds; cannot be cancelled. For periodic checks. */
  tick(ms: number, callback: () => void): void;
}

/** Returns the system clock. */
export function systemClock(): SystemClock {
  return { now: () => Date.now(), monotonic: () => performance.now(), after, later, tick };
}

function after(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason);
  if (!(ms > 0)) return Promise.resolve(); // also for NaN
  return new Promise((resolve, reject) => {
    const cancel = later(ms, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    const stop = () => {
      cancel();
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/**
 * perf: the first `setTimeout` of a process loads Node's timers (5 ms on Deno 2.9), which must not delay the
 * first response.
 */
function tick(ms: number, callback: () => void): void {
  AbortSignal.timeout(ms).addEventListener("abort", () => callback(), { once: true });
}
