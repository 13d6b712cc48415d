/** Wakes readers when another process has changed the database, by Postgres' notifications. */
import { Waiters } from "../waiters.ts";
import { type Client, type ConnectionSettings, createClient } from "./driver.ts";

/** Channel of the notifications; the payload names the process that sent it. */
export const CHANNEL = "preamp_changed";

/**
 * Milliseconds after which a reader looks at the database without a notification: the connection may be lost, and
 * CockroachDB has no notifications.
 */
const POLL_MS = 1_000;

/** Listens on a connection of its own, from the first wait on. */
export class ChangeListener {
  /** Name of this process in notifications. */
  readonly origin = crypto.randomUUID();
  readonly #settings: ConnectionSettings;
  readonly #waiters = new Waiters();
  #client: Client | null = null;
  #closed = false;

  /** @param settings How to connect. */
  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
  }

  /** Resolves when another process has changed the database, after a second, or when `signal` aborts. */
  async changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closed) return;
    if (this.#client === null) this.#listen();
    await this.#waiters.wait(signal, POLL_MS);
  }

  /** Connects. A lost connection is opened again by the next wait, which begins within a second. */
  #listen(): void {
    const client = this.#client = createClient(this.#settings);
    const lose = () => {
      if (this.#client === client) this.#client = null;
    };
    client.on("error", lose);
    client.on("end", lose);
    client.on("notification", ({ payload }) => {
      if (payload !== this.origin) this.#waiters.wakeAll();
    });
    client.connect().then(() => client.query(`LISTEN ${CHANNEL}`)).catch(lose);
  }

  /** Ends every wait and the connection. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#waiters.wakeAll();
    await this.#client?.end().catch(() => {}); // it may not be connected yet
  }
}
