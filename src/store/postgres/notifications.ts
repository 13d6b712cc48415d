/**
 * Notifications among the processes that share a database. They are sent outside of the commits: a
 * notification inside a transaction makes all transactions of the database end one after the other.
 */
import { Waiters } from "../waiters.ts";
import { createClient, type Pool } from "./database.ts";

/** Channel of the notifications; the payload names the process that sent it. */
const CHANNEL = "preamp_changed";
/**
 * Milliseconds after which a reader looks at the database without a notification: the connection may be lost,
 * and CockroachDB has no notifications.
 */
const POLL_MS = 1_000;
/** Milliseconds that commits of this process share one notification. */
const NOTIFY_AFTER_MS = 5;

/** Wakes readers when another process has changed the database. Listens from the first wait on. */
export class Notifications {
  readonly #url: string;
  readonly #pool: Pool;
  readonly #origin = crypto.randomUUID();
  readonly #waiters = new Waiters();
  #listener: { end(): Promise<void> } | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<unknown> | undefined;
  #closed = false;

  constructor(url: string, pool: Pool) {
    this.#url = url;
    this.#pool = pool;
  }

  /** Notifies other processes soon. */
  notify(): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const sent = this.#pool.query("SELECT pg_notify($1, $2)", [CHANNEL, this.#origin]);
      this.#sending = sent.catch(() => {}); // the others see the change at their next look
    }, NOTIFY_AFTER_MS);
  }

  /** Resolves when another process may have changed the database, or `signal` aborts. */
  async changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closed) return;
    if (!this.#listener) this.#listen();
    await this.#waiters.wait(signal, POLL_MS);
  }

  /** A lost connection is opened again by the next wait. */
  #listen(): void {
    const client = this.#listener = createClient(this.#url);
    const lost = () => {
      if (this.#listener === client) this.#listener = null;
    };
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", ({ payload }) => {
      if (payload !== this.#origin) this.#waiters.wakeAll();
    });
    client.connect().then(() => client.query(`LISTEN ${CHANNEL}`)).catch(lost);
  }

  /** Ends every wait. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#waiters.wakeAll();
    await this.#listener?.end().catch(() => {}); // it may have failed
    await this.#sending;
  }
}
