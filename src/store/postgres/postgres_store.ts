/**
 * A store in a Postgres database: shared by any number of processes on any number of machines. A commit is one
 * transaction. Leases expire by the clock of the database, so the clocks of the machines may differ.
 */
import postgres, { type Sql, type TransactionSql } from "postgres";
import { PreampError } from "../../sdk/errors.ts";
import { decodeCursor, encodeCursor } from "../cursor.ts";
import { decodeRecord, encodeChange, type EncodedChange, type RecordRow, type StoredRow } from "../rows.ts";
import {
  type Change,
  ConflictError,
  type Fence,
  type ListOptions,
  type LogEntry,
  type Store,
  type VersionedRecord,
} from "../store.ts";
import { migrate } from "./schema.ts";

/** Options of {@link openPostgresStore}. */
export interface PostgresStoreOptions {
  /** Milliseconds since the epoch. Default: the clock of the database. */
  now?: () => number;
}

/** Milliseconds that entries may wait for the next commit. */
const BUFFER_MS = 10;
/** Connections of one process. One more listens for changes of other processes. */
const CONNECTIONS = 10;
/** Milliseconds between two attempts to see changes of other processes without a notification. */
const POLL_MS = 1_000;
/** Milliseconds that commits of this process share one notification. */
const NOTIFY_AFTER_MS = 5;
const PURGE_EVERY_MS = 60_000;
const PURGE_ROWS = 1_000;
const CHANNEL = "preamp_changed";
/** Attempts of a transaction that the database ended because another one was in its way. */
const ATTEMPTS = 8;

/** The time in milliseconds; `$1` is null or a time that replaces it. */
const NOW = "COALESCE($1::float8, extract(epoch FROM clock_timestamp()) * 1000)";

/**
 * Connects to a database and creates or updates its tables.
 *
 * @param url `postgres://user:password@host:port/database`, with `?sslmode=require` for TLS.
 * @throws {Error} when the database cannot be reached or its tables cannot be created. The message has no password.
 */
export async function openPostgresStore(url: string, options: PostgresStoreOptions = {}): Promise<Store> {
  const sql = postgres(url, {
    max: CONNECTIONS,
    connect_timeout: 10,
    onnotice: () => {},
    connection: { application_name: "preamp" },
  });
  try {
    await migrate(sql);
  } catch (error) {
    await sql.end({ timeout: 0 });
    throw error;
  }
  return new PostgresStore(sql, options.now ?? null);
}

class PostgresStore implements Store {
  readonly kind = "postgres";
  readonly buffer_ms = BUFFER_MS;
  readonly #sql: Sql;
  readonly #now: (() => number) | null;
  readonly #origin = crypto.randomUUID();
  readonly #watchers = new Set<() => void>();
  readonly #purging: ReturnType<typeof setInterval>;
  #listening: Promise<unknown> | null = null;
  #notifying: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  constructor(sql: Sql, now: (() => number) | null) {
    this.#sql = sql;
    this.#now = now;
    // a failed purge is tried again: expired rows count as deleted anyway
    this.#purging = setInterval(() => void this.#purge().catch(() => {}), PURGE_EVERY_MS);
    Deno.unrefTimer(this.#purging);
  }

  async commit(changes: readonly Change[], fence?: Fence): Promise<void> {
    const encoded = changes.map(encodeChange);
    await this.#transaction(async (sql) => {
      // sent without waiting in between; the transaction is rolled back when one of them is refused
      const steps = encoded.map((change) => this.#apply(sql, change));
      if (fence) steps.unshift(requireFence(sql, fence));
      const refused = (await Promise.all(steps)).find((step) => step !== null);
      if (refused) throw new ConflictError(refused);
    });
    this.#notify();
  }

  /** Applies a change; resolves to the reason when its comparison fails. */
  #apply(sql: TransactionSql, change: EncodedChange): Promise<string | null> {
    if ("append" in change) return append(sql, change);
    if ("put" in change) return this.#put(sql, change.put, change.expect);
    if ("delete" in change) {
      const { kind, key } = change.delete;
      return done(sql.unsafe("DELETE FROM preamp.records WHERE kind = $1 AND key = $2", [kind, key]));
    }
    if ("deleteLog" in change) {
      return done(
        sql.unsafe("DELETE FROM preamp.entries WHERE log = $1", [change.deleteLog]),
        sql.unsafe("DELETE FROM preamp.logs WHERE name = $1", [change.deleteLog]),
      );
    }
    return done(
      sql.unsafe("UPDATE preamp.logs SET expires_ms = $1 WHERE name = $2", [change.at_ms, change.expireLog]),
    );
  }

  async #put(sql: TransactionSql, row: RecordRow, expect: number | undefined): Promise<string | null> {
    const { kind, key, namespace, json, index_json, created_ms, expires_ms } = row;
    const values = [
      this.#time,
      kind,
      key,
      namespace,
      json,
      index_json,
      fieldsOf(index_json),
      created_ms,
      expires_ms,
    ];
    const written = await sql.unsafe(
      expect === undefined || expect === 0 ? UPSERT[expect ?? "any"] : UPDATE,
      [
        ...values,
        ...(expect ? [expect] : []),
      ],
    );
    if (written.length > 0) return null;
    return `Cannot put ${kind} "${key}": is not at version ${expect}`;
  }

  async entries(log: string, after: number, limit: number): Promise<readonly LogEntry[] | null> {
    const rows = await this.#query(
      `SELECT e.json FROM preamp.logs AS l LEFT JOIN LATERAL (
         SELECT seq, json FROM preamp.entries WHERE log = $2 AND seq > $3 ORDER BY seq LIMIT $4
       ) AS e ON true
       WHERE l.name = $2 AND (l.expires_ms IS NULL OR l.expires_ms > ${NOW}) ORDER BY e.seq`,
      [this.#time, log, after, limit],
    );
    if (rows.length === 0) return null;
    // one row without an entry: the log is there, but has none after this one
    return rows.flatMap(({ json }) => json === null ? [] : [JSON.parse(json) as LogEntry]);
  }

  async get(kind: string, key: string): Promise<VersionedRecord | null> {
    const [row] = await this.#query(
      `SELECT * FROM preamp.records WHERE kind = $2 AND key = $3 AND (expires_ms IS NULL OR expires_ms > ${NOW})`,
      [this.#time, kind, key],
    );
    return row ? decodeRecord(row as StoredRow) : null;
  }

  async list(
    kind: string,
    { namespace, where = {}, limit, cursor }: ListOptions,
  ): Promise<{ records: VersionedRecord[]; next_cursor: string | null }> {
    const after = cursor === undefined ? null : decodeCursor(cursor);
    const fields = Object.entries(where).map((field) => JSON.stringify(field));
    const rows = await this.#query(
      `SELECT * FROM preamp.records WHERE kind = $2 AND namespace = $3 AND (expires_ms IS NULL OR expires_ms > ${NOW})
         ${fields.length > 0 ? "AND fields @> $4::text[]" : "AND $4::text[] IS NOT NULL"}
         AND ($5::float8 IS NULL OR (created_ms, id) < ($5::float8, $6::bigint))
       ORDER BY created_ms DESC, id DESC LIMIT $7`,
      [this.#time, kind, namespace, fields, after?.created_ms ?? null, after?.order ?? null, limit + 1],
    );
    const page = rows.slice(0, limit);
    const last = rows.length > limit ? page.at(-1) : undefined;
    return {
      records: page.map((row) => decodeRecord(row as StoredRow)),
      next_cursor: last ? encodeCursor({ created_ms: last.created_ms, order: Number(last.id) }) : null,
    };
  }

  async acquire(lease: string, owner: string, ttl_ms: number): Promise<number | null> {
    const [row] = await this.#query(
      `INSERT INTO preamp.leases AS held (name, owner, token, until_ms)
       VALUES ($2, $3, nextval('preamp.lease_tokens'), ${NOW} + $4::float8)
       ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms,
         token = CASE WHEN held.owner = excluded.owner THEN held.token ELSE excluded.token END
       WHERE held.owner = excluded.owner OR held.until_ms <= ${NOW}
       RETURNING token`,
      [this.#time, lease, owner, ttl_ms],
    );
    return row ? Number(row.token) : null;
  }

  async renew(lease: string, owner: string, ttl_ms: number): Promise<boolean> {
    const rows = await this.#query(
      `UPDATE preamp.leases SET until_ms = ${NOW} + $4::float8 WHERE name = $2 AND owner = $3 RETURNING name`,
      [this.#time, lease, owner, ttl_ms],
    );
    return rows.length > 0;
  }

  async release(lease: string, owner: string): Promise<void> {
    await this.#query("DELETE FROM preamp.leases WHERE name = $1 AND owner = $2", [lease, owner]);
  }

  async ready(): Promise<{ ok: boolean; reason?: string }> {
    try {
      await this.#query("SELECT 1", []);
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: `store not reachable: ${(error as Error).message}` };
    }
  }

  async changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closed) return;
    // a database without notifications, or a lost connection: the timer below still wakes the caller
    this.#listening ??= this.#sql.listen(CHANNEL, (origin) => origin !== this.#origin && this.#wake())
      .catch(() => this.#listening = null);
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", wake);
        this.#watchers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, POLL_MS);
      this.#watchers.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#purging);
    if (this.#notifying !== null) clearTimeout(this.#notifying);
    this.#wake();
    await this.#sql.end({ timeout: 5 });
  }

  /** The time that replaces the database's clock, or null. */
  get #time(): number | null {
    return this.#now === null ? null : this.#now();
  }

  #wake(): void {
    for (const wake of [...this.#watchers]) wake();
  }

  /**
   * Notifies other processes, at most once in 5 ms and outside of the commits: a notification inside a transaction makes
   * all transactions of the database end one after the other.
   */
  #notify(): void {
    if (this.#closed) return;
    this.#notifying ??= setTimeout(() => {
      this.#notifying = null;
      // without it the others see the change a second later
      this.#sql.unsafe("SELECT pg_notify($1, $2)", [CHANNEL, this.#origin]).catch(() => {});
    }, NOTIFY_AFTER_MS);
  }

  async #query(text: string, values: Value[]): Promise<Row[]> {
    try {
      return await this.#sql.unsafe(text, values, { prepare: true }) as unknown as Row[];
    } catch (error) {
      throw toStoreError(error);
    }
  }

  async #transaction(body: (sql: TransactionSql) => Promise<void>): Promise<void> {
    for (let attempt = 1;; attempt++) {
      try {
        return void await this.#sql.begin(body);
      } catch (error) {
        if (attempt < ATTEMPTS && RETRIED.has(codeOf(error))) continue;
        throw toStoreError(error);
      }
    }
  }

  /** Deletes expired records and logs in parts. Every process does it; the rows are the same for all. */
  async #purge(): Promise<void> {
    for (const table of ["records", "logs"] as const) {
      for (let deleted = PURGE_ROWS; deleted === PURGE_ROWS && !this.#closed;) {
        const rows = await this.#query(
          table === "records"
            ? `DELETE FROM preamp.records WHERE id IN (SELECT id FROM preamp.records WHERE expires_ms <= ${NOW} LIMIT $2) RETURNING id`
            : `WITH expired AS (DELETE FROM preamp.logs WHERE name IN (
                 SELECT name FROM preamp.logs WHERE expires_ms <= ${NOW} LIMIT $2) RETURNING name)
               DELETE FROM preamp.entries WHERE log IN (SELECT name FROM expired) RETURNING seq`,
          [this.#time, table === "records" ? PURGE_ROWS : 10],
        );
        deleted = rows.length;
      }
    }
  }
}

type Value = string | number | null | string[] | number[];
// deno-lint-ignore no-explicit-any -- the columns depend on the statement
type Row = Record<string, any>;

/** Codes of Postgres for a transaction that may succeed when it is repeated: serialization failure, deadlock. */
const RETRIED: ReadonlySet<string> = new Set(["40001", "40P01"]);
/** Codes of Postgres that mean that nothing can be written: disk full, out of memory, read-only database. */
const FULL: ReadonlySet<string> = new Set(["53100", "53200", "25006"]);

const COLUMNS = "kind, key, namespace, json, index_json, fields, created_ms, expires_ms, version";
const EXPIRED = `records.expires_ms <= ${NOW}`;
const INSERT = `INSERT INTO preamp.records AS records (${COLUMNS})
  VALUES ($2, $3, $4, $5, $6, $7::text[], COALESCE($8::float8, ${NOW}), $9::float8, 1)
  ON CONFLICT (kind, key) DO UPDATE SET namespace = excluded.namespace, json = excluded.json,
    index_json = excluded.index_json, fields = excluded.fields, expires_ms = excluded.expires_ms,
    created_ms = CASE WHEN $8::float8 IS NOT NULL OR ${EXPIRED} THEN excluded.created_ms ELSE records.created_ms END,
    version = CASE WHEN ${EXPIRED} THEN 1 ELSE records.version + 1 END`;

/** Puts a record over any version, or where there is none: an expired record counts as deleted. */
const UPSERT = { any: `${INSERT} RETURNING id`, 0: `${INSERT} WHERE ${EXPIRED} RETURNING id` };

/** Puts a record over one version. */
const UPDATE =
  `UPDATE preamp.records AS records SET namespace = $4, json = $5, index_json = $6, fields = $7::text[],
    created_ms = COALESCE($8::float8, created_ms), expires_ms = $9::float8, version = version + 1
  WHERE kind = $2 AND key = $3 AND version = $10 AND (expires_ms IS NULL OR expires_ms > ${NOW}) RETURNING id`;

/** Returns the texts of `records.fields` for a record's index. */
function fieldsOf(index_json: string | null): string[] {
  return index_json === null
    ? []
    : Object.entries(JSON.parse(index_json)).map((field) => JSON.stringify(field));
}

async function done(...statements: PromiseLike<unknown>[]): Promise<null> {
  await Promise.all(statements);
  return null;
}

async function requireFence(sql: TransactionSql, { lease, token }: Fence): Promise<string | null> {
  const held = await sql.unsafe("SELECT 1 FROM preamp.leases WHERE name = $1 AND token = $2 FOR SHARE", [
    lease,
    token,
  ]);
  return held.length > 0 ? null : `Cannot commit: lease "${lease}" is not held with token ${token}`;
}

async function append(
  sql: TransactionSql,
  { append: log, after, entries }: Extract<EncodedChange, { append: string }>,
): Promise<string | null> {
  const last = after + entries.length;
  const moving = after === 0
    ? sql.unsafe(
      `INSERT INTO preamp.logs AS logs (name, last_seq) VALUES ($1, $2)
       ON CONFLICT (name) DO UPDATE SET last_seq = excluded.last_seq WHERE logs.last_seq = 0 RETURNING name`,
      [log, last],
    )
    : sql.unsafe(
      "UPDATE preamp.logs SET last_seq = $2 WHERE name = $1 AND last_seq = $3 RETURNING name",
      [log, last, after],
    );
  const inserting = sql.unsafe(
    `INSERT INTO preamp.entries (log, seq, json)
     SELECT $1, $2::bigint + row.position, row.json
     FROM unnest($3::text[]) WITH ORDINALITY AS row(json, position)
     WHERE EXISTS (SELECT 1 FROM preamp.logs WHERE name = $1 AND last_seq = $4)
     ON CONFLICT (log, seq) DO NOTHING`,
    [log, after, entries as string[], last],
  );
  const [moved] = await Promise.all([moving, inserting]);
  return moved.length > 0 ? null : `Cannot append to "${log}": does not end at ${after}`;
}

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "";
}

/** Returns an error of the database as one of ours; its message names no value and no password. */
function toStoreError(error: unknown): unknown {
  if (error instanceof ConflictError) return error;
  if (FULL.has(codeOf(error))) {
    return new PreampError("storage_full", "Cannot write to the store: the database is full or read-only", {
      cause: error,
    });
  }
  return error;
}
