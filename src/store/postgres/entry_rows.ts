/** Rows of `preamp.entries`: see `packing.ts`. */
import { type EntryRow, rowsOf } from "../packing.ts";
import type { Queryable, Row, Value } from "./database.ts";

/** Inserts rows of a log. */
export async function insertRows(client: Queryable, log: string, rows: readonly EntryRow[]): Promise<void> {
  await client.query(NEW_ROWS(1), rowColumns(rows.map((row) => ({ log, ...row }))));
}

/** Returns rows of entries with numbers, which the driver returns as text. */
export function entryRowsOf(rows: readonly Row[]): EntryRow[] {
  return rows.map(({ seq, count, size, json, packed }) => ({
    ...{ seq: Number(seq), count: Number(count), size: Number(size) },
    ...{ json, packed },
  }));
}

/**
 * Returns the SQL that inserts rows, whose columns are six parameters from `first` on: see {@link columnsOf}.
 */
export function NEW_ROWS(first: number): string {
  const types = ["text", "bigint", "bigint", "bigint", "text", "bytea"];
  const parameters = types.map((type, index) => `$${first + index}::${type}[]`).join(", ");
  return `INSERT INTO preamp.entries (log, seq, count, size, json, packed)
    SELECT entry.* FROM unnest(${parameters}) AS entry(log, seq, count, size, json, packed)`;
}

/** Returns the rows that appends add, as columns. */
export function columnsOf(
  appends: readonly {
    readonly append: string;
    readonly after: number;
    readonly entries: readonly string[];
  }[],
): Value[] {
  return rowColumns(
    appends.flatMap(({ append: log, after, entries }) =>
      rowsOf(after, entries).map((row) => ({ log, ...row }))
    ),
  );
}

function rowColumns(rows: readonly (EntryRow & { readonly log: string })[]): Value[] {
  return [
    rows.map(({ log }) => log),
    rows.map(({ seq }) => seq),
    rows.map(({ count }) => count),
    rows.map(({ size }) => size),
    rows.map(({ json }) => json),
    rows.map(({ packed }) => packed),
  ];
}
