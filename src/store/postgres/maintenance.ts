/** Maintenance of a Postgres store, beside running servers. */
import type { Maintenance } from "../store.ts";
import { createClient, migrate, SCHEMA_VERSION } from "./database.ts";
import { retried } from "./postgres_store.ts";
import { purgePart } from "./purge.ts";

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
      while (await retried(() => purgePart(client, now_ms)));
      for (const table of TABLES) await client.query(`VACUUM (ANALYZE) preamp.${table}`);
    },
    close: () => client.end(),
  };
}
