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
/** Milliseconds between two notifications that say that a process is there. */
const HELLO_EVERY_MS = 10_000;

/**
 * Wakes readers when another process has changed the database. Listens from the first wait on, and then says
 * so now and then: a process that has heard of no other one sends no notifications of its commits.
 */
export class Notifications {
  readonly #url: string;
  readonly #pool: Pool;
  readonly #hello_every_ms: number;
  readonly #poll_ms: number;
  readonly #origin = crypto.randomUUID();
  readonly #waiters = new Waiters();
  #listener: { end(): Promise<void> } | null = null;
  #hello: ReturnType<typeof setInterval> | undefined;
  /** When another process was heard of, or this one began to listen. */
  #heard_ms = Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<unknown> | undefined;
  #closed = false;

  constructor(url: string, pool: Pool, hello_every_ms = HELLO_EVERY_MS, poll_ms = POLL_MS) {
    this.#url = url;
    this.#pool = pool;
    this.#hello_every_ms = hello_every_ms;
    this.#poll_ms = poll_ms;
  }

  /** Notifies other processes soon. */
  notify(): void {
    if (this.#closed || this.#listener && this.#is_alone) return;
    this.#timer ??= setTimeout(() => this.#send(), NOTIFY_AFTER_MS);
  }

  /** Whether no other process was heard of for so long that it would have said that it is there. */
  get #is_alone(): boolean {
    return performance.now() - this.#heard_ms > 3 * this.#hello_every_ms;
  }

  #send(): void {
    this.#timer = undefined;
    const sent = this.#pool.query("SELECT pg_notify($1, $2)", [CHANNEL, this.#origin]);
    this.#sending = sent.catch(() => {}); // the others see the change at their next look
  }

  /** Resolves when another process may have changed the database, or `signal` aborts. */
  async changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closed) return;
    if (!this.#listener) this.#listen();
    await this.#waiters.wait(signal, this.#poll_ms);
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
      if (payload === this.#origin) return;
      if (this.#is_alone) this.#send(); // it may be new: say that this one is there
      this.#heard_ms = performance.now();
      this.#waiters.wakeAll();
    });
    this.#heard_ms = performance.now();
    client.connect().then(() => client.query(`LISTEN ${CHANNEL}`)).then(() => this.#send()).catch(lost);
    if (this.#hello !== undefined) return;
    this.#hello = setInterval(() => this.#listener && this.#send(), this.#hello_every_ms);
    Deno.unrefTimer(this.#hello);
  }

  /** Ends every wait. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#hello);
    this.#waiters.wakeAll();
    await this.#listener?.end().catch(() => {}); // it may have failed
    await this.#sending;
  }
}
