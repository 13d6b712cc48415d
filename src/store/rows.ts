/**
 * What the two SQL stores share. Records and changes as rows: JSON becomes text, so that a store writes it
 * without knowing its shape. Cursors of lists: the position of a page's last item, so that items added or
 * deleted meanwhile do not shift the next page.
 */
import { errorMessage, PreampError, readField } from "../sdk/errors.ts";
import {
  type Change,
  type Fence,
  MAX_PAGE_BYTES,
  type OpenRecords,
  type Page,
  type StoredRecord,
  type VersionedRecord,
} from "./store.ts";

/** A record as a row; JSON columns are texts. */
export interface RecordRow {
  readonly kind: string;
  readonly key: string;
  readonly namespace: string;
  readonly json: string;
  readonly index_json: string | null;
  /** Milliseconds since the epoch; null: the time of the first put. */
  readonly created_ms: number | null;
  /** Milliseconds since the epoch; null: never. */
  readonly expires_ms: number | null;
}

/** A record that was read. `id` orders records of the same millisecond; drivers return large ones as text. */
export interface StoredRow extends RecordRow {
  readonly id: number | string;
  readonly created_ms: number;
  readonly version: number;
}

/** A change whose entries and record are texts. */
export type EncodedChange =
  | {
    readonly append: string;
    readonly after: number;
    readonly entries: readonly string[];
    readonly final_bytes?: number | undefined;
  }
  | { readonly put: RecordRow; readonly expect?: number }
  | { readonly delete: { readonly kind: string; readonly key: string } }
  | { readonly deleteLog: string }
  | { readonly expireLog: string; readonly at_ms: number | null }
  | { readonly release: Fence }
  | CountChange;

/** A change that counts records. */
export type CountChange = { readonly count: OpenRecords; readonly below: number };

/** Returns a change with its JSON as text. */
export function encodeChange(change: Change): EncodedChange {
  if ("append" in change) {
    const { append, after, entries, final_bytes } = change;
    return { append, after, entries: entries.map((entry) => JSON.stringify(entry)), final_bytes };
  }
  if (!("put" in change)) return change;
  const put = encodeRecord(change.put);
  return change.expect === undefined ? { put } : { put, expect: change.expect };
}

function encodeRecord(record: StoredRecord): RecordRow {
  const { kind, key, namespace, value, index, created_ms = null, expires_ms = null } = record;
  const index_json = index === undefined ? null : JSON.stringify(index);
  return { kind, key, namespace, json: JSON.stringify(value), index_json, created_ms, expires_ms };
}

/** Returns the record of a row. */
export function decodeRecord(row: StoredRow): VersionedRecord {
  const { kind, key, namespace, json, index_json, created_ms, expires_ms, version } = row;
  return {
    kind,
    key,
    namespace,
    value: JSON.parse(json),
    ...(index_json === null ? {} : { index: JSON.parse(index_json) }),
    created_ms,
    ...(expires_ms === null ? {} : { expires_ms }),
    version,
  };
}

/** Returns how many of the first items, given by their sizes in bytes, are one page. */
export function pageLength(sizes: readonly number[], limit: number): number {
  let bytes = 0;
  const end = sizes.findIndex((size, index) => {
    if (index === limit || bytes >= MAX_PAGE_BYTES) return true;
    bytes += size;
    return false;
  });
  return end === -1 ? sizes.length : end;
}

const encoder = new TextEncoder();

/**
 * Returns a page of a list.
 *
 * @param rows The rows in the order of the list: at least one more than the page has when there is another.
 */
export function pageOf(rows: readonly StoredRow[], limit: number): Page {
  const page = rows.slice(0, pageLength(rows.map(({ json }) => encoder.encode(json).length), limit));
  const last = rows.length > page.length ? page.at(-1) : undefined;
  return {
    records: page.map(decodeRecord),
    next_cursor: last ? encodeCursor({ created_ms: last.created_ms, order: Number(last.id) }) : null,
  };
}

/** A position in a list ordered by age, newest first. */
export interface CursorPosition {
  /** Milliseconds since the epoch. */
  readonly created_ms: number;
  /** Sequence number of the record; distinguishes records created in the same millisecond. */
  readonly order: number;
}

/** Encodes a position as an opaque cursor. */
export function encodeCursor({ created_ms, order }: CursorPosition): string {
  return `${created_ms}-${order}`; // a time of Postgres has a fraction
}

/** Decodes a cursor. @throws {PreampError} `request_invalid` when it was not made by {@link encodeCursor}. */
export function decodeCursor(cursor: string): CursorPosition {
  const [first = "", second = "", ...rest] = cursor.split("-");
  const position = { created_ms: Number(first), order: Number(second) };
  const is_position = Number.isFinite(position.created_ms) && Number.isSafeInteger(position.order);
  if (rest.length > 0 || !is_position || encodeCursor(position) !== cursor) {
    throw new PreampError("request_invalid", "Cannot read the cursor: must be the next_cursor of a page");
  }
  return position;
}

/** Orders positions newest first: negative when `a` comes before `b`. */
export function comparePositions(a: CursorPosition, b: CursorPosition): number {
  return b.created_ms - a.created_ms || b.order - a.order;
}

/** Returns the problem of a log that has `count` entries and not those up to `last_seq`; all of its row. */
export function wrongLog({ name, last_seq, count }: Readonly<Record<string, unknown>>): string {
  return `log ${name} has ${count} of ${last_seq} entries`;
}

/** SQLite's words and Postgres' codes, for files that are not what they should be. */
const DAMAGE = /disk image is malformed|file is not a database/;
const DAMAGE_CODES: ReadonlySet<unknown> = new Set(["XX001", "XX002"]);

/** Returns whether an error of a store means that the store is damaged. */
export function isDamage(error: unknown): boolean {
  return DAMAGE.test(errorMessage(error)) || DAMAGE_CODES.has(readField(error, "code"));
}
