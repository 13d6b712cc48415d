/**
 * Statements of several calls: those that are made while one runs share the next one. Servers with many runs
 * append to many logs at once, and acquire and release a lease for each run.
 */
import { setImmediate } from "node:timers";
import { hasCode } from "../../sdk/errors.ts";
import type { Fence } from "../store.ts";
import { type Appended, FEW, NOW } from "./changes.ts";
import type { Row, Value } from "./database.ts";
import { IS_EXPIRED, IS_FREE, LASTS_MS } from "./servers.ts";

/** Maximum calls of one statement. */
const MAX_CALLS = 64;

/** Returns the statement that acquires leases: new and own ones, and those of which `is_free` holds. */
const acquireIf = (is_free: string) =>
  `INSERT INTO preamp.leases AS held (name, owner, token, until_ms)
  SELECT name, owner, nextval('preamp.lease_tokens'), ${NOW} + ${LASTS_MS}
  FROM unnest($2::text[], $3::text[]) AS row(name, owner) ORDER BY name
  ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms,
    token = CASE WHEN held.owner = excluded.owner THEN held.token ELSE excluded.token END
  WHERE held.owner = excluded.owner OR ${is_free}
  RETURNING name, token`;

/** Locks in one order: statements that lock rows in the same order never wait for each other in a circle. */
const RELEASE = `WITH row AS (
    SELECT * FROM unnest($2::text[], $3::text[]) AS row(name, owner) ${FEW("$2::text[]")}
  ), locked AS (
    SELECT held.name FROM preamp.leases AS held JOIN row USING (name, owner)
    ORDER BY held.name FOR UPDATE OF held
  ) DELETE FROM preamp.leases AS held USING locked
  WHERE held.name = locked.name AND $1::float8 IS NOT DISTINCT FROM $1 RETURNING held.name`;

const APPEND = `WITH row AS (
    SELECT * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[])
      AS row(log, after, count, lease, token) ${FEW("$2::text[]")}
  ), held AS (
    SELECT l.name, l.token FROM preamp.leases AS l JOIN row ON l.name = row.lease AND l.token = row.token
    ORDER BY l.name FOR SHARE OF l
  ), locked AS (
    SELECT l.name FROM preamp.logs AS l JOIN row ON l.name = row.log AND l.last_seq = row.after
    WHERE row.lease IS NULL OR EXISTS (SELECT 1 FROM held WHERE held.name = row.lease)
    ORDER BY l.name FOR UPDATE OF l
  ), moved AS (
    UPDATE preamp.logs AS l SET last_seq = row.after + row.count FROM row JOIN locked ON locked.name = row.log
    WHERE l.name = row.log AND l.last_seq = row.after AND $1::float8 IS NOT DISTINCT FROM $1
    RETURNING l.name, row.after
  ), added AS (
    INSERT INTO preamp.entries (log, seq, json)
    SELECT moved.name, moved.after + entry.position, entry.json
    FROM unnest($7::text[], $8::bigint[], $9::text[]) AS entry(log, position, json)
    JOIN moved ON moved.name = entry.log
  )
  SELECT name FROM moved`;

/** A call, named after the row that it changes. */
interface Waiting<Call> {
  readonly call: Call & { readonly name: string };
  resolve(row: Row | null): void;
  reject(error: unknown): void;
}

/** Collects calls for one statement at a time. */
class Batch<Call> {
  readonly #run: (calls: readonly Call[]) => Promise<Row[]>;
  #waiting: Waiting<Call>[] = [];
  #is_running = false;

  /** @param run Runs the statement; resolves to rows with the names of the calls that succeeded. */
  constructor(run: (calls: readonly Call[]) => Promise<Row[]>) {
    this.#run = run;
  }

  /** Resolves to the row of a call; to null when it did not succeed. */
  call(call: Call & { readonly name: string }): Promise<Row | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call, resolve, reject });
      if (!this.#is_running) void this.#repeat();
    });
  }

  async #repeat(): Promise<void> {
    this.#is_running = true;
    await new Promise((resolve) => setImmediate(() => resolve(null))); // a run that ends releases two leases
    while (this.#waiting.length > 0) {
      const names = new Set<string>(); // a statement changes a row once
      const calls: Waiting<Call>[] = [];
      const others: Waiting<Call>[] = [];
      for (const one of this.#waiting) {
        const fits = calls.length < MAX_CALLS && !names.has(one.call.name);
        names.add(one.call.name); // a later call of the same row does not overtake this one
        (fits ? calls : others).push(one);
      }
      this.#waiting = others;
      await this.#runAll(calls);
    }
    this.#is_running = false;
  }

  async #runAll(calls: readonly Waiting<Call>[]): Promise<void> {
    try {
      const rows = new Map((await this.#run(calls.map(({ call }) => call))).map((row) => [row.name, row]));
      for (const { call, resolve } of calls) resolve(rows.get(call.name) ?? null);
    } catch (error) {
      // of one call, maybe: the others succeed alone
      if (calls.length > 1 && hasCode(error, "internal")) {
        for (const one of calls) await this.#runAll([one]);
      } else for (const { reject } of calls) reject(error);
    }
  }
}

/** A call for a lease. */
interface LeaseCall {
  readonly name: string;
  readonly owner: string;
}

/** An append to a log that exists. */
interface AppendCall {
  readonly append: Appended;
  readonly fence: Fence | undefined;
}

/** The batches of one store. */
export class Batches {
  readonly acquire: Batch<LeaseCall>;
  /** Acquires no lease of a dead owner before it would have expired. */
  readonly acquireExpired: Batch<LeaseCall>;
  readonly release: Batch<LeaseCall>;
  readonly append: Batch<AppendCall>;

  /** @param query Runs a statement, with the time that replaces the database's clock as its first value. */
  constructor(query: (text: string, values: Value[]) => Promise<Row[]>) {
    const ofLeases = (text: string) =>
      new Batch<LeaseCall>((calls) =>
        query(text, [calls.map(({ name }) => name), calls.map(({ owner }) => owner)])
      );
    this.acquire = ofLeases(acquireIf(IS_FREE));
    this.acquireExpired = ofLeases(acquireIf(IS_EXPIRED));
    this.release = ofLeases(RELEASE);
    this.append = new Batch((calls) => {
      const entries = calls.flatMap(({ append: { append, entries } }) =>
        entries.map((json, index) => ({ append, json, position: index + 1 }))
      );
      return query(APPEND, [
        calls.map(({ append }) => append.append),
        calls.map(({ append }) => append.after),
        calls.map(({ append }) => append.entries.length),
        calls.map(({ fence }) => fence?.lease ?? null),
        calls.map(({ fence }) => fence?.token ?? null),
        entries.map(({ append }) => append),
        entries.map(({ position }) => position),
        entries.map(({ json }) => json),
      ]);
    });
  }
}
