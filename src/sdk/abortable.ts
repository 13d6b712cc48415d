/** Waits that end early: when a signal aborts, or something else rejects them. */

/** Calls `then` once when the signal aborts, at once if it has. The returned function prevents the call. */
export function onAbort(signal: AbortSignal, then: () => void): () => void {
  if (signal.aborted) then();
  else signal.addEventListener("abort", then, ONCE);
  return () => signal.removeEventListener("abort", then);
}

const ONCE = { once: true } as const;

/**
 * Settles as `promise` does, unless the function that `start` receives rejects it before; the promise then
 * continues. The function that `start` returns is called when the promise has settled.
 */
export function unless<T>(
  promise: PromiseLike<T>,
  start: (reject: (reason: unknown) => void) => () => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = start(reject);
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
export function untilAborted<T>(signal: AbortSignal, promise: PromiseLike<T>): Promise<T> {
  return unless(promise, (reject) => onAbort(signal, () => reject(signal.reason)));
}

/**
 * Resolves when `start` calls back, or rejects with the signal's reason if the signal aborts first; `start`
 * returns a function that cancels its timer.
 */
export function waitOf(start: (end: () => void) => () => void, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const cancel = start(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    const abort = () => {
      cancel();
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", abort, ONCE);
  });
}
