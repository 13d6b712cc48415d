/**
 * Rows of a log in the two SQL stores. A log says most things several times: each delta has the same
 * envelope, and an answer stands in its deltas, its block, its message and its end. Entries that are stored
 * together are therefore one compressed row, and the rows of a log are joined at its end.
 */
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { Buffer } from "node:buffer";
import type { EncodedChange } from "./rows.ts";

/** Entries of a log that are stored in one row. */
export interface EntryRow {
  /** Number of the last entry. */
  readonly seq: number;
  /** Number of entries. */
  readonly count: number;
  /** Characters of their JSON; 0 if `packed` is null. */
  readonly size: number;
  /** JSON of the entry; empty if `packed` is not null. */
  readonly json: string;
  /** JSON of the entries, each in a line, compressed with DEFLATE. */
  readonly packed: Uint8Array | null;
}

/** Characters of JSON from which on texts are compressed: those of a short run are not. */
const PACKED_FROM = 8_192;
/** Characters with which a packed row ends, after the entry with which it reaches them. */
const ROW_CHARS = 262_144;
/**
 * Two thirds of the time of the default level, for 3 % more. Not Brotli or Zstandard, which find repetitions
 * of long texts too: what their encoders allocate outside of the heap lasts until a full garbage collection.
 * So does each call's first chunk of output.
 */
const OPTIONS = { level: 3, chunkSize: 4_096 };

/** Returns a text compressed; null for a short one. */
export function pack(text: string): Uint8Array | null {
  return text.length < PACKED_FROM ? null : deflateRawSync(text, OPTIONS);
}

/** Returns the text of {@link pack}. */
export function unpack(packed: Uint8Array): string {
  const bytes = inflateRawSync(packed);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}

/** Returns the rows of entries after one, given by their JSON. */
export function rowsOf(after: number, texts: readonly string[]): EntryRow[] {
  const rows: EntryRow[] = [];
  let from = 0;
  let size = 0;
  for (let end = 1; end <= texts.length; end++) {
    size += texts[end - 1]!.length;
    if (end < texts.length && size < ROW_CHARS) continue;
    const packed = pack(texts.slice(from, end).join("\n"));
    if (packed) rows.push({ seq: after + end, count: end - from, size, json: "", packed });
    else {
      for (; from < end; from++) {
        const json = texts[from]!;
        rows.push({ seq: after + from + 1, count: 1, size: 0, json, packed });
      }
    }
    from = end;
    size = 0;
  }
  return rows;
}

/**
 * Returns the JSON of at most `limit` entries after one, up to the one with which they reach `max_bytes`.
 *
 * @param rows The rows that have them, in their order.
 */
export function pageOfTexts(
  rows: Iterable<EntryRow>,
  after: number,
  limit: number,
  max_bytes = Infinity,
): string[] {
  const texts: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    for (const text of textsOf(row, after)) {
      texts.push(text);
      if ((bytes += text.length) >= max_bytes || texts.length === limit) return texts;
    }
  }
  return texts;
}

/** Returns the JSON of those entries of a row that follow one. */
function textsOf({ seq, count, json, packed }: EntryRow, after: number): string[] {
  if (packed === null) return [json];
  const texts = unpack(packed).split("\n");
  const before = after - (seq - count);
  return before > 0 ? texts.slice(before) : texts;
}

/** Rows that replace those of the same entries. */
export interface Merge {
  /** Number of the entry before the first one. */
  readonly after: number;
  /** Number of the last entry. */
  readonly last: number;
  readonly rows: readonly EntryRow[];
}

/** Entries from which on the rows of a log that has ended are joined: for fewer it takes too long. */
const MERGED_FROM = 64;
/** Most rows that are read at once to be joined. */
export const MERGED_ROWS = 1_000;

/** Returns whether the rows of the log of an append are to be joined: it is the last one. */
export function isLast(change: EncodedChange): change is Extract<EncodedChange, { append: string }> {
  return "append" in change && change.closes && change.after + change.entries.length >= MERGED_FROM;
}

/** Yields what joins neighbours, given the rows of a log in their order. */
export function* mergesOf(rows: readonly EntryRow[]): Generator<Merge> {
  let from = 0;
  let size = 0;
  for (let end = 1; end <= rows.length; end++) {
    const { seq: last, size: packed, json } = rows[end - 1]!;
    size += packed + json.length;
    if (end < rows.length && size < ROW_CHARS) continue;
    const replaced = rows.slice(from, end);
    from = end;
    size = 0;
    if (replaced.length < 2) continue;
    const texts = replaced.flatMap((row) => textsOf(row, 0));
    const after = last - texts.length;
    const merged = rowsOf(after, texts);
    if (merged.length < replaced.length) yield { after, last, rows: merged };
  }
}
