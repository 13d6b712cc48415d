/** Reads the rows of logs, and packs those of logs that have ended. */
import { type EntryRow, packFirst, PART_CHARS, PART_ENTRIES } from "../packing.ts";
import { NOW } from "./changes.ts";
import type { Row, Value } from "./database.ts";

/** Runs a statement whose first parameter is the time, see {@link NOW}. */
type Query = (text: string, values: Value[]) => Promise<Row[]>;

const SELECT = `SELECT e.* FROM preamp.logs AS l LEFT JOIN LATERAL (
    SELECT *, ${
  bytesBefore("coalesce(8 * octet_length(packed), octet_length(json))", "seq", 1)
} AS before FROM (
      SELECT seq, json, packed FROM preamp.entries WHERE log = $2 AND seq > $3 ORDER BY seq LIMIT $4
    ) AS part
  ) AS e ON e.before < $5::float8
  WHERE l.name = $2 AND (l.expires_ms IS NULL OR l.expires_ms > ${NOW}) ORDER BY e.seq`;

/**
 * Resolves to the rows with the entries of a log after one, at most `limit` of them and with about so many
 * bytes; null if there is no such log.
 */
export async function readRows(
  query: Query,
  ...values: [log: string, after: number, limit: number, max_bytes: number]
): Promise<EntryRow[] | null> {
  const rows = await query(SELECT, values);
  if (rows.length === 0) return null;
  // one row without an entry: the log is there, but has none after this one
  return rows.filter(({ seq }) => seq !== null)
    .map(({ seq, json, packed }) => ({ seq: Number(seq), json, packed }));
}

/** Changes rows that are there, and adds none: the log may be deleted meanwhile, or packed twice. */
const REPLACE = `WITH gone AS (
    DELETE FROM preamp.entries WHERE log = $2 AND seq > $3 AND seq < $4 AND $1::float8 IS NOT DISTINCT FROM $1
  ) UPDATE preamp.entries SET json = '', packed = $5, count = $6 WHERE log = $2 AND seq = $4`;

/** Milliseconds after which a log is packed. Until then servers of the version before can read its end. */
const PACKED_AFTER_MS = 2_000;

/** Packs logs one after the other. After a failure a log stays as it is. */
export class LogPacker {
  readonly #query: Query;
  readonly #waiting = new Map<string, ReturnType<typeof setTimeout>>();
  #packing = Promise.resolve();

  constructor(query: Query) {
    this.#query = query;
  }

  /** Packs a log that has ended, in some seconds. */
  add(log: string): void {
    const timer = setTimeout(() => {
      this.#packing = this.#packing.then(() => this.#waiting.delete(log) ? this.#pack(log) : undefined)
        .catch(() => {});
    }, PACKED_AFTER_MS);
    Deno.unrefTimer(timer);
    this.#waiting.set(log, timer);
  }

  /** Packs at once what waits, until that fails. */
  async close(): Promise<void> {
    const logs = [...this.#waiting.keys()];
    for (const timer of this.#waiting.values()) clearTimeout(timer);
    this.#waiting.clear(); // for those whose turn comes
    await this.#packing;
    try {
      for (const log of logs) await this.#pack(log);
    } catch {
      // the database is away: the logs stay as they are
    }
  }

  async #pack(log: string): Promise<void> {
    for (let after: number | null = 0; after !== null;) after = await this.#packPart(log, after);
  }

  /** Resolves to the number of the last entry of the part; null at the end of the log. */
  async #packPart(log: string, after: number): Promise<number | null> {
    const part = packFirst(await readRows(this.#query, log, after, PART_ENTRIES, PART_CHARS) ?? []);
    if (part?.packed) await this.#query(REPLACE, [log, after, part.last, part.packed, part.count]);
    return part && part.last;
  }
}

/**
 * Returns the SQL of the bytes of the rows before one, in an order, the last `rows - 1` of them left out.
 * Postgres knows the lengths of texts without reading them.
 */
export function bytesBefore(bytes: string, order: string, rows: number): string {
  return `COALESCE(sum(${bytes}) OVER (ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND ${rows} PRECEDING), 0)`;
}
