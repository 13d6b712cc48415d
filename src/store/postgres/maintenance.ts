/** Maintenance of a Postgres store. Works beside running servers. */
import type { Maintenance } from "../maintenance.ts";
import { createClient, type Queryable } from "./driver.ts";
import { migrate, SCHEMA_VERSION } from "./schema.ts";

const TABLES = ["records", "logs", "entries"] as const;
const CONNECT_MS = 10_000;

/** Connects for maintenance. @throws {Error} as the store does. */
export async function openPostgresMaintenance(url: string): Promise<Maintenance> {
  const client = createClient({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: "preamp",
  });
  await client.connect();
  const opened_version = await migrate(client);
  return {
    opened_version,
    async state() {
      const counts: number[] = [];
      for (const table of TABLES) {
        counts.push(await numberOf(client, `SELECT count(*) AS n FROM preamp.${table}`));
      }
      const [records, logs, entries] = counts;
      const sizes = TABLES.map((table) => `pg_total_relation_size('preamp.${table}')`).join(" + ");
      // an entry without its log, or a log that does not end where it says, would be damage
      const lost = await numberOf(
        client,
        `SELECT count(*) AS n FROM preamp.logs AS l WHERE last_seq <> (SELECT count(*) FROM preamp.entries WHERE log = l.name)`,
      );
      return {
        problems: lost === 0 ? [] : [`${lost} logs do not have as many entries as they should`],
        version: SCHEMA_VERSION,
        records: records!, // one for each table
        logs: logs!,
        entries: entries!,
        bytes: await numberOf(client, `SELECT ${sizes} AS n`),
      };
    },
    async vacuum(now_ms) {
      await client.query("DELETE FROM preamp.records WHERE expires_ms <= $1", [now_ms]);
      await client.query(
        `WITH expired AS (DELETE FROM preamp.logs WHERE expires_ms <= $1 RETURNING name)
         DELETE FROM preamp.entries WHERE log IN (SELECT name FROM expired)`,
        [now_ms],
      );
      for (const table of TABLES) await client.query(`VACUUM (ANALYZE) preamp.${table}`);
    },
    close: () => client.end(),
  };
}

/** Resolves to the number that a statement selects as `n`. */
async function numberOf(client: Queryable, statement: string): Promise<number> {
  const { rows } = await client.query(statement);
  return Number(rows[0]?.n);
}
