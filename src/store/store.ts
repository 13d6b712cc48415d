/**
 * The interface of every store: append-only logs, records with compare-and-set, leases with fencing. It knows
 * only names and JSON, not runs, approvals or sessions. Opens the store that the setting `store` names; the
 * code of a store is loaded when it is used.
 */
import type { JsonObject } from "../sdk/types.ts";

/** An entry of a log; the store reads `seq` only. */
export interface LogEntry {
  readonly seq: number;
}

/** A record: JSON under a kind and a key, with fields to filter lists by. */
export interface StoredRecord {
  kind: string;
  key: string;
  /** Lists contain the records of one namespace. */
  namespace: string;
  value: JsonObject;
  /** Fields that lists can be filtered by, such as `{session_id, status}`. */
  index?: Record<string, string>;
  /** Sort key of lists, newest first; milliseconds since the epoch. Default: the time of the first put. */
  created_ms?: number;
  /** Expiry in milliseconds since the epoch; after it the record counts as deleted. */
  expires_ms?: number;
}

/** A record with the version that `expect` compares. */
export interface VersionedRecord extends StoredRecord {
  version: number;
}

/** A record without its value. */
export type ListedRecord = Omit<VersionedRecord, "value">;

/** One change of a commit. */
export type Change =
  /**
   * Appends to a log whose last entry must be `after`; without entries, only compares. `bytes`: estimated
   * JSON size of the entries, if known. `final_bytes`, if the log ends here: that of all its entries. A
   * store may then keep it in less space.
   */
  | { append: string; after: number; entries: readonly LogEntry[]; bytes?: number; final_bytes?: number }
  /** Puts a record; with `expect`, only over that version (0: it must not exist). */
  | { put: StoredRecord; expect?: number }
  | { delete: { kind: string; key: string } }
  | { deleteLog: string }
  /**
   * Makes a log expire at `at_ms`, in milliseconds since the epoch; after it the log counts as deleted. Null:
   * it does not expire any more.
   */
  | { expireLog: string; at_ms: number | null }
  /** Releases a lease that is held with this token; any other stays. */
  | { release: Fence }
  /** Requires that there are fewer than `below` of these records before the commit. @throws {TooManyError} */
  | { count: OpenRecords; below: number };

/**
 * The open records, with `open: "true"` in their index, of a kind and a namespace, whose index has all fields
 * of `where` too.
 */
export interface OpenRecords {
  kind: string;
  namespace: string;
  where: Record<string, string>;
}

/** What a heartbeat of an owner of leases has found. */
export interface Heartbeat {
  /** Whether the owner lives. If not, another one has found it dead: its leases are lost, for ever. */
  readonly lives: boolean;
  /** Whether other owners have died, or ended, in the last seconds. */
  readonly deaths: boolean;
}

/** Proof of a lease; a commit with an older token is refused. */
export interface Fence {
  lease: string;
  token: number;
}

/**
 * Bytes of JSON at which a page ends, whatever its `limit`, after the item with which it reaches them: a page
 * is held in memory and answered as one text.
 */
export const MAX_PAGE_BYTES = 8 * 1024 * 1024;

/** Filter and page of a list, newest first. */
export interface ListOptions {
  namespace: string;
  where?: Record<string, string>;
  limit: number;
  /** The `next_cursor` of the previous page; any other value is `request_invalid`. */
  cursor?: string;
  /** Leaves out the values, which are not read: each is `{}`. Default: false. */
  without_values?: boolean;
}

/** A value or a promise of it: an in-memory store answers synchronously, without a turn of the event loop. */
export type Awaitable<T> = T | Promise<T>;

/** Thrown when a comparison of a commit fails; no change was applied. */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
  readonly code: string = "session_conflict";
}

/** Code of {@link TooManyError}. */
export const TOO_MANY = "too_many_records";

/** Thrown when a commit counts too many records; no change was applied. */
export class TooManyError extends ConflictError {
  override readonly code = TOO_MANY;
}

/** Returns the error of a commit that counts too many records. */
export function tooMany(
  { count: { kind }, below }: { count: { kind: string }; below: number },
): TooManyError {
  return new TooManyError(`Cannot commit: there are ${below} records of kind ${kind} or more`);
}

/** Returns the error of an append to a log that ends at another entry. */
export function notAtEnd({ append, after }: { append: string; after: number }, end?: number): ConflictError {
  const fact = end === undefined ? `does not end at ${after}` : `ends at ${end}: received ${after}`;
  return new ConflictError(`Cannot append to "${append}": ${fact}`);
}

/** Returns the error of a put over another version. */
export function notAtVersion(
  { put: { kind, key }, expect }: { put: { kind: string; key: string }; expect?: number },
  version?: number,
): ConflictError {
  const fact = version === undefined
    ? `is not at version ${expect}`
    : `is at version ${version}: received ${expect}`;
  return new ConflictError(`Cannot put ${kind} "${key}": ${fact}`);
}

/** Returns the error of a commit with an older token than that of the lease. */
export function leaseLost({ lease, token }: Fence): ConflictError {
  return new ConflictError(`Cannot commit: lease "${lease}" is not held with token ${token}`);
}

/** A page of a list. */
export interface Page {
  records: VersionedRecord[];
  /** Cursor of the next page; null: this is the last one. */
  next_cursor: string | null;
}

/** Stores logs, records and leases. */
export interface Store {
  /** Name of the store, such as `memory`. */
  readonly kind: string;
  /**
   * Applies all changes or none.
   * @throws {ConflictError} when a version, the end of a log or a fence is not the expected one.
   * @throws {TooManyError} when it counts too many records.
   */
  commit(changes: readonly Change[], fence?: Fence): Awaitable<void>;
  /**
   * Returns at most `limit` entries of a log after `after`, up to the one with which they reach `max_bytes`
   * of JSON (default: no limit); null when the log was deleted or has expired.
   */
  entries(
    log: string,
    after: number,
    limit: number,
    max_bytes?: number,
  ): Awaitable<readonly LogEntry[] | null>;
  get(kind: string, key: string): Awaitable<VersionedRecord | null>;
  /** Returns a page of at most `limit` records and about {@link MAX_PAGE_BYTES}. */
  list(kind: string, options: ListOptions): Awaitable<Page>;
  /**
   * Says that an owner of leases lives for `ttl_ms` from now on, and finds the others that have died: those
   * that have not said so for their time, and those that are late and whose process is known to have ended.
   * An owner must have said so before it acquires a lease.
   */
  heartbeat(owner: string, ttl_ms: number): Awaitable<Heartbeat>;
  /**
   * Acquires a lease, which lasts as long as its owner lives. Returns its fencing token, or null while
   * another owner has it that was not found dead. With `at_once: false` that owner's time must be over, too.
   */
  acquire(lease: string, owner: string, at_once?: boolean): Awaitable<number | null>;
  /** Returns those of these leases that `acquire` would take from their owners, or that no owner has. */
  free(leases: readonly string[]): Awaitable<string[]>;
  release(lease: string, owner: string): Awaitable<void>;
  /**
   * Resolves when another process has changed the store, or `signal` aborts. Absent: no other process can.
   * `concerns`: asked about the names of what was changed (logs and kinds of records with additions,
   * released leases) where the store knows them; a change of which it returns false for each may not be
   * reported. Default: all.
   */
  changed?(signal: AbortSignal, concerns?: (name: string) => boolean): Promise<void>;
  /** Returns whether the store can be read and written now, and the reason if not. */
  ready(): Awaitable<{ ok: boolean; reason?: string }>;
  close(): Awaitable<void>;
}

/** What a store holds. */
export interface StoreState {
  /** Damage that was found; empty for a sound store. */
  problems: string[];
  /** Version of the tables. */
  version: number;
  /** Numbers of rows, expired ones included; 0 where damage prevents counting. */
  records: number;
  logs: number;
  entries: number;
  /** Size on disk. */
  bytes: number;
}

/** A store that is open for maintenance: `preamp store check | migrate | vacuum`. */
export interface Maintenance {
  /** Version of the tables before they were opened; 0: there were none. */
  readonly opened_version: number;
  /** Checks the store and counts its rows; reads everything. */
  state(): Promise<StoreState>;
  /**
   * Deletes rows that expired before `now_ms` (milliseconds since the epoch) and returns their space to the
   * disk.
   */
  vacuum(now_ms: number): Promise<void>;
  close(): Promise<void>;
}

const PAGE_RECORDS = 1_000;

/** Yields all records of a kind, newest first and without their values, page by page. */
export async function* allRecords(
  store: Store,
  kind: string,
  options: Pick<ListOptions, "namespace" | "where">,
): AsyncGenerator<ListedRecord> {
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await store.list(kind, {
      ...options,
      limit: PAGE_RECORDS,
      without_values: true,
      ...(cursor === undefined ? {} : { cursor }),
    });
    yield* page.records;
    cursor = page.next_cursor;
  }
}
