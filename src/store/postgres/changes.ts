/** The changes of a commit as statements of Postgres, in the order in which they lock rows. */
import type { EncodedChange, RecordRow } from "../rows.ts";
import type { Fence } from "../store.ts";
import type { Queryable } from "./driver.ts";

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

/** Puts a record over any version or inserts it; an expired record counts as deleted. */
const UPSERT = { any: `${INSERT} RETURNING id`, 0: `${INSERT} WHERE ${EXPIRED} RETURNING id` };

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
 * Orders changes by the row that they lock, logs first: transactions that lock rows in the same order never wait for each
 * other in a circle. Changes of the same row keep their order.
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

/** Applies a change; resolves to the reason when its comparison fails, else to null. `now` replaces the time of the database. */
export async function applyChange(
  client: Queryable,
  change: EncodedChange,
  now: number | null,
): Promise<string | null> {
  if ("append" in change) return append(client, change);
  if ("put" in change) return put(client, change.put, change.expect, now);
  if ("delete" in change) {
    const { kind, key } = change.delete;
    await client.query("DELETE FROM preamp.records WHERE kind = $1 AND key = $2", [kind, key]);
    return null;
  }
  if ("deleteLog" in change) {
    await client.query("DELETE FROM preamp.entries WHERE log = $1", [change.deleteLog]);
    await client.query("DELETE FROM preamp.logs WHERE name = $1", [change.deleteLog]);
    return null;
  }
  await client.query("UPDATE preamp.logs SET expires_ms = $1 WHERE name = $2", [
    change.at_ms,
    change.expireLog,
  ]);
  return null;
}

async function put(
  client: Queryable,
  row: RecordRow,
  expect: number | undefined,
  now: number | null,
): Promise<string | null> {
  const { kind, key, namespace, json, index_json, created_ms, expires_ms } = row;
  const values = [
    now,
    kind,
    key,
    namespace,
    json,
    index_json,
    fieldsOf(index_json),
    created_ms,
    expires_ms,
  ];
  const { rows } = await client.query(
    expect === undefined || expect === 0 ? UPSERT[expect ?? "any"] : UPDATE,
    [
      ...values,
      ...(expect ? [expect] : []),
    ],
  );
  if (rows.length > 0) return null;
  return `Cannot put ${kind} "${key}": is not at version ${expect}`;
}

/** Resolves to the reason when a lease is not held with the token of a fence, else to null. */
export async function requireFence(client: Queryable, { lease, token }: Fence): Promise<string | null> {
  const { rows } = await client.query(
    "SELECT 1 FROM preamp.leases WHERE name = $1 AND token = $2 FOR SHARE",
    [
      lease,
      token,
    ],
  );
  return rows.length > 0 ? null : `Cannot commit: lease "${lease}" is not held with token ${token}`;
}

async function append(client: Queryable, change: Appended): Promise<string | null> {
  const { append: log, after, entries } = change;
  const { rows } = await client.query(
    after === 0
      ? `INSERT INTO preamp.logs AS logs (name, last_seq) VALUES ($1, $2::bigint + $3::bigint)
         ON CONFLICT (name) DO UPDATE SET last_seq = excluded.last_seq WHERE logs.last_seq = $2 RETURNING name`
      : "UPDATE preamp.logs SET last_seq = $2::bigint + $3::bigint WHERE name = $1 AND last_seq = $2 RETURNING name",
    [log, after, entries.length],
  );
  if (rows.length === 0) return notAtEnd(change);
  await client.query(
    `INSERT INTO preamp.entries (log, seq, json)
     SELECT $1, $2::bigint + row.position, row.json FROM unnest($3::text[]) WITH ORDINALITY AS row(json, position)`,
    [log, after, entries],
  );
  return null;
}

/** Returns the reason of an append to a log that ends elsewhere. */
export function notAtEnd({ append: log, after }: Appended): string {
  return `Cannot append to "${log}": does not end at ${after}`;
}
