/**
 * A store in one SQLite file, synchronous: runs in the worker of `sqlite_store.ts`. Several processes may
 * open the same file; each batch is one transaction.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { CursorPosition, EncodedChange, RecordRow, StoredRow } from "../rows.ts";
import {
  ConflictError,
  type Fence,
  leaseLost,
  type ListOptions,
  MAX_PAGE_BYTES,
  notAtEnd,
  notAtVersion,
  type OpenRecords,
  tooMany,
  TooManyError,
} from "../store.ts";
import { type EntryRow, pack, packFirst, pageOfTexts, unpack } from "../packing.ts";
import { migrate } from "./schema.ts";

/** Methods of {@link SqliteDatabase} that a store calls; JSON is text in their arguments and results. */
type Method =
  | ("commit" | "entries" | "get" | "list" | "ready")
  | ("heartbeat" | "bury" | "end" | "acquire" | "free" | "release");

/** The row of an owner of leases. */
export interface StoredOwner {
  readonly owner: string;
  /** End of its time by its own clock, in milliseconds since the epoch; changes with each heartbeat. */
  readonly until_ms: number;
}

/** Result of an attempt to acquire a lease: its token, or who has it. */
export type LeaseAttempt =
  | { readonly token: number }
  | {
    readonly holder: StoredOwner;
    /** Whether it has a row. The program before this one has none. */
    readonly has_row: boolean;
    /** Whether its time is over by the clock of this process, which proves nothing. */
    readonly is_late: boolean;
  };

/** One call of the store: a method with its arguments. */
export type Operation = {
  [M in Method]: { readonly method: M; readonly args: Parameters<SqliteDatabase[M]> };
}[Method];

/** Result of an operation: its value, or the comparison or the count that failed. */
export type Outcome =
  | { readonly value: unknown }
  | { readonly conflict: string }
  | { readonly too_many: string };

/** Operations that need a transaction. */
export const WRITES: ReadonlySet<Method> = new Set([
  "commit",
  "heartbeat",
  "bury",
  "end",
  "acquire",
  "release",
]);

type Value = string | number | Uint8Array | null;
type Row = Record<string, unknown>;

/** Milliseconds that a batch waits for the transaction of another process. */
const BUSY_TIMEOUT_MS = 5_000;
/**
 * Pages of 4 KB in the write-ahead log before they are written to the file: 32 MB. Each time costs two waits
 * for the disk.
 */
const CHECKPOINT_PAGES = 8_000;
/** Bytes that are written to find out whether the file can be written. */
const PROBE_BYTES = 65_536;
/** Milliseconds after which a dead owner is deleted with the leases that were not taken. */
const KEPT_MS = 10_000;
/**
 * Whether the lease `held` may be taken from its owner; the parameter is the time. An owner without a row is
 * a process of the program before this one: it would renew the lease each 1.5 s.
 */
const IS_FREE =
  `coalesce((SELECT is_dead FROM servers AS s WHERE s.owner = held.owner), held.until_ms + 3600000 <= ?)`;
/** Rows with the entries of a log after one; not all are read. */
const ROWS = "SELECT seq, json, packed FROM entries WHERE log = ? AND seq > ? ORDER BY seq";
/** Condition of rows that have not expired at the time of its parameter. */
const UNEXPIRED = "coalesce(expires_ms > ?, true)";

/** An open SQLite file. */
export class SqliteDatabase {
  readonly #database: DatabaseSync;
  /** Version of the file's tables before it was opened; 0 for an empty file. */
  readonly opened_version: number;
  #durable = true;
  /** Whether the write-ahead log may have what was deleted. */
  #has_deleted = false;
  readonly #statements = new Map<string, StatementSync>();
  /** Time of the batch, in milliseconds since the epoch. */
  #now_ms = 0;

  /** Whether no other process can open the file. */
  readonly is_exclusive: boolean;
  /** Whether the file could be written when that was last tried. */
  #is_writable = false;

  /**
   * Opens a file, creates it if it does not exist, and brings its tables to this version.
   *
   * @param is_exclusive Opens it for this process alone, which needs no file for memory that processes share:
   * a full disk has no room for one.
   * @throws {Error} for a file that is damaged, of another program, or of a newer version.
   */
  constructor(path: string, is_exclusive = false) {
    this.is_exclusive = is_exclusive;
    this.#database = new DatabaseSync(path);
    try {
      for (
        const setting of [
          `busy_timeout = ${BUSY_TIMEOUT_MS}`,
          is_exclusive ? "locking_mode = EXCLUSIVE" : "auto_vacuum = INCREMENTAL", // the latter writes
          "journal_mode = WAL",
          `wal_autocheckpoint = ${CHECKPOINT_PAGES}`,
          "synchronous = FULL",
          "secure_delete = ON",
          "temp_store = MEMORY",
          "journal_size_limit = 67108864",
        ]
      ) this.#database.prepare(`PRAGMA ${setting}`).all();
      this.opened_version = migrate(this.#database);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /**
   * Runs operations in one transaction at a time in milliseconds since the epoch. A commit that fails a
   * comparison writes nothing. All outcomes are durable when this returns. @throws {Error} when the
   * transaction failed; then nothing was written.
   */
  run(operations: readonly Operation[], now_ms: number): Outcome[] {
    this.#now_ms = now_ms;
    const runAll = () => operations.map((operation) => this.#runOne(operation));
    if (!operations.some(({ method }) => WRITES.has(method))) return runAll();
    this.#syncIf(operations.some(({ method }) => method === "commit"));
    const had_deleted = this.#has_deleted;
    const outcomes = this.transaction(runAll);
    if (!had_deleted) this.scrub();
    return outcomes;
  }

  /**
   * Empties the write-ahead log, which may have what was deleted; in the file `secure_delete` has overwritten
   * it. While another process reads, and on a full disk, that waits for the next call.
   */
  scrub(): void {
    if (!this.#has_deleted) return;
    this.query("PRAGMA busy_timeout = 0");
    try {
      this.#has_deleted = this.#first("PRAGMA wal_checkpoint(TRUNCATE)")?.busy !== 0;
    } catch {
      // the deletion itself is done
    } finally {
      this.query(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    }
  }

  #runOne({ method, args }: Operation): Outcome {
    try {
      return { value: Reflect.apply(this[method], this, args) };
    } catch (error) {
      // nothing was written
      if (error instanceof TooManyError) return { too_many: error.message };
      if (error instanceof ConflictError) return { conflict: error.message };
      throw error;
    }
  }

  /** Not with `exec`: the errors of statements have the code of SQLite, such as that of a full disk. */
  transaction<T>(body: () => T): T {
    this.#statement("BEGIN IMMEDIATE").run();
    try {
      const result = body();
      this.#statement("COMMIT").run();
      return result;
    } catch (error) {
      this.#is_writable = false;
      if (this.#database.isTransaction) this.#statement("ROLLBACK").run(); // SQLite rolls back by itself when the disk is full
      throw error;
    }
  }

  /**
   * Sets whether the next transactions wait for the disk. Leases need not: a machine that lost power has no
   * process left that holds one.
   */
  #syncIf(durable: boolean): void {
    if (durable === this.#durable) return;
    this.#database.exec(`PRAGMA synchronous = ${durable ? "FULL" : "NORMAL"}`);
    this.#durable = durable;
  }

  /** Applies all changes or none. @throws {ConflictError} */
  commit(changes: readonly EncodedChange[], fence: Fence | undefined): void {
    if (fence) this.#requireFence(fence);
    // compared first, as a whole: an earlier change of the same commit must not satisfy a later comparison
    for (const change of changes) this.#compare(change);
    for (const change of changes) this.#apply(change);
  }

  #requireFence(fence: Fence): void {
    const row = this.#first("SELECT token FROM leases WHERE name = ?", fence.lease);
    if (row?.token !== fence.token) throw leaseLost(fence);
  }

  #compare(change: EncodedChange): void {
    if ("append" in change) {
      const log = this.#first("SELECT last_seq FROM logs WHERE name = ?", change.append);
      const last = Number(log?.last_seq ?? 0);
      if (last !== change.after) throw notAtEnd(change, last);
    } else if ("put" in change && change.expect !== undefined) {
      const version = this.get(change.put.kind, change.put.key)?.version ?? 0;
      if (version !== change.expect) throw notAtVersion(change, version);
    } else if ("count" in change && this.#countOf(change.count) >= change.below) throw tooMany(change);
  }

  #countOf({ kind, namespace, where }: OpenRecords): number {
    const { from, conditions, values } = filtered(kind, namespace, { ...where, open: "true" });
    const sql = `SELECT count(*) AS count FROM ${from} WHERE ${conditions.join(" AND ")} AND ${UNEXPIRED}`;
    return Number(this.#first(sql, ...values, this.#now_ms)!.count);
  }

  #apply(change: EncodedChange): void {
    if ("append" in change) this.#append(change.append, change.after, change.entries);
    else if ("put" in change) this.#put(change.put);
    else if ("delete" in change) this.deleteRecord(change.delete.kind, change.delete.key);
    else if ("deleteLog" in change) this.deleteLog(change.deleteLog);
    else if ("release" in change) {
      const { lease, token } = change.release;
      this.query("DELETE FROM leases WHERE name = ? AND token = ?", lease, token);
    } else if ("expireLog" in change) {
      this.query("UPDATE logs SET expires_ms = ? WHERE name = ?", change.at_ms, change.expireLog);
    }
  }

  #append(log: string, after: number, entries: readonly string[]): void {
    const insert = this.#statement("INSERT INTO entries (log, seq, json, packed) VALUES (?, ?, ?, ?)");
    let seq = after;
    for (const json of entries) {
      const packed = pack(json);
      insert.run(log, ++seq, packed ? "" : json, packed);
    }
    this.query(
      "INSERT INTO logs (name, last_seq) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET last_seq = excluded.last_seq",
      log,
      seq,
    );
  }

  /**
   * Packs the first rows of a log after an entry, not durably; returns the number of their last entry, null
   * at the end of the log.
   */
  packPart(log: string, after: number): number | null {
    const part = packFirst(this.#rows(log, after));
    if (!part?.packed) return part && part.last;
    const { last, count, packed } = part;
    this.#syncIf(false);
    this.transaction(() => {
      this.query("DELETE FROM entries WHERE log = ? AND seq > ? AND seq < ?", log, after, last);
      const sql = "UPDATE entries SET json = '', packed = ?, count = ? WHERE log = ? AND seq = ?";
      this.query(sql, packed, count, log, last);
    });
    return last;
  }

  #rows(log: string, after: number): Iterable<EntryRow> {
    return this.#statement(ROWS).iterate(log, after) as unknown as Iterable<EntryRow>; // the columns of the table
  }

  #put({ kind, key, namespace, json, index_json, created_ms, expires_ms }: RecordRow): void {
    let before = this.#first(
      "SELECT namespace, index_json, created_ms, expires_ms FROM records WHERE kind = ? AND key = ?",
      kind,
      key,
    );
    if (typeof before?.expires_ms === "number" && before.expires_ms <= this.#now_ms) {
      this.deleteRecord(kind, key); // an expired record counts as deleted
      before = undefined;
    }
    const created = created_ms ?? Number(before?.created_ms ?? this.#now_ms);
    const packed = pack(json);
    const row = this.#first(
      `INSERT INTO records (kind, key, namespace, json, packed, index_json, created_ms, expires_ms, version)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)
       ON CONFLICT (kind, key) DO UPDATE SET namespace = excluded.namespace, json = excluded.json,
         packed = excluded.packed, index_json = excluded.index_json, created_ms = excluded.created_ms, expires_ms = excluded.expires_ms,
         version = records.version + 1
       RETURNING id`,
      ...[kind, key, namespace, packed ? "" : json, packed, index_json, created, expires_ms],
    );
    const same_index = before?.index_json === index_json && before?.namespace === namespace &&
      before?.created_ms === created;
    if (same_index) return;
    const id = Number(row!.id);
    this.query("DELETE FROM record_index WHERE id = ?", id);
    const fields = Object.entries<string>(index_json === null ? {} : JSON.parse(index_json));
    for (const [field, value] of fields) {
      const columns = [kind, namespace, field, value, created, id];
      this.query("INSERT INTO record_index VALUES (?, ?, ?, ?, ?, ?)", ...columns);
    }
  }

  /** Deletes a log with its entries. */
  deleteLog(name: string): void {
    this.query("DELETE FROM entries WHERE log = ?", name);
    const row = this.#first("DELETE FROM logs WHERE name = ? RETURNING name", name);
    this.#has_deleted ||= row !== undefined;
  }

  /** Deletes a record with its index. */
  deleteRecord(kind: string, key: string): void {
    const row = this.#first("DELETE FROM records WHERE kind = ? AND key = ? RETURNING id", kind, key);
    this.#has_deleted ||= row !== undefined;
    if (row) this.query("DELETE FROM record_index WHERE id = ?", row.id as number);
  }

  /** Returns entries as JSON; null if the log does not exist or has expired. */
  entries(log: string, after: number, limit: number, max_bytes?: number): string[] | null {
    const found = this.#first(`SELECT 1 FROM logs WHERE name = ? AND ${UNEXPIRED}`, log, this.#now_ms);
    return found ? pageOfTexts(this.#rows(log, after), after, limit, max_bytes) : null;
  }

  get(kind: string, key: string): StoredRow | null {
    const sql = `SELECT * FROM records WHERE kind = ? AND key = ? AND ${UNEXPIRED}`;
    const row = this.#first(sql, kind, key, this.#now_ms);
    return row ? recordOf(row) : null;
  }

  /** Returns at least one record more than the page has when there is another page. */
  list(kind: string, options: Omit<ListOptions, "cursor">, after: CursorPosition | null): StoredRow[] {
    const { namespace, where = {}, limit, without_values } = options;
    const { from, position, conditions, values } = filtered(kind, namespace, where);
    if (after) {
      conditions.push(`(${position}.created_ms, ${position}.id) < (?, ?)`);
      values.push(after.created_ms, after.order);
    }
    const columns = without_values
      ? "r.id, r.kind, r.key, r.namespace, '{}' AS json, NULL AS packed, r.index_json, r.created_ms, r.expires_ms, r.version"
      : "r.*";
    const sql = `SELECT ${columns} FROM ${from} WHERE ${conditions.join(" AND ")} AND ${UNEXPIRED}
      ORDER BY ${position}.created_ms DESC, ${position}.id DESC LIMIT ?`;
    const rows: StoredRow[] = [];
    let bytes = 0;
    for (const row of this.#statement(sql).iterate(...values, this.#now_ms, limit + 1)) {
      const record = recordOf(row);
      rows.push(record);
      if (bytes >= MAX_PAGE_BYTES) break;
      bytes += record.json.length;
    }
    return rows;
  }

  /**
   * Says that an owner lives; returns whether it does, the owners that were not found dead, and whether
   * others were. Renews its leases for the program before this one, which looks at each.
   */
  heartbeat(
    owner: string,
    ttl_ms: number,
    is_new: boolean,
  ): { lives: boolean; living: StoredOwner[]; deaths: boolean } {
    const until_ms = this.#now_ms + ttl_ms;
    if (is_new) this.query("INSERT OR IGNORE INTO servers VALUES (?, ?, 0)", owner, until_ms);
    const sql = "UPDATE servers SET until_ms = ? WHERE owner = ? AND NOT is_dead RETURNING owner";
    const own = this.#first(sql, until_ms, owner);
    this.query("UPDATE leases SET until_ms = ? WHERE owner = ?", until_ms, owner);
    const owners = this.query("SELECT owner, until_ms, is_dead FROM servers");
    return {
      lives: own !== undefined,
      living: owners.filter(({ is_dead }) => !is_dead) as unknown as StoredOwner[], // the columns of the table
      deaths: owners.some((other) => other.is_dead && other.owner !== owner),
    };
  }

  /**
   * Finds owners dead, unless they have said meanwhile that they live. Deletes those that have been dead for
   * some seconds.
   */
  bury(owners: readonly StoredOwner[]): void {
    for (const { owner, until_ms } of owners) {
      this.query("UPDATE servers SET is_dead = 1 WHERE owner = ? AND until_ms = ?", owner, until_ms);
    }
    const gone = this.query(
      "DELETE FROM servers WHERE is_dead AND until_ms <= ? RETURNING owner",
      this.#now_ms - KEPT_MS,
    );
    for (const { owner } of gone) this.query("DELETE FROM leases WHERE owner = ?", String(owner));
  }

  /** Says that an owner has ended. */
  end(owner: string): void {
    this.query("UPDATE servers SET is_dead = 1, until_ms = ? WHERE owner = ?", this.#now_ms, owner);
  }

  /**
   * Acquires a lease that is free or own. `gone`: owner whose process is known to have ended; `at_once`:
   * whether the time of a dead owner need not be over.
   */
  acquire(lease: string, owner: string, at_once: boolean, gone: string | null): LeaseAttempt {
    const row = this.#first(
      `SELECT held.owner, token, ${IS_FREE} AS is_free, coalesce(s.until_ms, held.until_ms) AS until_ms,
         s.owner IS NOT NULL AS has_row
       FROM leases AS held LEFT JOIN servers AS s USING (owner) WHERE name = ?`,
      ...[this.#now_ms, lease],
    );
    if (row && row.owner !== owner && row.owner !== gone) {
      const holder = { owner: String(row.owner), until_ms: Number(row.until_ms) };
      const is_late = holder.until_ms <= this.#now_ms;
      if (!row.is_free || !at_once && !is_late) return { holder, has_row: Boolean(row.has_row), is_late };
    }
    const token = row?.owner === owner ? Number(row.token) : this.#nextToken();
    this.query(
      `INSERT INTO leases SELECT ?, owner, ?, until_ms FROM servers WHERE owner = ?
       ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, until_ms = excluded.until_ms`,
      ...[lease, token, owner],
    );
    return { token };
  }

  /** Returns the leases that are free, and those of owners without a row, which may have died. */
  free(leases: readonly string[]): { lease: string; owner: string | null }[] {
    const sql = `SELECT ${IS_FREE} AS is_free, held.owner, s.owner IS NULL AS is_unknown
      FROM leases AS held LEFT JOIN servers AS s USING (owner) WHERE name = ?`;
    return leases.flatMap((lease) => {
      const row = this.#first(sql, this.#now_ms, lease);
      if (!row || row.is_free) return { lease, owner: null };
      return row.is_unknown ? { lease, owner: String(row.owner) } : [];
    });
  }

  /** Returns a token that was never used before, so that an old fence stays invalid. */
  #nextToken(): number {
    return Number(this.#first("UPDATE last_token SET token = token + 1 RETURNING token")!.token);
  }

  release(lease: string, owner: string): void {
    this.query("DELETE FROM leases WHERE name = ? AND owner = ?", lease, owner);
  }

  /** Reads the file, and writes it unless the last write succeeded. @throws {Error} when that fails. */
  ready(): void {
    const is_known = this.#is_writable || this.#database.isTransaction; // of a batch: its other writes show it
    if (is_known) this.query("SELECT token FROM last_token");
    else {
      this.transaction(() => { // as much as a commit writes: a full disk may have room for a page
        this.query("INSERT INTO entries (log, seq, json) VALUES ('', 0, ?)", " ".repeat(PROBE_BYTES));
        this.query("DELETE FROM entries WHERE log = ''");
      });
      this.#is_writable = true;
    }
  }

  /** Reads the whole file. @throws {Error} when it is damaged. */
  quickCheck(): void {
    const { quick_check: found } = this.#first("PRAGMA quick_check(1)")!;
    if (found !== "ok") throw new Error(`database disk image is malformed: ${found}`);
  }

  /** A number that changes when another connection has changed the file. */
  get data_version(): number {
    return Number(this.#first("PRAGMA data_version")!.data_version);
  }

  /** Runs a statement and returns its rows. */
  query(sql: string, ...values: Value[]): Row[] {
    return this.#statement(sql).all(...values);
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) this.#statements.set(sql, statement = this.#database.prepare(sql));
    return statement;
  }

  #first(sql: string, ...values: Value[]): Row | undefined {
    return this.#statement(sql).get(...values);
  }
}

/** Returns the parts of a statement that selects records `r` by their index. */
function filtered(kind: string, namespace: string, where: Readonly<Record<string, string>>) {
  const [first, ...others] = Object.entries(where);
  const from = first
    ? "record_index AS i CROSS JOIN records AS r ON r.id = i.id" // the index is in the order of the list
    : "records AS r";
  const position = first ? "i" : "r";
  const conditions = [`${position}.kind = ?`, `${position}.namespace = ?`];
  const values: (string | number)[] = [kind, namespace];
  if (first) {
    conditions.push("i.field = ?", "i.value = ?");
    values.push(...first);
  }
  for (const [field, value] of others) {
    conditions.push(
      "EXISTS (SELECT 1 FROM record_index AS o WHERE o.id = r.id AND o.field = ? AND o.value = ?)",
    );
    values.push(field, value);
  }
  return { from, position, conditions, values };
}

/** Returns a row of `records` as the store reads it. */
function recordOf(row: Row): StoredRow {
  const stored = row as unknown as StoredRow & { packed: Uint8Array | null }; // the columns of the table
  return stored.packed ? Object.assign(stored, { json: unpack(stored.packed), packed: null }) : stored;
}
