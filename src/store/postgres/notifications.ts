/**
 * Notifications among the processes that share a database. They are sent outside of the commits: a
 * notification inside a transaction makes all transactions of the database end one after the other.
 */
import { type Concerns, Waiters } from "../waiters.ts";
import { createClient, type Pool } from "./database.ts";

/**
 * Channel of the notifications. The payload is a JSON array: the process that sent it, then the names of what
 * it has changed; null: they are not known, or too many. The version before this one sends the process only,
 * as a text, and reads any other payload as a change of everything.
 */
const CHANNEL = "preamp_changed";
/**
 * Milliseconds after which a reader looks at the database without a notification: the connection may be lost,
 * and CockroachDB has no notifications.
 */
const POLL_MS = 1_000;
/** Milliseconds that commits of this process share one notification. */
const NOTIFY_AFTER_MS = 5;
/** Characters of a payload; Postgres refuses 8,000 bytes. Names have few characters of several bytes. */
const MAX_PAYLOAD = 2_600;
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
  /** Names of what was changed since the last notification. */
  readonly #names = new Set<string>();

  constructor(url: string, pool: Pool, hello_every_ms = HELLO_EVERY_MS, poll_ms = POLL_MS) {
    this.#url = url;
    this.#pool = pool;
    this.#hello_every_ms = hello_every_ms;
    this.#poll_ms = poll_ms;
  }

  /** Notifies other processes soon of changes of what has these names. */
  notify(names: readonly string[]): void {
    if (this.#closed || this.#listener && this.#is_alone) return;
    for (const name of names) this.#names.add(name);
    this.#timer ??= setTimeout(() => this.#send(), NOTIFY_AFTER_MS);
  }

  /** Whether no other process was heard of for so long that it would have said that it is there. */
  get #is_alone(): boolean {
    return performance.now() - this.#heard_ms > 3 * this.#hello_every_ms;
  }

  /** @param names Names besides those of the changes since the last notification; null: of everything. */
  #send(...names: null[]): void {
    this.#timer = undefined;
    const named = JSON.stringify([this.#origin, ...names, ...this.#names]);
    const payload = named.length <= MAX_PAYLOAD ? named : JSON.stringify([this.#origin, null]);
    this.#names.clear();
    const sent = this.#pool.query("SELECT pg_notify($1, $2)", [CHANNEL, payload]);
    this.#sending = sent.catch(() => {}); // the others see the change at their next look
  }

  /** Resolves when another process may have changed what the caller waits for, or `signal` aborts. */
  async changed(signal: AbortSignal, concerns?: Concerns): Promise<void> {
    if (signal.aborted || this.#closed) return;
    if (!this.#listener) this.#listen();
    await this.#waiters.wait(signal, this.#poll_ms, concerns);
  }

  /** A lost connection is opened again by the next wait. */
  #listen(): void {
    const client = this.#listener = createClient(this.#url);
    const lost = () => {
      if (this.#listener === client) this.#listener = null;
    };
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", ({ payload = "" }) => {
      const [origin, ...names] = payload.startsWith("[") ? JSON.parse(payload) : [payload, null];
      if (origin === this.#origin) return;
      if (this.#is_alone) this.#send(null); // it may be new: say that this one is there
      if (names.includes(null)) this.#waiters.wakeAll();
      else this.#waiters.wake(names);
      this.#heard_ms = performance.now();
    });
    this.#heard_ms = performance.now();
    client.connect().then(() => client.query(`LISTEN ${CHANNEL}`)).then(() => this.#send(null)).catch(lost);
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
