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
    const logs = database.query("SELECT name FROM logs WHERE expires_ms <= ? LIMIT ?", now_ms, PURGE_ROWS);
    for (const { name } of logs) {
      if (rows >= PURGE_ROWS) break;
      const entries = database.query(
        `DELETE FROM entries WHERE (log, seq) IN (SELECT log, seq FROM entries WHERE log = ? LIMIT ?) RETURNING seq`,
        name as string,
        PURGE_ROWS,
      );
      rows += entries.length;
      if (entries.length < PURGE_ROWS) database.deleteLog(name as string);
    }
    return rows >= PURGE_ROWS;
  });
  if (!more) database.scrub();
  return more;
}
