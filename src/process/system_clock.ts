/** The clock of the process. Deadlines use `monotonic` and timers; wall time is for display only. */

/** The clock of the process. */
export interface SystemClock {
  /** Returns milliseconds since the epoch. */
  now(): number;
  /** Returns milliseconds that never go backwards. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. */
  after(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back after `ms` milliseconds, unless the returned function is called before. */
  later(ms: number, then: () => void): () => void;
}

/** Longest delay of one timer, in milliseconds; longer waits are several (`setTimeout` overflows at 2³¹). */
const LONGEST_MS = 2_147_483_647;

/** Returns the clock of this process. */
export function systemClock(): SystemClock {
  return { now: () => Date.now(), monotonic: () => performance.now(), after, later };
}

function after(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason);
  if (!(ms > 0)) return Promise.resolve(); // also when it is no number
  return new Promise((resolve, reject) => {
    const callOff = later(ms, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    const stop = () => {
      callOff();
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}

function later(ms: number, then: () => void): () => void {
  let left = ms > 0 ? ms : 0;
  let timer: ReturnType<typeof setTimeout>;
  const step = () => {
    const part = Math.min(left, LONGEST_MS);
    left -= part;
    timer = setTimeout(left > 0 ? step : then, part);
  };
  step();
  return () => clearTimeout(timer);
}
