/**
 * Leases of a database. Calls that are made while a statement runs share the next one: servers with many runs
 * acquire and release a lease for each.
 */
import { setImmediate } from "node:timers";
import { NOW } from "./changes.ts";
import type { Row, Value } from "./database.ts";

/** One call for a lease. */
interface Call {
  readonly name: string;
  readonly owner: string;
  readonly ttl_ms: number;
  resolve(row: Row | null): void;
  reject(error: unknown): void;
}

const ACQUIRE = `INSERT INTO preamp.leases AS held (name, owner, token, until_ms)
  SELECT name, owner, nextval('preamp.lease_tokens'), ${NOW} + ttl_ms
  FROM unnest($2::text[], $3::text[], $4::float8[]) AS row(name, owner, ttl_ms) ORDER BY name
  ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms,
    token = CASE WHEN held.owner = excluded.owner THEN held.token ELSE excluded.token END
  WHERE held.owner = excluded.owner OR held.until_ms <= ${NOW}
  RETURNING name, token`;

/** Locks in one order: statements that lock rows in the same order never wait for each other in a circle. */
const LOCKED = `WITH row AS (
    SELECT * FROM unnest($2::text[], $3::text[], $4::float8[]) AS row(name, owner, ttl_ms)
  ), locked AS (
    SELECT held.name, row.ttl_ms FROM preamp.leases AS held JOIN row USING (name, owner)
    ORDER BY held.name FOR UPDATE OF held
  )`;
const RENEW = `${LOCKED} UPDATE preamp.leases AS held SET until_ms = ${NOW} + locked.ttl_ms
  FROM locked WHERE held.name = locked.name RETURNING held.name`;
const RELEASE = `${LOCKED} DELETE FROM preamp.leases AS held USING locked
  WHERE held.name = locked.name AND $1::float8 IS NOT DISTINCT FROM $1 RETURNING held.name`;

/** Collects calls for one statement at a time. */
class LeaseBatch {
  readonly #run: (calls: readonly Call[]) => Promise<Row[]>;
  #waiting: Call[] = [];
  #is_running = false;

  constructor(run: (calls: readonly Call[]) => Promise<Row[]>) {
    this.#run = run;
  }

  /** Resolves to the row of the statement's result for a lease, or to null. */
  call(name: string, owner: string, ttl_ms = 0): Promise<Row | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ name, owner, ttl_ms, resolve, reject });
      if (!this.#is_running) void this.#repeat();
    });
  }

  async #repeat(): Promise<void> {
    this.#is_running = true;
    await new Promise((resolve) => setImmediate(() => resolve(null))); // a run that ends releases two leases
    while (this.#waiting.length > 0) {
      const names = new Set<string>(); // a statement changes a row once
      const calls = this.#waiting.filter(({ name }) => !names.has(name) && names.add(name));
      this.#waiting = this.#waiting.filter((call) => !calls.includes(call));
      try {
        const rows = new Map((await this.#run(calls)).map((row) => [row.name, row]));
        for (const { name, resolve } of calls) resolve(rows.get(name) ?? null);
      } catch (error) {
        for (const { reject } of calls) reject(error);
      }
    }
    this.#is_running = false;
  }
}

/** Acquires, renews and releases leases. */
export class Leases {
  readonly acquire: LeaseBatch;
  readonly renew: LeaseBatch;
  readonly release: LeaseBatch;

  /** @param query Runs a statement, with the time that replaces the database's clock as its first value. */
  constructor(query: (text: string, values: Value[]) => Promise<Row[]>) {
    const batch = (text: string) =>
      new LeaseBatch((calls) =>
        query(text, [
          calls.map(({ name }) => name),
          calls.map(({ owner }) => owner),
          calls.map(({ ttl_ms }) => ttl_ms),
        ])
      );
    this.acquire = batch(ACQUIRE);
    this.renew = batch(RENEW);
    this.release = batch(RELEASE);
  }
}
