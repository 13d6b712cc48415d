/**
 * Which owners of leases live. Each owner is a process: it has one row, which it renews by its heartbeats,
 * and a connection with an advisory lock, which the database releases however the process ends. An owner has
 * died when its row has expired, or is late while its lock is free. Behind a pooler that gives each
 * transaction another connection, and in databases without advisory locks, the row alone decides. The first
 * server that finds an owner dead says so in its row: from then on the owner's leases are free, and it
 * cannot come back.
 *
 * Servers of the version before this one renew each lease, and have no row: their leases are free when they
 * have expired. What they read of a lease of this version is its expiry, which is minutes ahead.
 */
import type { Heartbeat } from "../store.ts";
import { NOW } from "./changes.ts";
import { createClient, type Row, type Value } from "./database.ts";

/** First key of the locks; any number that other programs of the database do not use. */
const CLASS = 7_236_110;
/** Milliseconds until the next attempt after the connection was lost. */
const RETRY_MS = 250;
/** Milliseconds after a heartbeat from which on the next one is late. */
const LATE_MS = 1_300;
/** Milliseconds after which a dead owner is deleted with the leases that were not taken. */
const KEPT_MS = 10_000;
/** Milliseconds that a lease lasts for servers of the version before, and after which that is renewed. */
export const LASTS_MS = 600_000;
const RENEW_MS = 180_000;

/** Second key of an owner's lock: two owners with one key only wait for the expiry. */
const keyOf = (owner: string) => `(hashtext(${owner}) & 2147483647)`;

const LOCK = `SELECT pg_try_advisory_lock(${CLASS}, ${keyOf("$1")})`;

/** Whether an owner's lock is there, seen from another connection. */
const isLocked = (owner: string) =>
  `EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = ${CLASS}
    AND objid = ${keyOf(owner)}::oid AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`;

/** Says that an owner has a lock, if it is seen; behind a pooler another connection may have it. */
const SEEN = `WITH seen AS (SELECT ${
  isLocked("$2")
} AS seen WHERE $1::float8 IS NOT DISTINCT FROM $1), said AS (
    UPDATE preamp.servers SET is_locked = seen FROM seen WHERE owner = $2
  ) SELECT seen FROM seen`;

const HAS_DIED = `(s.until_ms <= ${NOW}
  OR s.is_locked AND s.beat_ms <= ${NOW} - ${LATE_MS} AND NOT ${isLocked("s.owner")})`;

const BEGIN = `INSERT INTO preamp.servers AS s (owner, beat_ms, until_ms, is_locked, is_dead)
  VALUES ($2, ${NOW}, ${NOW} + $3::float8, $4, FALSE)
  ON CONFLICT (owner) DO UPDATE SET until_ms = excluded.until_ms WHERE NOT s.is_dead`;
const BEAT = `WITH own AS (
    UPDATE preamp.servers SET beat_ms = ${NOW}, until_ms = ${NOW} + $3::float8, is_locked = $4
    WHERE owner = $2 AND NOT is_dead RETURNING owner
  ) SELECT EXISTS (SELECT 1 FROM own) AS lives,
    EXISTS (SELECT 1 FROM preamp.servers AS s WHERE s.owner <> $2 AND (s.is_dead OR ${HAS_DIED})) AS deaths`;
const FIND_DEAD =
  `UPDATE preamp.servers AS s SET is_dead = TRUE WHERE s.owner <> $2 AND NOT s.is_dead AND ${HAS_DIED}`;
const FORGET = `WITH gone AS (
    DELETE FROM preamp.servers WHERE is_dead AND until_ms <= ${NOW} - ${KEPT_MS} RETURNING owner
  ) DELETE FROM preamp.leases AS l USING gone WHERE l.owner = gone.owner`;
const END = `UPDATE preamp.servers SET until_ms = ${NOW}, is_dead = TRUE WHERE owner = $2`;
const RENEW = `UPDATE preamp.leases SET until_ms = ${NOW} + ${LASTS_MS} WHERE owner = $2`;

/** Returns SQL: whether the lease `held` may be taken. `dead`: what holds of the row of its owner. */
const isFreeIf = (dead: string) =>
  `COALESCE((SELECT ${dead} FROM preamp.servers AS s WHERE s.owner = held.owner), held.until_ms <= ${NOW})`;

/** SQL: whether a lease may be taken from its owner. */
export const IS_FREE = isFreeIf("s.is_dead");
/** SQL: whether it may also be taken where the death of its owner must have been seen by its expiry. */
export const IS_EXPIRED = isFreeIf(`s.is_dead AND s.until_ms <= ${NOW}`);

/** The owners in this process. */
export class Servers {
  readonly #url: string;
  readonly #query: (text: string, values: Value[]) => Promise<Row[]>;
  /** Owner → whether its lock is there. */
  readonly #locked = new Map<string, boolean>();
  /** Owners that have a row. */
  readonly #begun = new Set<string>();
  readonly #attempts = new Set<Promise<void>>();
  readonly #connections = new Set<{ end(): Promise<void> }>();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #renewed_ms = performance.now();
  #closed = false;

  /** @param query Runs a statement, with the time that replaces the database's clock as its first value. */
  constructor(url: string, query: (text: string, values: Value[]) => Promise<Row[]>) {
    this.#url = url;
    this.#query = query;
  }

  async heartbeat(owner: string, ttl_ms: number): Promise<Heartbeat> {
    if (!this.#locked.has(owner)) this.#try(owner);
    const values = () => [owner, ttl_ms, this.#locked.get(owner) ?? false];
    if (!this.#begun.has(owner)) {
      await this.#query(BEGIN, values());
      this.#begun.add(owner);
    }
    const [row] = await this.#query(BEAT, values());
    if (performance.now() - this.#renewed_ms > RENEW_MS) {
      this.#renewed_ms = performance.now();
      await this.#query(RENEW, [owner]);
    }
    if (row?.deaths) {
      await this.#query(FIND_DEAD, [owner]);
      await this.#query(FORGET, []);
    }
    return { lives: row?.lives === true, deaths: row?.deaths === true };
  }

  #try(owner: string): void {
    if (this.#closed) return;
    this.#locked.set(owner, false);
    const attempt = this.#lock(owner).finally(() => this.#attempts.delete(attempt));
    this.#attempts.add(attempt);
  }

  /** Never rejects. */
  async #lock(owner: string): Promise<void> {
    const client = createClient(this.#url);
    this.#connections.add(client);
    let is_lost = false;
    const lost = () => {
      if (is_lost) return;
      is_lost = true;
      this.#locked.set(owner, false);
      this.#connections.delete(client);
      client.end().catch(() => {}); // it has failed
      this.#later(() => this.#try(owner), RETRY_MS);
    };
    client.on("error", lost);
    client.on("end", lost);
    try {
      await client.connect();
      await client.query(LOCK, [owner]);
      const [row] = await this.#query(SEEN, [owner]);
      if (row?.seen !== true) { // a pooler, or a database without these locks
        is_lost = true;
        this.#connections.delete(client);
        await client.end();
      } else if (!is_lost) this.#locked.set(owner, true);
    } catch {
      lost();
    }
  }

  #later(action: () => void, ms: number): void {
    if (this.#closed) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, ms);
    this.#timers.add(timer);
    Deno.unrefTimer(timer);
  }

  /** Says that the owners of this process have ended, and releases their locks. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const owner of this.#begun) await this.#query(END, [owner]).catch(() => {}); // it expires
    await Promise.all([...this.#connections].map((client) => client.end().catch(() => {})));
    await Promise.all(this.#attempts);
  }
}
