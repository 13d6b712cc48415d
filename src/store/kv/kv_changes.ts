/** Wakes readers when another process has changed the database, by watching one key that every process writes. */
import { Waiters } from "../waiters.ts";
import { keys } from "./keys.ts";

/** Milliseconds that commits of this process share one notification. */
const NOTIFY_AFTER_MS = 5;
/** Milliseconds after which a reader looks at the database without a notification: files of other processes have none. */
const POLL_MS = 500;

/** Sends and receives notifications; watches from the first wait on. */
export class KvChanges {
  readonly #kv: Deno.Kv;
  readonly #origin = crypto.randomUUID();
  readonly #waiters = new Waiters();
  #watching: ReadableStreamDefaultReader<unknown> | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #sending: Promise<unknown> = Promise.resolve();
  #count = 0;
  #closed = false;

  constructor(kv: Deno.Kv) {
    this.#kv = kv;
  }

  /** Notifies other processes soon. */
  notify(): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      const value = { origin: this.#origin, count: ++this.#count };
      // without it the others see the change at their next look
      this.#sending = this.#kv.set(keys.changed(), value).catch(() => {});
    }, NOTIFY_AFTER_MS);
  }

  /** Resolves when another process may have changed the database, or `signal` aborts. */
  async changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closed) return;
    if (this.#watching === null) this.#watch();
    await this.#waiters.wait(signal, POLL_MS);
  }

  async #watch(): Promise<void> {
    const reader = this.#watching = this.#kv.watch<[{ origin: string }]>([keys.changed()]).getReader();
    try {
      await reader.read(); // the value at the start
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        if (value[0].value?.origin !== this.#origin) this.#waiters.wakeAll();
      }
    } catch {
      // the connection was lost: the next wait watches again
    }
    this.#watching = null;
  }

  /** Ends every wait. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#waiters.wakeAll();
    await this.#watching?.cancel().catch(() => {}); // it may have failed
    await this.#sending;
  }
}
