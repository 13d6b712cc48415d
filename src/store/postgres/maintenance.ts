/** Maintenance of a Postgres store, beside running servers. */
import { wrongLog } from "../rows.ts";
import type { Maintenance } from "../store.ts";
import { createClient, migrate, missingConstraints, SCHEMA_VERSION } from "./database.ts";
import { retried } from "./postgres_store.ts";
import { purgePart } from "./purge.ts";

/** The tables, whose sizes and dead rows maintenance looks at. */
const TABLES = ["records", "logs", "entries"] as const;

/** Selects logs that do not have the entries up to their last one, and entries without a log. */
export const WRONG_LOGS = `
  SELECT name, last_seq, count FROM (
    SELECT name, last_seq, (SELECT coalesce(sum(count), 0) FROM preamp.entries WHERE log = name) AS count FROM preamp.logs
  ) AS counted WHERE last_seq <> count
  UNION ALL
  SELECT log, 0, sum(count) FROM preamp.entries AS e
    WHERE NOT EXISTS (SELECT 1 FROM preamp.logs WHERE name = e.log) GROUP BY log
  LIMIT 20`;

/** Connects for maintenance, beside running servers. @throws {Error} as the store does. */
export async function openPostgresMaintenance(url: string): Promise<Maintenance> {
  const client = createClient(url);
  await client.connect();
  const numberOf = async (selection: string) =>
    Number((await client.query(`SELECT ${selection} AS n`)).rows[0]?.n);
  return {
    opened_version: await migrate(client),
    async state() {
      const sizes = TABLES.map((table) => `pg_total_relation_size('preamp.${table}')`);
      return {
        problems: [
          ...await missingConstraints(client),
          ...(await client.query(WRONG_LOGS)).rows.map(wrongLog),
        ],
        version: SCHEMA_VERSION,
        records: await numberOf("(SELECT count(*) FROM preamp.records)"),
        logs: await numberOf("(SELECT count(*) FROM preamp.logs)"),
        entries: await numberOf("(SELECT coalesce(sum(count), 0) FROM preamp.entries)"),
        bytes: await numberOf(sizes.join(" + ")),
      };
    },
    async vacuum(now_ms) {
      while (await retried(() => purgePart(client, now_ms)));
      for (const table of TABLES) await client.query(`VACUUM (ANALYZE) preamp.${table}`);
    },
    close: () => client.end(),
  };
}
