/** Time as the server needs it. */

/** Time, given to the app so that tests own it. */
export interface ServerClock {
  /** Milliseconds that never go backwards; for durations. */
  monotonic(): number;
  /** Milliseconds since the epoch; for display. */
  now(): number;
  /** Calls back once after `ms` milliseconds, unless the returned function was called before. */
  timer(ms: number, callback: () => void): () => void;
  /** Calls back once after about `ms` milliseconds, and cannot be called off: for what is looked at again and again. */
  tick(ms: number, callback: () => void): void;
}

/** `setTimeout` fires at once beyond 2³¹ - 1 ms; 24 days are for ever here. */
const LONGEST_MS = 2_147_483_647;

/** The machine's own time. */
export const systemClock: ServerClock = {
  monotonic: () => performance.now(),
  now: () => Date.now(),
  timer(ms, callback) {
    const id = setTimeout(callback, Math.min(ms, LONGEST_MS));
    return () => clearTimeout(id);
  },
  // The first `setTimeout` of a process loads Node's timers, 5 ms (Deno 2.9): not before the first answer.
  tick: (ms, callback) => AbortSignal.timeout(ms).addEventListener("abort", () => callback(), { once: true }),
};
