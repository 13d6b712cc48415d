/** Deletes what has expired, in parts: in the store every minute, and in a vacuum. */
import { NOW } from "./changes.ts";
import type { Queryable } from "./database.ts";

const MAX_RECORDS = 1_000;
/** Few, because each has many entries. */
const MAX_LOGS = 10;

// each compares twice: what another process prolongs after the selection is kept

const RECORDS = `DELETE FROM preamp.records WHERE id IN (
    SELECT id FROM preamp.records WHERE expires_ms <= ${NOW} LIMIT $2
  ) AND expires_ms <= ${NOW} RETURNING id`;

const LOGS = `WITH expired AS (
    DELETE FROM preamp.logs WHERE name IN (
      SELECT name FROM preamp.logs WHERE expires_ms <= ${NOW} LIMIT $2
    ) AND expires_ms <= ${NOW} RETURNING name
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
