/** Maintenance of a SQLite store. Works beside running servers. */
import type { Maintenance } from "../maintenance.ts";
import { SqliteDatabase } from "./database.ts";
import { createPrivateFile } from "./private_file.ts";
import { SCHEMA_VERSION } from "./schema.ts";

/** Opens a file for maintenance. @throws {Error} as the store does. */
export async function openSqliteMaintenance(path: string): Promise<Maintenance> {
  await createPrivateFile(path);
  const database = new SqliteDatabase(path);
  return {
    opened_version: database.opened_version,
    state() {
      const { bytes } = database;
      return Promise.resolve({
        problems: database.check(),
        version: SCHEMA_VERSION,
        ...database.counts(),
        bytes,
      });
    },
    vacuum(now_ms) {
      while (database.purge(now_ms));
      database.vacuum();
      return Promise.resolve();
    },
    close: () => Promise.resolve(database.close()),
  };
}
