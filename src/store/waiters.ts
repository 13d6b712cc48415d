/** Callers that wait for a change. */
export class Waiters {
  readonly #waiting = new Set<() => void>();

  /** Number of waiting callers. */
  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves at the next {@link wakeAll}, when `signal` aborts, or after `timeout_ms`; default: no timeout.
   */
  wait(signal?: AbortSignal, timeout_ms?: number): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = timeout_ms === undefined ? undefined : setTimeout(wake, timeout_ms);
      this.#waiting.add(wake);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  /** Wakes every waiting caller. */
  wakeAll(): void {
    if (this.#waiting.size === 0) return;
    for (const wake of [...this.#waiting]) wake();
  }
}
