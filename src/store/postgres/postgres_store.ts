/**
 * A store in a Postgres database: shared by any number of processes on any number of machines. A commit is one
 * transaction. Leases expire by the clock of the database, so the clocks of the machines may differ.
 */
import { PreampError } from "../../sdk/errors.ts";
import { decodeCursor } from "../cursor.ts";
import {
  decodeRecord,
  encodeChange,
  type EncodedChange,
  pageOf,
  type RecordRow,
  type StoredRow,
} from "../rows.ts";
import {
  type Change,
  ConflictError,
  type Fence,
  type ListOptions,
  type LogEntry,
  type Store,
  type VersionedRecord,
} from "../store.ts";
import { ChangeListener, CHANNEL } from "./change_listener.ts";
import { createPool, type Pool, type Queryable, type Row, type Value } from "./driver.ts";
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
/** Milliseconds to wait for a connection. */
const CONNECT_MS = 10_000;
/** Milliseconds that commits of this process share one notification. */
const NOTIFY_AFTER_MS = 5;
const PURGE_EVERY_MS = 60_000;
const PURGE_ROWS = 1_000;
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
  const settings = { connectionString: url, connectionTimeoutMillis: CONNECT_MS, application_name: "preamp" };
  const pool = createPool({ ...settings, max: CONNECTIONS });
  pool.on("error", () => {}); // an idle connection was closed; the pool opens another one when it needs it
  try {
    const client = await pool.connect();
    try {
      await migrate(client);
    } finally {
      client.release();
    }
  } catch (error) {
    await pool.end();
    throw error;
  }
  return new PostgresStore(pool, new ChangeListener(settings), options.now ?? null);
}

class PostgresStore implements Store {
  readonly kind = "postgres";
  readonly buffer_ms = BUFFER_MS;
  readonly #pool: Pool;
  readonly #listener: ChangeListener;
  readonly #now: (() => number) | null;
  readonly #purging: ReturnType<typeof setInterval>;
  #notifying: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  constructor(pool: Pool, listener: ChangeListener, now: (() => number) | null) {
    this.#pool = pool;
    this.#listener = listener;
    this.#now = now;
    // a failed purge is tried again: expired rows count as deleted anyway
    this.#purging = setInterval(() => void this.#purge().catch(() => {}), PURGE_EVERY_MS);
    Deno.unrefTimer(this.#purging);
  }

  async commit(changes: readonly Change[], fence?: Fence): Promise<void> {
    const encoded = changes.map(encodeChange).sort(byTarget);
    const [only] = encoded;
    if (encoded.length === 1 && only && "append" in only && only.after > 0) await this.#append(only, fence);
    else {
      await this.#transaction(async (client) => {
        if (fence) refuse(await requireFence(client, fence));
        for (const change of encoded) refuse(await this.#apply(client, change));
      });
    }
    this.#notify();
  }

  /** Appends to a log that exists, in one statement: most commits do only this. */
  async #append(change: Appended, fence: Fence | undefined): Promise<void> {
    const { append: log, after, entries } = change;
    const rows = await this.#query(
      `WITH held AS (SELECT 1 FROM preamp.leases WHERE name = $5 AND token = $6 FOR SHARE),
       moved AS (UPDATE preamp.logs SET last_seq = $2::bigint + $4::bigint
         WHERE name = $1 AND last_seq = $2 AND ($5::text IS NULL OR EXISTS (SELECT 1 FROM held)) RETURNING name),
       added AS (INSERT INTO preamp.entries (log, seq, json)
         SELECT $1, $2::bigint + row.position, row.json
         FROM unnest($3::text[]) WITH ORDINALITY AS row(json, position) WHERE EXISTS (SELECT 1 FROM moved))
       SELECT name FROM moved`,
      [log, after, entries, entries.length, fence?.lease ?? null, fence?.token ?? null],
    );
    if (rows.length > 0) return;
    const held = fence ? await requireFence(this.#pool, fence) : null;
    throw new ConflictError(held ?? notAtEnd(change));
  }

  /** Applies a change; resolves to the reason when its comparison fails. */
  async #apply(client: Queryable, change: EncodedChange): Promise<string | null> {
    if ("append" in change) return append(client, change);
    if ("put" in change) return this.#put(client, change.put, change.expect);
    if ("delete" in change) {
      const { kind, key } = change.delete;
      await client.query("DELETE FROM preamp.records WHERE kind = $1 AND key = $2", [kind, key]);
      return null;
    }
    if ("deleteLog" in change) {
      await client.query("DELETE FROM preamp.entries WHERE log = $1", [change.deleteLog]);
      await client.query("DELETE FROM preamp.logs WHERE name = $1", [change.deleteLog]);
      return null;
    }
    await client.query("UPDATE preamp.logs SET expires_ms = $1 WHERE name = $2", [
      change.at_ms,
      change.expireLog,
    ]);
    return null;
  }

  async #put(client: Queryable, row: RecordRow, expect: number | undefined): Promise<string | null> {
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
    const { rows } = await client.query(
      expect === undefined || expect === 0 ? UPSERT[expect ?? "any"] : UPDATE,
      [
        ...values,
        ...(expect ? [expect] : []),
      ],
    );
    if (rows.length > 0) return null;
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
    return pageOf(rows as StoredRow[], limit);
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
    this.#notify(); // a run may wait for the lease
  }

  async ready(): Promise<{ ok: boolean; reason?: string }> {
    try {
      await this.#query("SELECT 1", []);
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: `store not reachable: ${(error as Error).message}` };
    }
  }

  changed(signal: AbortSignal): Promise<void> {
    return this.#listener.changed(signal);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#purging);
    if (this.#notifying !== null) clearTimeout(this.#notifying);
    await this.#listener.close();
    await this.#pool.end();
  }

  /** The time that replaces the database's clock, or null. */
  get #time(): number | null {
    return this.#now === null ? null : this.#now();
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
      this.#pool.query("SELECT pg_notify($1, $2)", [CHANNEL, this.#listener.origin]).catch(() => {});
    }, NOTIFY_AFTER_MS);
  }

  async #query(text: string, values: Value[]): Promise<Row[]> {
    for (let attempt = 1;; attempt++) {
      try {
        return (await this.#pool.query(text, values)).rows;
      } catch (error) {
        if (attempt === ATTEMPTS || !RETRIED.has(codeOf(error))) throw toStoreError(error);
      }
    }
  }

  async #transaction(body: (client: Queryable) => Promise<void>): Promise<void> {
    for (let attempt = 1;; attempt++) {
      const client = await this.#pool.connect();
      let broken = false;
      try {
        await client.query("BEGIN");
        await body(client);
        await client.query("COMMIT");
        return;
      } catch (error) {
        broken = await client.query("ROLLBACK").then(() => false, () => true);
        if (attempt === ATTEMPTS || !RETRIED.has(codeOf(error))) throw toStoreError(error);
      } finally {
        client.release(broken);
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

type Appended = Extract<EncodedChange, { append: string }>;

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

/** Puts a record over any version or inserts it; an expired record counts as deleted. */
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

/** Throws a refusal. @throws {ConflictError} */
function refuse(reason: string | null): void {
  if (reason !== null) throw new ConflictError(reason);
}

/**
 * Orders changes by the row that they lock, logs first: transactions that lock rows in the same order never wait for each
 * other in a circle. Changes of the same row keep their order.
 */
function byTarget(a: EncodedChange, b: EncodedChange): number {
  const [first, second] = [targetOf(a), targetOf(b)];
  return first < second ? -1 : first > second ? 1 : 0;
}

function targetOf(change: EncodedChange): string {
  if ("append" in change) return `0 ${change.append}`;
  if ("deleteLog" in change) return `0 ${change.deleteLog}`;
  if ("expireLog" in change) return `0 ${change.expireLog}`;
  const { kind, key } = "put" in change ? change.put : change.delete;
  return `1 ${kind} ${key}`;
}

async function requireFence(client: Queryable, { lease, token }: Fence): Promise<string | null> {
  const { rows } = await client.query(
    "SELECT 1 FROM preamp.leases WHERE name = $1 AND token = $2 FOR SHARE",
    [
      lease,
      token,
    ],
  );
  return rows.length > 0 ? null : `Cannot commit: lease "${lease}" is not held with token ${token}`;
}

async function append(client: Queryable, change: Appended): Promise<string | null> {
  const { append: log, after, entries } = change;
  const { rows } = await client.query(
    after === 0
      ? `INSERT INTO preamp.logs AS logs (name, last_seq) VALUES ($1, $2::bigint + $3::bigint)
         ON CONFLICT (name) DO UPDATE SET last_seq = excluded.last_seq WHERE logs.last_seq = $2 RETURNING name`
      : "UPDATE preamp.logs SET last_seq = $2::bigint + $3::bigint WHERE name = $1 AND last_seq = $2 RETURNING name",
    [log, after, entries.length],
  );
  if (rows.length === 0) return notAtEnd(change);
  await client.query(
    `INSERT INTO preamp.entries (log, seq, json)
     SELECT $1, $2::bigint + row.position, row.json FROM unnest($3::text[]) WITH ORDINALITY AS row(json, position)`,
    [log, after, entries],
  );
  return null;
}

function notAtEnd({ append: log, after }: Appended): string {
  return `Cannot append to "${log}": does not end at ${after}`;
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
