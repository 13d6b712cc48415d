/** The changes of a commit as statements of Postgres, in the order in which they lock rows. */
import type { EncodedChange } from "../rows.ts";
import { type Fence, leaseLost, notAtEnd, notAtVersion } from "../store.ts";
import type { Queryable } from "./database.ts";

/** The time in milliseconds; `$1` is null or a time that replaces it. */
export const NOW = "COALESCE($1::float8, extract(epoch FROM clock_timestamp()) * 1000)";

/** A change that appends to a log. */
export type Appended = Extract<EncodedChange, { append: string }>;

const COLUMNS = "kind, key, namespace, json, index_json, fields, created_ms, expires_ms, version";
const EXPIRED = `records.expires_ms <= ${NOW}`;
const INSERT = `INSERT INTO preamp.records AS records (${COLUMNS})
  VALUES ($2, $3, $4, $5, $6, $7::text[], COALESCE($8::float8, ${NOW}), $9::float8, 1)
  ON CONFLICT (kind, key) DO UPDATE SET namespace = excluded.namespace, json = excluded.json,
    index_json = excluded.index_json, fields = excluded.fields, expires_ms = excluded.expires_ms,
    created_ms = CASE WHEN $8::float8 IS NOT NULL OR ${EXPIRED} THEN excluded.created_ms ELSE records.created_ms END,
    version = CASE WHEN ${EXPIRED} THEN 1 ELSE records.version + 1 END`;

/** Inserts a record, or puts it over any version. */
const INSERT_ANY = `${INSERT} RETURNING id`;
/** Inserts a record that does not exist; an expired one counts as deleted. */
const INSERT_NEW = `${INSERT} WHERE ${EXPIRED} RETURNING id`;

/** Puts a record over one version. */
const UPDATE =
  `UPDATE preamp.records AS records SET namespace = $4, json = $5, index_json = $6, fields = $7::text[],
    created_ms = COALESCE($8::float8, created_ms), expires_ms = $9::float8, version = version + 1
  WHERE kind = $2 AND key = $3 AND version = $10 AND (expires_ms IS NULL OR expires_ms > ${NOW}) RETURNING id`;

/** Returns the texts of `records.fields` for a record's index. */
function fieldsOf(index_json: string | null): string[] {
  return index_json === null
    ? []
    : Object.entries(JSON.parse(index_json)).map((field) => JSON.stringify(field));
}

/**
 * Orders changes by the row that they lock, logs first: transactions that lock rows in the same order never
 * wait for each other in a circle. Changes of the same row keep their order.
 */
export function byTarget(a: EncodedChange, b: EncodedChange): number {
  const [first, second] = [targetOf(a), targetOf(b)];
  return first < second ? -1 : first > second ? 1 : 0;
}

function targetOf(change: EncodedChange): string {
  if ("append" in change) return `0 ${change.append}`;
  if ("deleteLog" in change) return `0 ${change.deleteLog}`;
  if ("expireLog" in change) return `0 ${change.expireLog}`;
  const { kind, key } = "put" in change ? change.put : change.delete;
  return `1 ${kind} ${key}`;
}

/**
 * Applies a change. `now` replaces the time of the database. @throws {ConflictError} when its comparison
 * fails.
 */
export async function applyChange(
  client: Queryable,
  change: EncodedChange,
  now: number | null,
): Promise<void> {
  if ("append" in change) await append(client, change);
  else if ("put" in change) await put(client, change, now);
  else if ("delete" in change) {
    const { kind, key } = change.delete;
    await client.query("DELETE FROM preamp.records WHERE kind = $1 AND key = $2", [kind, key]);
  } else if ("deleteLog" in change) {
    await client.query("DELETE FROM preamp.entries WHERE log = $1", [change.deleteLog]);
    await client.query("DELETE FROM preamp.logs WHERE name = $1", [change.deleteLog]);
  } else {
    const values = [change.at_ms, change.expireLog];
    await client.query("UPDATE preamp.logs SET expires_ms = $1 WHERE name = $2", values);
  }
}

async function put(
  client: Queryable,
  change: Extract<EncodedChange, { put: unknown }>,
  now: number | null,
): Promise<void> {
  const { put: { kind, key, namespace, json, index_json, created_ms, expires_ms }, expect } = change;
  const fields = fieldsOf(index_json);
  const values = [now, kind, key, namespace, json, index_json, fields, created_ms, expires_ms];
  const { rows } = expect
    ? await client.query(UPDATE, [...values, expect])
    : await client.query(expect === 0 ? INSERT_NEW : INSERT_ANY, values);
  if (rows.length === 0) throw notAtVersion(change);
}

/** Requires that a lease is held with the token of a fence. @throws {ConflictError} */
export async function requireFence(client: Queryable, fence: Fence): Promise<void> {
  const { rows } = await client.query(
    "SELECT 1 FROM preamp.leases WHERE name = $1 AND token = $2 FOR SHARE",
    [fence.lease, fence.token],
  );
  if (rows.length === 0) throw leaseLost(fence);
}

async function append(client: Queryable, change: Appended): Promise<void> {
  const { append: log, after, entries } = change;
  const { rows } = await client.query(
    after === 0
      ? `INSERT INTO preamp.logs AS logs (name, last_seq) VALUES ($1, $2::bigint + $3::bigint)
         ON CONFLICT (name) DO UPDATE SET last_seq = excluded.last_seq WHERE logs.last_seq = $2 RETURNING name`
      : "UPDATE preamp.logs SET last_seq = $2::bigint + $3::bigint WHERE name = $1 AND last_seq = $2 RETURNING name",
    [log, after, entries.length],
  );
  if (rows.length === 0) throw notAtEnd(change);
  await client.query(
    `INSERT INTO preamp.entries (log, seq, json)
     SELECT $1, $2::bigint + row.position, row.json FROM unnest($3::text[]) WITH ORDINALITY AS row(json, position)`,
    [log, after, entries],
  );
}
