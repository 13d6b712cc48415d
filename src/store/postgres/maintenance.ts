/** Maintenance of a Postgres store, and the purge that each store does. Works beside running servers. */
import type { Maintenance } from "../store.ts";
import { NOW } from "./changes.ts";
import { createClient, migrate, type Queryable, SCHEMA_VERSION } from "./database.ts";

const MAX_RECORDS = 1_000;
/** Few, because each has many entries. */
const MAX_LOGS = 10;

const RECORDS = `DELETE FROM preamp.records WHERE id IN (
    SELECT id FROM preamp.records WHERE expires_ms <= ${NOW} LIMIT $2
  ) RETURNING id`;

const LOGS = `WITH expired AS (
    DELETE FROM preamp.logs WHERE name IN (
      SELECT name FROM preamp.logs WHERE expires_ms <= ${NOW} LIMIT $2
    ) RETURNING name
  ), deleted AS (DELETE FROM preamp.entries WHERE log IN (SELECT name FROM expired))
  SELECT name FROM expired`;

/**
 * Deletes at most a thousand records and ten logs that have expired; resolves to whether more may be left. A
 * large transaction would delay others.
 *
 * @param now Milliseconds since the epoch; null: the time of the database.
 */
export async function purgePart(database: Queryable, now: number | null): Promise<boolean> {
  const records = await database.query(RECORDS, [now, MAX_RECORDS]);
  const logs = await database.query(LOGS, [now, MAX_LOGS]);
  return records.rows.length === MAX_RECORDS || logs.rows.length === MAX_LOGS;
}

/** The tables, whose sizes and dead rows maintenance looks at. */
const TABLES = ["records", "logs", "entries"] as const;

/** Connects for maintenance, beside running servers. @throws {Error} as the store does. */
export async function openPostgresMaintenance(url: string): Promise<Maintenance> {
  const client = createClient(url);
  await client.connect();
  const numberOf = async (selection: string) =>
    Number((await client.query(`SELECT ${selection} AS n`)).rows[0]?.n);
  return {
    opened_version: await migrate(client),
    async state() {
      // an entry without its log, or a log that does not end where it says, would be damage
      const lost = await numberOf(
        "(SELECT count(*) FROM preamp.logs AS l WHERE last_seq <> (SELECT count(*) FROM preamp.entries WHERE log = l.name))",
      );
      const sizes = TABLES.map((table) => `pg_total_relation_size('preamp.${table}')`);
      return {
        problems: lost === 0 ? [] : [`${lost} logs do not have as many entries as they should`],
        version: SCHEMA_VERSION,
        records: await numberOf("(SELECT count(*) FROM preamp.records)"),
        logs: await numberOf("(SELECT count(*) FROM preamp.logs)"),
        entries: await numberOf("(SELECT count(*) FROM preamp.entries)"),
        bytes: await numberOf(sizes.join(" + ")),
      };
    },
    async vacuum(now_ms) {
      while (await purgePart(client, now_ms));
      for (const table of TABLES) await client.query(`VACUUM (ANALYZE) preamp.${table}`);
    },
    close: () => client.end(),
  };
}
