/** Deletes what has expired, in parts: in the store's worker every minute, and in a vacuum. */
import type { SqliteDatabase } from "./database.ts";

/** Maximum rows that one {@link purgePart} deletes, so that it does not delay commits. */
const PURGE_ROWS = 1_000;

/** Deletes expired logs and records, at most a thousand rows; returns whether more may be left. */
export function purgePart(database: SqliteDatabase, now_ms: number): boolean {
  const more = database.transaction(() => {
    const records = database.query(
      "SELECT kind, key FROM records WHERE expires_ms <= ? LIMIT ?",
      now_ms,
      PURGE_ROWS,
    );
    for (const { kind, key } of records) database.deleteRecord(kind as string, key as string);
    let rows = records.length;
    const logs = database.query(
      "SELECT name FROM logs WHERE expires_ms <= ? LIMIT ?",
      now_ms,
      PURGE_ROWS - rows,
    );
    for (const { name } of logs as { name: string }[]) {
      if (rows >= PURGE_ROWS) break;
      const last = database.query(
        "SELECT seq, count FROM entries WHERE log = ? ORDER BY seq DESC LIMIT ?",
        ...[name, PURGE_ROWS - rows],
      ) as { seq: number; count: number }[];
      rows += last.length;
      if (rows < PURGE_ROWS) {
        database.deleteLog(name);
        continue;
      }
      // from its end, so that what is left is a log
      const { seq, count } = last.at(-1)!;
      database.query("DELETE FROM entries WHERE log = ? AND seq >= ?", name, seq);
      database.query("UPDATE logs SET last_seq = ? WHERE name = ?", seq - count, name);
    }
    return rows >= PURGE_ROWS;
  });
  if (!more) database.scrub();
  return more;
}
