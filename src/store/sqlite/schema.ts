/** The tables of a SQLite store, and the steps that bring an older file to this version. */
import type { DatabaseSync } from "node:sqlite";

/** Marks a SQLite file as a store of Preamp: the bytes "PRMP". */
const APPLICATION_ID = 0x50524d50;

/**
 * Steps from one version of the tables to the next; `user_version` of a file is the number of steps it has
 * had. A released step is never changed.
 *
 * `record_index` repeats the sort key of its record, so that a filtered page is read in order without
 * sorting.
 */
const STEPS: readonly string[] = [
  `
  CREATE TABLE logs (
    name TEXT PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    expires_ms REAL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX logs_by_expiry ON logs (expires_ms) WHERE expires_ms IS NOT NULL;

  CREATE TABLE entries (
    log TEXT NOT NULL,
    seq INTEGER NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (log, seq)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE records (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    namespace TEXT NOT NULL,
    json TEXT NOT NULL,
    index_json TEXT,
    created_ms REAL NOT NULL,
    expires_ms REAL,
    version INTEGER NOT NULL,
    UNIQUE (kind, key)
  ) STRICT;
  CREATE INDEX records_by_age ON records (kind, namespace, created_ms DESC, id DESC);
  CREATE INDEX records_by_expiry ON records (expires_ms) WHERE expires_ms IS NOT NULL;

  CREATE TABLE record_index (
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    created_ms REAL NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (kind, namespace, field, value, created_ms DESC, id DESC)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX record_index_by_record ON record_index (id);

  CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    token INTEGER NOT NULL,
    until_ms REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE last_token (token INTEGER NOT NULL) STRICT;
  INSERT INTO last_token VALUES (0);
  `,
  // compressed texts, and how many entries a row has: see packing.ts; without a row id, each row of more than
  // a kilobyte takes a page of its own
  `
  CREATE TABLE rows (
    log TEXT NOT NULL,
    seq INTEGER NOT NULL,
    json TEXT NOT NULL,
    packed BLOB,
    count INTEGER NOT NULL DEFAULT 1,
    UNIQUE (log, seq)
  ) STRICT;
  INSERT INTO rows (log, seq, json) SELECT log, seq, json FROM entries ORDER BY log, seq;
  DROP TABLE entries;
  ALTER TABLE rows RENAME TO entries;
  ALTER TABLE records ADD COLUMN packed BLOB;
  `,
];

/** A table that the older program of the same version does not read: it may run beside this one. */
const ADDED = `CREATE TABLE IF NOT EXISTS servers (
    owner TEXT PRIMARY KEY,
    until_ms REAL NOT NULL,
    is_dead INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`;

/** Version of the tables that this program reads and writes. */
export const SCHEMA_VERSION = STEPS.length;

/**
 * Creates the tables of an empty file, or brings those of an older file to this version.
 *
 * @returns The version that the file had; 0 for an empty file.
 * @throws {Error} for a file of another program, or of a newer version of this one.
 */
export function migrate(database: DatabaseSync): number {
  const version = pragma(database, "user_version");
  const application = pragma(database, "application_id");
  const is_known = version === SCHEMA_VERSION && application === APPLICATION_ID;
  if (is_known && database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'servers'").get()) {
    return version;
  }
  database.exec("BEGIN IMMEDIATE");
  try {
    const from = pragma(database, "user_version"); // another process may have migrated the file meanwhile
    refuseForeign(database, from);
    for (const step of [...STEPS.slice(from), ADDED]) database.exec(step);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    database.exec("COMMIT");
    return from;
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

function refuseForeign(database: DatabaseSync, version: number): void {
  const application = pragma(database, "application_id");
  const { count } = database.prepare("SELECT count(*) AS count FROM sqlite_schema").get() as {
    count: number;
  };
  if (application !== APPLICATION_ID && count > 0) {
    throw new Error("the file is a SQLite database of another program; choose another path");
  }
  if (version > SCHEMA_VERSION) {
    throw new Error(
      `the file has version ${version} of the tables, and this program knows version ${SCHEMA_VERSION}: ` +
        "use the newer program, or another path",
    );
  }
}

function pragma(database: DatabaseSync, name: string): number {
  const row = database.prepare(`PRAGMA ${name}`).get() as Record<string, number>;
  return row[name] ?? 0;
}
