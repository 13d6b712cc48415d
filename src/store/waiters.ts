/** Returns whether a waiting caller waits for what has a name. */
export type Concerns = (name: string) => boolean;

/** Callers that wait for a change. */
export class Waiters {
  /** Function that wakes a caller → what it waits for; null: everything. */
  readonly #waiting = new Map<() => void, Concerns | null>();

  /** Number of waiting callers. */
  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves at the next {@link wakeAll} or {@link wake} that concerns the caller, when `signal` aborts, or
   * after `timeout_ms`; default: no timeout.
   */
  wait(signal?: AbortSignal, timeout_ms?: number, concerns: Concerns | null = null): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = timeout_ms === undefined ? undefined : setTimeout(wake, timeout_ms);
      this.#waiting.set(wake, concerns);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  /** Wakes every waiting caller. */
  wakeAll(): void {
    if (this.#waiting.size === 0) return;
    for (const wake of [...this.#waiting.keys()]) wake();
  }

  /** Wakes the callers that wait for one of these names, or for everything. */
  wake(names: readonly string[]): void {
    for (const [wake, concerns] of [...this.#waiting]) if (!concerns || names.some(concerns)) wake();
  }
}
