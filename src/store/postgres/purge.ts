/** Deletes what has expired, in parts: in the store every minute, and in a vacuum. */
import { NOW } from "./changes.ts";
import type { Queryable } from "./database.ts";

const MAX_RECORDS = 1_000;
const MAX_LOGS = 1_000;
/** Entries with which a part ends, after the log with which it reaches them. */
const MAX_ENTRIES = 5_000;

// each compares twice: what another process prolongs after the selection is kept

const RECORDS = `DELETE FROM preamp.records WHERE id IN (
    SELECT id FROM preamp.records WHERE expires_ms <= ${NOW} LIMIT $2
  ) AND expires_ms <= ${NOW} RETURNING id`;

const LOGS = `WITH expired AS (
    DELETE FROM preamp.logs WHERE name IN (
      SELECT name FROM (
        SELECT name, sum(last_seq) OVER (ORDER BY expires_ms, name) - last_seq AS before FROM (
          SELECT name, last_seq, expires_ms FROM preamp.logs WHERE expires_ms <= ${NOW}
          ORDER BY expires_ms, name LIMIT $2
        ) AS first
      ) AS summed WHERE before < ${MAX_ENTRIES}
    ) AND expires_ms <= ${NOW} RETURNING name
  ), deleted AS (DELETE FROM preamp.entries WHERE log IN (SELECT name FROM expired))
  SELECT name FROM expired`;

/**
 * Deletes at most a thousand records and logs that have expired, few if they have many entries; resolves to
 * whether more may be left. A large transaction would delay others.
 *
 * @param now Milliseconds since the epoch; null: the time of the database.
 */
export async function purgePart(database: Queryable, now: number | null): Promise<boolean> {
  const records = await database.query(RECORDS, [now, MAX_RECORDS]);
  const logs = await database.query(LOGS, [now, MAX_LOGS]);
  return records.rows.length === MAX_RECORDS || logs.rows.length > 0;
}
