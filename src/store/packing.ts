/**
 * Large texts in the two SQL stores. A log says most things several times: each delta has the same envelope,
 * and an answer stands in its deltas, its block, its message and its end. When a log has ended, its rows are
 * therefore replaced by compressed ones, which have many entries each.
 */
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import { Buffer } from "node:buffer";
import type { EncodedChange } from "./rows.ts";

/** A row of a log. */
export interface EntryRow {
  /** Number of its last entry. */
  readonly seq: number;
  /** JSON of its entry; empty if `packed` is not null. */
  readonly json: string;
  /**
   * JSON of its entries, each in a line, the last one first: an answer as a whole is before its deltas, which
   * are then found in it. Compressed with Brotli.
   */
  readonly packed: Uint8Array | null;
}

/** Characters from which on texts are compressed: short ones would gain little. */
const PACKED_FROM = 8_192;
/** Entries and characters of JSON that make a packed row; with the last entry it may have more characters. */
export const PART_ENTRIES = 1_000;
export const PART_CHARS = 262_144;

/** Brotli, because DEFLATE does not see what is repeated after 32 KiB; with a window that has a whole row. */
const OPTIONS = { params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 18 } };

/** Returns a text compressed; null for a short one. */
export function pack(text: string): Uint8Array | null {
  return text.length < PACKED_FROM ? null : brotliCompressSync(text, OPTIONS);
}

/** Returns the text of {@link pack}. */
export function unpack(packed: Uint8Array): string {
  const bytes = brotliDecompressSync(packed);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}

/** Returns the logs that end with these changes, and are worth packing. */
export function endedLogs(changes: readonly EncodedChange[]): string[] {
  return changes.flatMap((change) =>
    "append" in change && (change.final_bytes ?? 0) >= PACKED_FROM ? change.append : []
  );
}

/** The first rows of a log, as many as make a packed row. */
export interface Part {
  /** Number of the last entry. */
  readonly last: number;
  /** Number of entries. */
  readonly count: number;
  /** What the last row has when it replaces all of them; null if they are to stay. */
  readonly packed: Uint8Array | null;
}

/** Packs the first of these rows; null without a row. A packed row counts with its texts. */
export function packFirst(rows: Iterable<EntryRow>): Part | null {
  const texts: string[] = [];
  let last: number | null = null;
  let chars = 0;
  let is_packed = true;
  for (const row of rows) {
    const own = textsOf(row);
    texts.push(...own);
    last = row.seq;
    is_packed &&= row.packed !== null;
    chars += own.reduce((sum, text) => sum + text.length, 0);
    if (chars >= PART_CHARS || texts.length >= PART_ENTRIES) break;
  }
  if (last === null) return null;
  return { last, count: texts.length, packed: is_packed ? null : pack(texts.reverse().join("\n")) };
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
  const page: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    const texts = textsOf(row);
    const first = row.seq - texts.length + 1;
    for (const text of texts.slice(Math.max(0, after + 1 - first))) {
      page.push(text);
      if ((bytes += text.length) >= max_bytes || page.length === limit) return page;
    }
  }
  return page;
}

function textsOf({ json, packed }: EntryRow): string[] {
  return packed ? unpack(packed).split("\n").reverse() : [json];
}
