/**
 * Locks that show which owners of leases have died. Each process keeps a connection that has an advisory lock
 * with the owner's name; the database releases it when the connection ends, however it ends. A lease of the
 * owner's own, {@link lockLease}, says that it has such a lock: behind a pooler that gives each transaction
 * another connection, and in databases without advisory locks, owners have none, and leases only expire.
 */
import { NOW } from "./changes.ts";
import { createClient, type Row, type Value } from "./database.ts";

/** First key of the locks; any number that other programs of the database do not use. */
const CLASS = 7_236_110;
/** Milliseconds until the next attempt after the connection was lost. */
const RETRY_MS = 250;
/** Milliseconds that the own lease lasts, and after which it is renewed. */
const LASTS_MS = 24 * 3_600_000;
const RENEW_MS = 3_600_000;
/**
 * Milliseconds before its expiry from which on a lease was not renewed when it should have been: those of
 * runs last 5 s, and are renewed each 1.5 s.
 */
const LATE_MS = 3_200;

/** Second key of an owner's lock: two owners with one key only wait for the expiry. */
const keyOf = (owner: string) => `(hashtext(${owner}) & 2147483647)`;

const LOCK = `SELECT pg_try_advisory_lock(${CLASS}, ${keyOf("$1")})`;

/** Whether an owner's lock is there, seen from another connection. */
const isLocked = (owner: string) =>
  `EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = ${CLASS}
    AND objid = ${keyOf(owner)}::oid AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`;

const SEEN = `SELECT ${isLocked("$2")} AS seen WHERE $1::float8 IS NOT DISTINCT FROM $1`;

/** SQL: whether a lease has expired. */
export const IS_EXPIRED = `held.until_ms <= ${NOW}`;

/** SQL: whether a lease may be taken from its owner. It has expired, or is late and the owner has died. */
export const IS_FREE = `(${IS_EXPIRED} OR held.until_ms < ${NOW} + ${LATE_MS} AND EXISTS (
    SELECT 1 FROM preamp.leases AS lock WHERE lock.name = 'owner/' || held.owner AND lock.until_ms > ${NOW}
  ) AND NOT ${isLocked("held.owner")})`;

const FORGET = `DELETE FROM preamp.leases WHERE name LIKE 'owner/%' AND until_ms <= ${NOW}`;

/** Returns the name of the lease that says that an owner has a lock. */
function lockLease(owner: string): string {
  return `owner/${owner}`;
}

/** What the locks need of their store. */
interface LockStore {
  /** Runs a statement of the pool; its first value is the time that replaces the database's clock. */
  query(text: string, values: Value[]): Promise<Row[]>;
  /** Acquires or prolongs a lease. */
  acquire(lease: string, owner: string, ttl_ms: number): Promise<unknown>;
  release(lease: string, owner: string): Promise<unknown>;
}

/** The locks of the owners in this process. */
export class OwnerLocks {
  readonly #url: string;
  readonly #store: LockStore;
  /** Owner → its last attempt to lock. */
  readonly #owners = new Map<string, Promise<void>>();
  readonly #connections = new Set<{ end(): Promise<void> }>();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #closed = false;

  constructor(url: string, store: LockStore) {
    this.#url = url;
    this.#store = store;
  }

  /** Begins to hold a lock for an owner of this process, once. Until it has it, its leases only expire. */
  hold(owner: string): void {
    if (!this.#owners.has(owner)) this.#try(owner);
  }

  #try(owner: string): void {
    if (!this.#closed) this.#owners.set(owner, this.#lock(owner));
  }

  /** Never rejects. */
  async #lock(owner: string): Promise<void> {
    const client = createClient(this.#url);
    this.#connections.add(client);
    let renewal: ReturnType<typeof setTimeout> | undefined;
    let is_lost = false;
    const lost = () => {
      if (is_lost) return;
      is_lost = true;
      this.#stop(renewal);
      this.#connections.delete(client);
      client.end().catch(() => {}); // it has failed
      this.#later(() => this.#try(owner), RETRY_MS);
    };
    client.on("error", lost);
    client.on("end", lost);
    const state = async () => {
      await this.#store.acquire(lockLease(owner), owner, LASTS_MS);
      if (!is_lost) renewal = this.#later(() => void state().catch(lost), RENEW_MS);
    };
    try {
      await client.connect();
      await client.query(LOCK, [owner]);
      const [row] = await this.#store.query(SEEN, [owner]);
      if (row?.seen !== true) { // a pooler, or a database without these locks: leases only expire
        is_lost = true;
        await client.end();
      }
      if (is_lost || this.#closed) return;
      await this.#store.query(FORGET, []);
      await state();
    } catch {
      lost();
    }
  }

  #later(action: () => void, ms: number): ReturnType<typeof setTimeout> | undefined {
    if (this.#closed) return undefined;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, ms);
    this.#timers.add(timer);
    Deno.unrefTimer(timer);
    return timer;
  }

  #stop(timer: ReturnType<typeof setTimeout> | undefined): void {
    clearTimeout(timer);
    if (timer !== undefined) this.#timers.delete(timer);
  }

  /** Releases the locks, and says so. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all([...this.#connections].map((client) => client.end().catch(() => {})));
    await Promise.all(this.#owners.values());
    for (const owner of this.#owners.keys()) {
      await this.#store.release(lockLease(owner), owner).catch(() => {}); // it expires
    }
  }
}
