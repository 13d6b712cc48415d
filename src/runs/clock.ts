/** The clock of the process. Deadlines use `monotonic` and timers; wall time is for display only (threats T31). */
import type { Clock } from "../sdk/types.ts";

/** Longest delay of one timer, in milliseconds; longer waits are several (`setTimeout` overflows at 2³¹). */
const LONGEST_MS = 2_147_483_647;

/** Returns the clock of this process. */
export function systemClock(): Clock {
  return { now: () => Date.now(), monotonic: () => performance.now(), after };
}

function after(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    let left = ms > 0 ? ms : 0; // also when it is no number
    let timer: ReturnType<typeof setTimeout>;
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const step = () => {
      if (left <= 0) {
        signal?.removeEventListener("abort", stop);
        return resolve();
      }
      const part = Math.min(left, LONGEST_MS);
      left -= part;
      timer = setTimeout(step, part);
    };
    signal?.addEventListener("abort", stop, { once: true });
    step();
  });
}
