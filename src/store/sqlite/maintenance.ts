/** Maintenance of a SQLite store, beside running servers. */
import { errorMessage } from "../../sdk/errors.ts";
import { wrongLog } from "../rows.ts";
import type { Maintenance } from "../store.ts";
import { SqliteDatabase } from "./database.ts";
import { purgePart } from "./purge.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { createPrivateFile } from "./sqlite_store.ts";

/** Pages of 4 KB that one transaction returns to the disk: servers wait for its end, up to 5 s. */
const VACUUM_PAGES = 1_000;
/** Milliseconds between two transactions of a vacuum, in which those of servers begin. */
const VACUUM_PAUSE_MS = 20;

/**
 * Logs that do not have the entries up to their last one, and entries without a log. A purge deletes the
 * entries of an expired log in parts.
 */
const WRONG_LOGS = `
  SELECT name, last_seq, (SELECT total(count) FROM entries WHERE log = name) AS count FROM logs
    WHERE last_seq <> count AND coalesce(expires_ms > ?, true)
  UNION ALL
  SELECT log, 0, sum(count) FROM entries WHERE log NOT IN (SELECT name FROM logs) GROUP BY log
  LIMIT 20`;

/** Opens a file for maintenance, beside running servers. @throws {Error} as the store does. */
export async function openSqliteMaintenance(path: string): Promise<Maintenance> {
  await createPrivateFile(path);
  const database = new SqliteDatabase(path);
  const numberOf = (sql: string) => Number(Object.values(database.query(sql)[0] ?? {})[0]);
  return {
    opened_version: database.opened_version,
    state() {
      const problems = database.query("PRAGMA integrity_check(20)")
        .flatMap((row) => String(row.integrity_check).split("\n"))
        .filter((line) => line !== "ok" && !line.startsWith("***")); // a headline
      const countOf = (table: string, count = "count(*)") => {
        try {
          return numberOf(`SELECT ${count} FROM ${table}`);
        } catch (error) {
          problems.push(`${table} cannot be counted: ${errorMessage(error)}`);
          return 0;
        }
      };
      const [records, logs] = [countOf("records"), countOf("logs")];
      const entries = countOf("entries", "total(count)");
      if (problems.length === 0) { // damaged tables cannot be compared
        for (const log of database.query(WRONG_LOGS, Date.now())) problems.push(wrongLog(log));
      }
      return Promise.resolve({
        problems,
        version: SCHEMA_VERSION,
        records,
        logs,
        entries,
        bytes: numberOf("PRAGMA page_count") * numberOf("PRAGMA page_size"),
      });
    },
    async vacuum(now_ms) {
      const pause = () => new Promise((resolve) => setTimeout(resolve, VACUUM_PAUSE_MS));
      while (purgePart(database, now_ms)) await pause();
      // not VACUUM: it would attach a second file, which Deno does not allow
      for (let free = numberOf("PRAGMA freelist_count"); free > 0; free -= VACUUM_PAGES) {
        database.query(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`);
        await pause();
      }
      database.query("PRAGMA wal_checkpoint(TRUNCATE)");
    },
    close: () => Promise.resolve(database.close()),
  };
}
