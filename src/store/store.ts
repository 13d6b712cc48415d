/**
 * What runs keep, and how: logs that only grow, records that are compared before they are set, leases with fencing. The
 * interface every store has; it knows no run, no approval and no session, only names and JSON.
 */
import type { JsonObject } from "../sdk/types.ts";

/** An entry of a log; the store looks at `seq` alone. */
export interface LogEntry {
  readonly seq: number;
}

/** A record: JSON under a kind and a key, with what lists are filtered by. */
export interface StoredRecord {
  kind: string;
  key: string;
  /** Everything a caller makes lives here; lists never cross it. */
  namespace: string;
  value: JsonObject;
  /** Values that lists can be filtered by, such as `{session_id, status}`. */
  index?: Record<string, string>;
  /** Lists are ordered by it, newest first; milliseconds since the epoch. Default: when it was first put. */
  created_ms?: number;
  /** Milliseconds since the epoch after which the record is as if deleted. */
  expires_ms?: number;
}

/** A record as it is read: with the version to compare against. */
export interface VersionedRecord extends StoredRecord {
  version: number;
}

/** One change of a commit. */
export type Change =
  /** Appends to a log whose last entry must be `after`. `bytes` is about what the entries take as JSON; absent: nobody knows. */
  | { append: string; after: number; entries: readonly LogEntry[]; bytes?: number }
  /** Puts a record; with `expect`, only over that version (0: it must not exist). */
  | { put: StoredRecord; expect?: number }
  | { delete: { kind: string; key: string } }
  | { deleteLog: string }
  /** Has a log expire: from `at_ms` on, in milliseconds since the epoch, it is as if deleted. */
  | { expireLog: string; at_ms: number };

/** The proof that a lease is held; a commit that carries an older one is refused. */
export interface Fence {
  lease: string;
  token: number;
}

/** How to page through a list, newest first. */
export interface ListOptions {
  namespace: string;
  where?: Record<string, string>;
  limit: number;
  /** The `next_cursor` of the page before; anything else is `request_invalid`. */
  cursor?: string;
}

/** A value now or later: a store in memory answers at once, and costs no turn of the event loop. */
export type Awaitable<T> = T | Promise<T>;

/** Thrown when a comparison of a commit failed; nothing of it was applied. */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
  readonly code = "session_conflict";
}

/** A store. */
export interface Store {
  /** What it is, such as `memory`. */
  readonly kind: string;
  /** Milliseconds that entries may wait for each other before they are appended; 0 = append at once. */
  readonly buffer_ms: number;
  /**
   * Applies all changes or none.
   * @throws {ConflictError} when a version, a log's end or a fence is not the expected one.
   */
  commit(changes: readonly Change[], fence?: Fence): Awaitable<void>;
  /** Entries of a log after `after`, at most `limit`; null when the log was deleted or has expired. */
  entries(log: string, after: number, limit: number): Awaitable<readonly LogEntry[] | null>;
  get(kind: string, key: string): Awaitable<VersionedRecord | null>;
  list(
    kind: string,
    options: ListOptions,
  ): Awaitable<{ records: VersionedRecord[]; next_cursor: string | null }>;
  /** Takes a lease for `ttl_ms` and returns its fencing token, or null while somebody else holds it. */
  acquire(lease: string, owner: string, ttl_ms: number): Awaitable<number | null>;
  /** Holds a lease for another `ttl_ms`; false when it was lost. */
  renew(lease: string, owner: string, ttl_ms: number): Awaitable<boolean>;
  release(lease: string, owner: string): Awaitable<void>;
  /** Whether the store can be read and written now; the reason when not. */
  ready(): Awaitable<{ ok: boolean; reason?: string }>;
  close(): Awaitable<void>;
}
