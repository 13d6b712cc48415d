/**
 * A store in a Postgres database: shared by any number of processes on any number of machines. A commit is
 * one transaction. Servers expire by the clock of the database, so the clocks of the machines may differ.
 */
import { errorMessage, hasCode } from "../../sdk/errors.ts";
import { endedLogs, pageOfTexts } from "../packing.ts";
import { decodeCursor, decodeRecord, encodeChange, pageOf, type StoredRow } from "../rows.ts";
import {
  type Change,
  ConflictError,
  type Fence,
  type Heartbeat,
  type ListOptions,
  type LogEntry,
  MAX_PAGE_BYTES,
  notAtEnd,
  type Page,
  type Store,
  type VersionedRecord,
} from "../store.ts";
import { Batches } from "./batches.ts";
import { Notifications } from "./notifications.ts";
import { IS_FREE, Servers } from "./servers.ts";
import {
  applyChange,
  byTarget,
  commitSimply,
  NOW,
  requireFence,
  type SimpleCommit,
  simpleCommit,
  SYNC,
} from "./changes.ts";
import {
  createClient,
  createPool,
  migrate,
  missingConstraints,
  type Pool,
  type Queryable,
  type Row,
  type Value,
} from "./database.ts";
import { codeOf, RETRIED, toStoreError } from "./errors.ts";
import { bytesBefore, LogPacker, readRows } from "./logs.ts";
import { purgePart } from "./purge.ts";

/** Options of {@link openPostgresStore}. */
export interface PostgresStoreOptions {
  /** Milliseconds since the epoch. Default: the clock of the database. */
  now?: () => number;
  /** Milliseconds to wait for the result of a statement. Default: 30,000. */
  timeout_ms?: number;
  /** Whether to refuse tables without their constraints. */
  check?: boolean;
  /** Most connections of this process; one more listens for changes of other processes. Default: 10. */
  connections?: number;
  /**
   * Whether statements have names, so that the database plans each once for a connection. Default: true. A
   * pooler in transaction mode must know them, as PgBouncer does from 1.21 on.
   */
  named_statements?: boolean;
}

/** Longer than any statement takes that makes progress. */
const TIMEOUT_MS = 30_000;
/** Texts of Postgres do not contain it, so nothing is stored under a name with it. */
const NUL = "\0";
const PURGE_EVERY_MS = 60_000;
/** Attempts of a transaction that the database ended because another one was in its way. */
const ATTEMPTS = 8;

/**
 * Connects to a database and creates or updates its tables.
 *
 * @param url `postgres://user:password@host:port/database`, with `?sslmode=require` for TLS.
 * @throws {Error} when the database cannot be reached or its tables cannot be created. The message has no
 * password.
 */
export async function openPostgresStore(url: string, options: PostgresStoreOptions = {}): Promise<Store> {
  const client = createClient(url); // not of the pool: a change of the tables may take long
  try {
    await client.connect();
    await migrate(client);
    const [problem] = options.check ? await missingConstraints(client) : [];
    if (problem !== undefined) throw new Error(`its tables are damaged: ${problem}`);
  } finally {
    await client.end();
  }
  const { timeout_ms = TIMEOUT_MS, connections: max = 10, named_statements: named = true } = options;
  const pool = createPool(url, { max, timeout_ms, named });
  return new PostgresStore(url, pool, options.now ?? null);
}

class PostgresStore implements Store {
  readonly kind = "postgres";
  readonly #pool: Pool;
  readonly #changes: Notifications;
  readonly #servers: Servers;
  readonly #now: (() => number) | null;
  /** Runs a statement whose first parameter is the time. */
  readonly #timed = (text: string, values: Value[]) => this.#query(text, [this.#time, ...values]);
  readonly #batches = new Batches(this.#timed);
  readonly #packer = new LogPacker(this.#timed);
  readonly #purging: ReturnType<typeof setInterval>;
  #closed = false;
  /** Whether a commit was written, and none has met a full or read-only database since. */
  #is_writable = false;

  constructor(url: string, pool: Pool, now: (() => number) | null) {
    this.#pool = pool;
    this.#changes = new Notifications(url, pool);
    this.#now = now;
    this.#servers = new Servers(url, this.#timed);
    // a failed purge is tried again: expired rows count as deleted anyway
    this.#purging = setInterval(() => void this.#purge().catch(() => {}), PURGE_EVERY_MS);
    Deno.unrefTimer(this.#purging);
  }

  async commit(changes: readonly Change[], fence?: Fence): Promise<void> {
    const encoded = changes.map(encodeChange);
    try {
      const simple = simpleCommit(encoded, fence);
      if (simple) await this.#commitSimply(simple, fence);
      else {
        await this.#transaction(async (client) => {
          if (fence) await requireFence(client, fence);
          for (const change of encoded.sort(byTarget)) await applyChange(client, change, this.#time);
        });
      }
      this.#is_writable = true;
    } catch (error) {
      if (hasCode(error, "storage_full")) this.#is_writable = false;
      throw error;
    }
    this.#changes.notify(namesOf(changes));
    for (const log of endedLogs(encoded)) this.#packer.add(log);
  }

  /** Makes the commits of a run, nearly all, in one statement. */
  async #commitSimply(commit: SimpleCommit, fence: Fence | undefined): Promise<void> {
    const { appends, puts, compared, expiries, releases, count } = commit;
    const append = appends[0]!; // a simple commit has one
    const check = async (client: Queryable, is_done: unknown) => {
      if (is_done) return;
      if (fence) await requireFence(client, fence);
      throw notAtEnd(append);
    };
    const is_append = appends.length === 1 && puts.length === 0 && expiries.size === 0 && !releases;
    if (is_append && append.after > 0) {
      await check(this.#pool, await this.#batches.append.call({ name: append.append, append, fence }));
    } else if (compared.length > 0) {
      await this.#transaction(async (client) => {
        for (const change of compared) await applyChange(client, change, this.#time);
        const query = async (text: string, values: Value[]) => (await client.query(text, values)).rows;
        await check(client, await commitSimply(query, commit, fence, this.#time));
      });
    } else {
      const query = (text: string, values: Value[]) => this.#query(text, values);
      await check(this.#pool, await commitSimply(query, commit, fence, this.#time));
    }
    if (count) await this.#query(SYNC, [append.append]);
  }

  async entries(
    log: string,
    after: number,
    limit: number,
    max_bytes?: number,
  ): Promise<readonly LogEntry[] | null> {
    if (log.includes(NUL)) return null;
    const rows = await readRows(this.#timed, log, after, limit, max_bytes ?? Number.MAX_VALUE);
    return rows &&
      pageOfTexts(rows, after, limit, max_bytes).map((text) => JSON.parse(text) as LogEntry);
  }

  async get(kind: string, key: string): Promise<VersionedRecord | null> {
    if (key.includes(NUL)) return null;
    const [row] = await this.#query(
      `SELECT * FROM preamp.records WHERE kind = $2 AND key = $3 AND (expires_ms IS NULL OR expires_ms > ${NOW})`,
      [this.#time, kind, key],
    );
    return row ? decodeRecord(row as StoredRow) : null;
  }

  async list(
    kind: string,
    { namespace, where = {}, limit, cursor, without_values }: ListOptions,
  ): Promise<Page> {
    const after = cursor === undefined ? null : decodeCursor(cursor);
    const fields = Object.entries(where).map((field) => JSON.stringify(field));
    const columns = without_values
      ? "id, kind, key, namespace, '{}' AS json, index_json, created_ms, expires_ms, version"
      : "*";
    const rows = await this.#query(
      `SELECT * FROM (
         SELECT *, ${bytesBefore("octet_length(json)", "created_ms DESC, id DESC", 2)} AS before FROM (
           SELECT ${columns} FROM preamp.records WHERE kind = $2 AND namespace = $3 AND (expires_ms IS NULL OR expires_ms > ${NOW})
             ${fields.length > 0 ? "AND fields @> $4::text[]" : "AND $4::text[] IS NOT NULL"}
             AND ($5::float8 IS NULL OR (created_ms, id) < ($5::float8, $6::bigint))
           ORDER BY created_ms DESC, id DESC LIMIT $7
         ) AS part
       ) AS page WHERE before < $8::float8 ORDER BY created_ms DESC, id DESC`,
      [
        ...[this.#time, kind, namespace, fields, after?.created_ms ?? null, after?.order ?? null],
        ...[limit + 1, MAX_PAGE_BYTES],
      ],
    );
    return pageOf(rows as StoredRow[], limit);
  }

  heartbeat(owner: string, ttl_ms: number): Promise<Heartbeat> {
    return this.#servers.heartbeat(owner, ttl_ms);
  }

  async acquire(lease: string, owner: string, at_once = true): Promise<number | null> {
    const { acquire, acquireExpired } = this.#batches;
    const row = await (at_once ? acquire : acquireExpired).call({ name: lease, owner });
    return row && Number(row.token);
  }

  async free(leases: readonly string[]): Promise<string[]> {
    const rows = await this.#query(
      `SELECT name FROM unnest($2::text[]) AS asked(name) LEFT JOIN preamp.leases AS held USING (name)
       WHERE held.name IS NULL OR ${IS_FREE}`,
      [this.#time, leases],
    );
    return rows.map(({ name }) => name);
  }

  async release(lease: string, owner: string): Promise<void> {
    await this.#batches.release.call({ name: lease, owner });
    this.#changes.notify([lease]); // a run may wait for it
  }

  async ready(): Promise<{ ok: boolean; reason?: string }> {
    try {
      await this.#query(
        this.#is_writable ? "SELECT 1" : "UPDATE preamp.schema_version SET version = version",
        [],
      );
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: `store not reachable: ${errorMessage(error)}` };
    }
  }

  changed(signal: AbortSignal, concerns?: (name: string) => boolean): Promise<void> {
    return this.#changes.changed(signal, concerns);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#purging);
    await Promise.all([this.#changes.close(), this.#servers.close(), this.#packer.close()]);
    await this.#pool.end();
  }

  /** The time that replaces the database's clock, or null. */
  get #time(): number | null {
    return this.#now === null ? null : this.#now();
  }

  #query(text: string, values: Value[]): Promise<Row[]> {
    return retried(async () => (await this.#pool.query(text, values)).rows);
  }

  #transaction(body: (client: Queryable) => Promise<void>): Promise<void> {
    return retried(async () => {
      const client = await this.#pool.connect();
      let is_closed = false;
      try {
        await client.query("BEGIN");
        await body(client);
        await client.query("COMMIT");
      } catch (error) {
        // closing the connection rolls back too, and does not wait for a database that does not answer
        is_closed = !(error instanceof ConflictError || RETRIED.has(codeOf(error))) ||
          await client.query("ROLLBACK").then(() => false, () => true);
        throw error;
      } finally {
        client.release(is_closed);
      }
    });
  }

  /** Deletes expired records and logs. Every process does it; the rows are the same for all. */
  async #purge(): Promise<void> {
    while (!this.#closed && await retried(() => purgePart(this.#pool, this.#time)));
  }
}

/** Returns the names of what changes add to, logs and kinds of records, and of leases that they release. */
function namesOf(changes: readonly Change[]): string[] {
  return changes.flatMap((change) =>
    "append" in change
      ? change.append
      : "put" in change
      ? change.put.kind
      : "release" in change
      ? change.release.lease
      : []
  );
}

/**
 * Resolves to the result of a transaction; repeats it when the database ended it because another one was in
 * its way.
 */
export async function retried<T>(transaction: () => Promise<T>): Promise<T> {
  for (let attempt = 1;; attempt++) {
    try {
      return await transaction();
    } catch (error) {
      if (attempt === ATTEMPTS || !RETRIED.has(codeOf(error))) throw toStoreError(error);
    }
  }
}
