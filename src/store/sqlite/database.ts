/**
 * A store in one SQLite file, synchronous: runs in the worker of `sqlite_store.ts`. Several processes may open the same
 * file; each batch is one transaction.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { ConflictError, type Fence } from "../store.ts";
import { isSame, type LeaseAttempt, type StoredLease } from "../observed_leases.ts";
import type { EncodedChange, RecordRow, StoredRow } from "../rows.ts";
import type { ListQuery, Operation, Outcome } from "./protocol.ts";
import { migrate } from "./schema.ts";

/** Milliseconds that a batch waits for the transaction of another process. */
const BUSY_TIMEOUT_MS = 5_000;
/** Pages of 4 KB in the write-ahead log before they are written to the file: 32 MB. Each time costs two waits for the disk. */
const CHECKPOINT_PAGES = 8_000;
/** Maximum rows that one call of {@link SqliteDatabase.purge} deletes, so that it does not delay commits. */
const PURGE_ROWS = 1_000;

/** An open SQLite file. */
export class SqliteDatabase {
  readonly #database: DatabaseSync;
  /** Version of the file's tables before it was opened; 0 for an empty file. */
  readonly opened_version: number;
  #durable = true;
  readonly #statements = new Map<string, StatementSync>();

  /**
   * Opens a file, creates it if it does not exist, and brings its tables to this version.
   *
   * @throws {Error} for a file that is damaged, of another program, or of a newer version.
   */
  constructor(path: string) {
    this.#database = new DatabaseSync(path);
    try {
      this.#database.exec(`
        PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS};
        PRAGMA auto_vacuum = INCREMENTAL;
        PRAGMA journal_mode = WAL;
        PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
        PRAGMA synchronous = FULL;
        PRAGMA temp_store = MEMORY;
        PRAGMA journal_size_limit = 67108864;
      `);
      this.opened_version = migrate(this.#database);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /**
   * Runs operations in one transaction. A commit that fails a comparison writes nothing. All outcomes are durable
   * when this returns. @throws {Error} when the transaction failed; then nothing was written.
   */
  run(operations: readonly Operation[], now_ms: number): Outcome[] {
    if (!operations.some(({ kind }) => WRITES.has(kind))) {
      return operations.map((operation) => this.#runOne(operation, now_ms));
    }
    this.#syncIf(operations.some(({ kind }) => kind === "commit"));
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const outcomes = operations.map((operation) => this.#runOne(operation, now_ms));
      this.#database.exec("COMMIT");
      return outcomes;
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK"); // SQLite rolls back by itself when the disk is full
      throw error;
    }
  }

  /**
   * Sets whether the next transactions wait for the disk. Leases need not: a machine that lost power has no process left
   * that holds one.
   */
  #syncIf(durable: boolean): void {
    if (durable === this.#durable) return;
    this.#database.exec(`PRAGMA synchronous = ${durable ? "FULL" : "NORMAL"}`);
    this.#durable = durable;
  }

  #runOne(operation: Operation, now_ms: number): Outcome {
    switch (operation.kind) {
      case "commit":
        return this.#commit(operation, now_ms);
      case "entries":
        return { value: this.#entries(operation, now_ms) };
      case "get":
        return { value: this.#get(operation.record_kind, operation.key, now_ms) };
      case "list":
        return { value: this.#list(operation.query, now_ms) };
      case "acquire":
        return { value: this.#acquire(operation, now_ms) };
      case "renew":
        return { value: this.#renew(operation, now_ms) };
      case "release":
        this.#all("DELETE FROM leases WHERE name = ? AND owner = ?", operation.lease, operation.owner);
        return { value: null };
      case "ready":
        this.#all("SELECT token FROM last_token");
        return { value: null };
    }
  }

  #commit({ changes, fence }: Extract<Operation, { kind: "commit" }>, now_ms: number): Outcome {
    try {
      if (fence) this.#requireFence(fence);
      // compared first, as a whole: an earlier change of the same commit must not satisfy a later comparison
      for (const change of changes) this.#compare(change, now_ms);
    } catch (error) {
      if (error instanceof ConflictError) return { conflict: error.message }; // nothing was written
      throw error;
    }
    for (const change of changes) this.#apply(change, now_ms);
    return { value: null };
  }

  #requireFence({ lease, token }: Fence): void {
    const row = this.#first("SELECT token FROM leases WHERE name = ?", lease);
    if (row?.token === token) return;
    throw new ConflictError(`Cannot commit: lease "${lease}" is not held with token ${token}`);
  }

  #compare(change: EncodedChange, now_ms: number): void {
    if ("append" in change) {
      const last = Number(
        this.#first("SELECT last_seq FROM logs WHERE name = ?", change.append)?.last_seq ?? 0,
      );
      if (last === change.after) return;
      throw new ConflictError(
        `Cannot append to "${change.append}": ends at ${last}: received ${change.after}`,
      );
    }
    if ("put" in change && change.expect !== undefined) {
      const { kind, key } = change.put;
      const version = this.#get(kind, key, now_ms)?.version ?? 0;
      if (version === change.expect) return;
      throw new ConflictError(
        `Cannot put ${kind} "${key}": is at version ${version}: received ${change.expect}`,
      );
    }
  }

  #apply(change: EncodedChange, now_ms: number): void {
    if ("append" in change) this.#append(change.append, change.after, change.entries);
    else if ("put" in change) this.#put(change.put, now_ms);
    else if ("delete" in change) this.#delete(change.delete.kind, change.delete.key);
    else if ("deleteLog" in change) this.#deleteLog(change.deleteLog);
    else this.#all("UPDATE logs SET expires_ms = ? WHERE name = ?", change.at_ms, change.expireLog);
  }

  #append(log: string, after: number, entries: readonly string[]): void {
    const insert = this.#statement("INSERT INTO entries (log, seq, json) VALUES (?, ?, ?)");
    let seq = after;
    for (const json of entries) insert.run(log, ++seq, json);
    this.#all(
      "INSERT INTO logs (name, last_seq) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET last_seq = excluded.last_seq",
      log,
      seq,
    );
  }

  #put({ kind, key, namespace, json, index_json, created_ms, expires_ms }: RecordRow, now_ms: number): void {
    let before = this.#first(
      "SELECT namespace, index_json, created_ms, expires_ms FROM records WHERE kind = ? AND key = ?",
      kind,
      key,
    );
    if (typeof before?.expires_ms === "number" && before.expires_ms <= now_ms) {
      this.#delete(kind, key); // an expired record counts as deleted
      before = undefined;
    }
    const created = created_ms ?? Number(before?.created_ms ?? now_ms);
    const row = this.#first(
      `INSERT INTO records (kind, key, namespace, json, index_json, created_ms, expires_ms, version)
       VALUES (?, ?, ?, ?, ?, ?, ?, 1)
       ON CONFLICT (kind, key) DO UPDATE SET namespace = excluded.namespace, json = excluded.json,
         index_json = excluded.index_json, created_ms = excluded.created_ms, expires_ms = excluded.expires_ms,
         version = records.version + 1
       RETURNING id`,
      kind,
      key,
      namespace,
      json,
      index_json,
      created,
      expires_ms,
    );
    const same_index = before?.index_json === index_json && before?.namespace === namespace &&
      before?.created_ms === created;
    if (!same_index) this.#indexRecord(Number(row!.id), { kind, namespace, index_json, created_ms: created });
  }

  #indexRecord(
    id: number,
    { kind, namespace, index_json, created_ms }: Pick<RecordRow, "kind" | "namespace" | "index_json"> & {
      created_ms: number;
    },
  ): void {
    this.#all("DELETE FROM record_index WHERE id = ?", id);
    if (index_json === null) return;
    for (const [field, value] of Object.entries(JSON.parse(index_json) as Record<string, string>)) {
      this.#all(
        "INSERT INTO record_index VALUES (?, ?, ?, ?, ?, ?)",
        kind,
        namespace,
        field,
        value,
        created_ms,
        id,
      );
    }
  }

  #delete(kind: string, key: string): void {
    const row = this.#first("DELETE FROM records WHERE kind = ? AND key = ? RETURNING id", kind, key);
    if (row) this.#all("DELETE FROM record_index WHERE id = ?", row.id as number);
  }

  #deleteLog(name: string): void {
    this.#all("DELETE FROM entries WHERE log = ?", name);
    this.#all("DELETE FROM logs WHERE name = ?", name);
  }

  #entries({ log, after, limit }: Extract<Operation, { kind: "entries" }>, now_ms: number): string[] | null {
    const found = this.#first(
      "SELECT 1 FROM logs WHERE name = ? AND (expires_ms IS NULL OR expires_ms > ?)",
      log,
      now_ms,
    );
    if (!found) return null;
    const rows = this.#all(
      "SELECT json FROM entries WHERE log = ? AND seq > ? ORDER BY seq LIMIT ?",
      log,
      after,
      limit,
    );
    return rows.map(({ json }) => json as string);
  }

  #get(kind: string, key: string, now_ms: number): StoredRow | null {
    const row = this.#first(
      "SELECT * FROM records WHERE kind = ? AND key = ? AND (expires_ms IS NULL OR expires_ms > ?)",
      kind,
      key,
      now_ms,
    );
    return row ? row as unknown as StoredRow : null; // the columns of the table
  }

  /** Returns one record more than `limit` when there is another page. */
  #list({ kind, namespace, where, limit, after }: ListQuery, now_ms: number): StoredRow[] {
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
    if (after) {
      conditions.push(`(${position}.created_ms, ${position}.id) < (?, ?)`);
      values.push(after.created_ms, after.order);
    }
    conditions.push("(r.expires_ms IS NULL OR r.expires_ms > ?)");
    const rows = this.#all(
      `SELECT r.* FROM ${from} WHERE ${
        conditions.join(" AND ")
      } ORDER BY ${position}.created_ms DESC, ${position}.id DESC LIMIT ?`,
      ...values,
      now_ms,
      limit + 1,
    );
    return rows as unknown as StoredRow[]; // the columns of the table
  }

  #acquire(
    { lease, owner, ttl_ms, expired }: Extract<Operation, { kind: "acquire" }>,
    now_ms: number,
  ): LeaseAttempt {
    const row = this.#first("SELECT owner, token, until_ms FROM leases WHERE name = ?", lease);
    const held = row && { owner: String(row.owner), until_ms: Number(row.until_ms) };
    if (held && held.owner !== owner && !isSame(expired, held)) {
      return { held, late: held.until_ms <= now_ms };
    }
    const token = held?.owner === owner ? Number(row!.token) : this.#nextToken();
    const acquired = { owner, until_ms: now_ms + ttl_ms };
    this.#all(
      `INSERT INTO leases VALUES (?, ?, ?, ?)
       ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, until_ms = excluded.until_ms`,
      lease,
      owner,
      token,
      acquired.until_ms,
    );
    return { acquired, token };
  }

  /** Returns a token that was never used before, so that an old fence stays invalid. */
  #nextToken(): number {
    return Number(this.#first("UPDATE last_token SET token = token + 1 RETURNING token")!.token);
  }

  /** Returns the renewed lease, or null when it was lost. */
  #renew(
    { lease, owner, ttl_ms }: Extract<Operation, { kind: "renew" }>,
    now_ms: number,
  ): StoredLease | null {
    const until_ms = now_ms + ttl_ms;
    const row = this.#first(
      "UPDATE leases SET until_ms = ? WHERE name = ? AND owner = ? RETURNING token",
      until_ms,
      lease,
      owner,
    );
    return row === undefined ? null : { owner, until_ms };
  }

  /** Deletes expired logs and records, at most a thousand rows; returns whether more may be left. */
  purge(now_ms: number): boolean {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const records = this.#all(
        "SELECT kind, key FROM records WHERE expires_ms <= ? LIMIT ?",
        now_ms,
        PURGE_ROWS,
      );
      for (const { kind, key } of records) this.#delete(kind as string, key as string);
      let rows = records.length;
      for (
        const { name } of this.#all("SELECT name FROM logs WHERE expires_ms <= ? LIMIT ?", now_ms, PURGE_ROWS)
      ) {
        if (rows >= PURGE_ROWS) break;
        const { changes } = this.#statement(
          "DELETE FROM entries WHERE (log, seq) IN (SELECT log, seq FROM entries WHERE log = ? LIMIT ?)",
        ).run(name as string, PURGE_ROWS);
        rows += Number(changes);
        if (Number(changes) < PURGE_ROWS) this.#all("DELETE FROM logs WHERE name = ?", name as string);
      }
      this.#database.exec("COMMIT");
      return rows >= PURGE_ROWS;
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  /** A number that changes when another connection has changed the file. */
  get data_version(): number {
    return Number(this.#first("PRAGMA data_version")!.data_version);
  }

  /** Returns the numbers of stored rows. */
  counts(): { records: number; logs: number; entries: number } {
    const count = (table: string) => Number(this.#first(`SELECT count(*) AS n FROM ${table}`)!.n);
    return { records: count("records"), logs: count("logs"), entries: count("entries") };
  }

  /** Size of the file in bytes, once the write-ahead log is copied into it. */
  get bytes(): number {
    const pragma = (name: string) => Number(this.#first(`PRAGMA ${name}`)![name]);
    return pragma("page_count") * pragma("page_size");
  }

  /** Limits the size of the file to a number of pages, 4 KiB each. */
  limitPages(pages: number): void {
    this.#database.exec(`PRAGMA max_page_count = ${Math.trunc(pages)}`);
  }

  /** Returns the problems of a damaged file; an empty list for a sound one. */
  check(): string[] {
    const rows = this.#all("PRAGMA integrity_check(20)").map((row) => String(row.integrity_check));
    return rows.length === 1 && rows[0] === "ok" ? [] : rows;
  }

  /** Returns the space of deleted rows to the disk. (`VACUUM` would attach a second file, which Deno does not allow.) */
  vacuum(): void {
    this.#database.prepare("PRAGMA incremental_vacuum").all();
    this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
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

  #first(sql: string, ...values: Value[]): Record<string, unknown> | undefined {
    return this.#statement(sql).get(...values);
  }

  #all(sql: string, ...values: Value[]): Record<string, unknown>[] {
    return this.#statement(sql).all(...values);
  }
}

type Value = string | number | null;

/** Operations that need a transaction. */
const WRITES: ReadonlySet<Operation["kind"]> = new Set(["commit", "acquire", "renew", "release"]);
