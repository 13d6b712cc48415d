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
      "SELECT name, last_seq FROM logs WHERE expires_ms <= ? LIMIT ?",
      now_ms,
      PURGE_ROWS - rows,
    );
    for (const { name, last_seq } of logs as { name: string; last_seq: number }[]) {
      if (rows >= PURGE_ROWS) break;
      if (last_seq <= PURGE_ROWS) {
        database.deleteLog(name);
        rows += last_seq;
        continue;
      }
      // from its end, so that what is left is a log
      const left = last_seq - PURGE_ROWS;
      database.query("DELETE FROM entries WHERE log = ? AND seq > ?", name, left);
      database.query("UPDATE logs SET last_seq = ? WHERE name = ?", left, name);
      rows = PURGE_ROWS;
    }
    return rows >= PURGE_ROWS;
  });
  if (!more) database.scrub();
  return more;
}
