/** Maintenance of a SQLite store. Works beside running servers. */
import type { Maintenance } from "../store.ts";
import { SqliteDatabase } from "./database.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { createPrivateFile } from "./sqlite_store.ts";

/** Opens a file for maintenance. @throws {Error} as the store does. */
export async function openSqliteMaintenance(path: string): Promise<Maintenance> {
  await createPrivateFile(path);
  const database = new SqliteDatabase(path);
  const numberOf = (sql: string) => Number(Object.values(database.query(sql)[0] ?? {})[0]);
  return {
    opened_version: database.opened_version,
    state() {
      const problems = database.query("PRAGMA integrity_check(20)").map((row) => String(row.integrity_check));
      return Promise.resolve({
        problems: problems.filter((problem) => problem !== "ok"),
        version: SCHEMA_VERSION,
        records: numberOf("SELECT count(*) FROM records"),
        logs: numberOf("SELECT count(*) FROM logs"),
        entries: numberOf("SELECT count(*) FROM entries"),
        bytes: numberOf("PRAGMA page_count") * numberOf("PRAGMA page_size"),
      });
    },
    vacuum(now_ms) {
      while (database.purge(now_ms));
      // not VACUUM: it would attach a second file, which Deno does not allow
      database.query("PRAGMA incremental_vacuum");
      database.query("PRAGMA wal_checkpoint(TRUNCATE)");
      return Promise.resolve();
    },
    close: () => Promise.resolve(database.close()),
  };
}
