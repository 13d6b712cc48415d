/** Callers that wait for a change, and changes by other processes. */

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

/** How the processes that share a database notify each other. */
export interface Notifications {
  /** Milliseconds after which a reader looks at the database without a notification. */
  readonly poll_ms: number;
  /** Sends a notification. */
  send(): Promise<unknown>;
  /**
   * Receives notifications; returns a function that stops it.
   * @param wake Called for each notification of another process.
   * @param lost Called when none can be received any more.
   */
  listen(wake: () => void, lost: () => void): () => Promise<unknown>;
}

/** Milliseconds that commits of this process share one notification. */
const NOTIFY_AFTER_MS = 5;

/** Wakes readers when another process has changed the database. Listens from the first wait on. */
export class Changes {
  readonly #notifications: Notifications;
  readonly #waiters = new Waiters();
  #stop: (() => Promise<unknown>) | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<unknown> | undefined;
  #closed = false;

  constructor(notifications: Notifications) {
    this.#notifications = notifications;
  }

  /** Notifies other processes soon. */
  notify(): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#sending = this.#notifications.send().catch(() => {}); // the others see the change at their next look
    }, NOTIFY_AFTER_MS);
  }

  /** Resolves when another process may have changed the database, or `signal` aborts. */
  async changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closed) return;
    if (!this.#stop) this.#listen();
    await this.#waiters.wait(signal, this.#notifications.poll_ms);
  }

  /** A lost connection is opened again by the next wait. */
  #listen(): void {
    const stop = this.#stop = this.#notifications.listen(() => this.#waiters.wakeAll(), () => {
      if (this.#stop === stop) this.#stop = null;
    });
  }

  /** Ends every wait. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#waiters.wakeAll();
    await this.#stop?.().catch(() => {}); // it may have failed
    await this.#sending;
  }
}
