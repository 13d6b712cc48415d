/** The changes of a commit as statements of Postgres, in the order in which they lock rows. */
import { readField } from "../../sdk/errors.ts";
import type { CountChange, EncodedChange, RecordRow } from "../rows.ts";
import { type Fence, leaseLost, notAtEnd, notAtVersion, tooMany } from "../store.ts";
import type { Queryable, Row, Value } from "./database.ts";

/** The time in milliseconds; `$1` is null or a time that replaces it. */
export const NOW = "COALESCE($1::float8, extract(epoch FROM clock_timestamp()) * 1000)";

/** A change that appends to a log. */
export type Appended = Extract<EncodedChange, { append: string }>;
type Put = Extract<EncodedChange, { put: unknown }>;

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
 * Orders changes by the row that they lock, leases first, then logs: transactions that lock rows in the same
 * order never wait for each other in a circle. Changes of the same row keep their order.
 */
export function byTarget(a: EncodedChange, b: EncodedChange): number {
  const [first, second] = [targetOf(a), targetOf(b)];
  return first < second ? -1 : first > second ? 1 : 0;
}

function targetOf(change: EncodedChange): string {
  if ("count" in change) return "";
  if ("release" in change) return `0 ${change.release.lease}`;
  if ("append" in change) return `1 ${change.append}`;
  if ("deleteLog" in change) return `1 ${change.deleteLog}`;
  if ("expireLog" in change) return `1 ${change.expireLog}`;
  const { kind, key } = "put" in change ? change.put : change.delete;
  return `2 ${kind} ${key}`;
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
  } else if ("release" in change) {
    const { lease, token } = change.release;
    await client.query("DELETE FROM preamp.leases WHERE name = $1 AND token = $2", [lease, token]);
  } else if ("count" in change) await requireBelow(client, change, now);
  else {
    const values = [change.at_ms, change.expireLog];
    await client.query("UPDATE preamp.logs SET expires_ms = $1 WHERE name = $2", values);
  }
}

/**
 * Returns SQL that counts open records and locks their number, see `ADDED` of the tables. `deferred`: whether
 * the transaction does not wait for the disk.
 */
const countOpen = (filter: string, deferred: boolean) =>
  `preamp.count_open($1::float8, ${filter}::text[], ${deferred})`;

/**
 * Locks these records until the end of the transaction, so that their number stays, and requires that there
 * are few enough. @throws {TooManyError}
 */
async function requireBelow(client: Queryable, change: CountChange, now: number | null): Promise<void> {
  const { rows } = await client.query(`SELECT ${countOpen("$2, $3, $4", false)} AS count`, [
    now,
    ...filterOf(change),
  ]);
  if (Number(rows[0]!.count) >= change.below) throw tooMany(change);
}

function filterOf({ count: { kind, namespace, where } }: CountChange): Value[] {
  return [kind, namespace, Object.entries(where).map((field) => JSON.stringify(field))];
}

async function put(
  client: Queryable,
  change: Put,
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

/**
 * A commit that one statement can make: appends and their expiry, records that compare nothing, the release
 * of the lease of its fence, and a count.
 */
export interface SimpleCommit {
  readonly appends: readonly Appended[];
  readonly puts: readonly RecordRow[];
  /** With a count: records that compare, put by statements before the one that counts. */
  readonly compared: readonly Put[];
  /** Log → its expiry in milliseconds since the epoch; infinite: never; absent: as before. */
  readonly expiries: ReadonlyMap<string, number>;
  /** Whether the lease of the fence is released. */
  readonly releases: boolean;
  /** With a count the commit is visible at once and durable later: see {@link SYNC}. */
  readonly count: CountChange | null;
}

/** Returns changes with a fence as a simple commit; null for all others. */
export function simpleCommit(
  changes: readonly EncodedChange[],
  fence: Fence | undefined,
): SimpleCommit | null {
  const appends: Appended[] = [];
  const expiries = new Map<string, number>();
  const puts: RecordRow[] = [];
  const compared: Put[] = [];
  let releases = false;
  let count: CountChange | null = null;
  for (const change of changes) {
    if ("append" in change) appends.push(change);
    else if ("put" in change && change.expect === undefined) puts.push(change.put);
    else if ("put" in change) compared.push(change);
    else if ("expireLog" in change) expiries.set(change.expireLog, change.at_ms ?? Infinity);
    else if (
      "release" in change && change.release.lease === fence?.lease && change.release.token === fence.token
    ) releases = true;
    else if ("count" in change && count === null) count = change;
    else return null;
  }
  const logs = new Set(appends.map(({ append }) => append)); // a statement changes a row once
  const names = new Set(puts.map(({ kind, key }) => `${kind} ${key}`));
  const is_simple = appends.length > 0 && logs.size === appends.length && names.size === puts.length &&
    expiries.keys().every((log) => logs.has(log)) &&
    (count === null
      ? compared.length === 0
      : puts.length > 0 && compared.every(({ put }) => put.kind !== count!.count.kind));
  return is_simple ? { appends, puts, compared: compared.sort(byTarget), expiries, releases, count } : null;
}

const PUT = (dated: boolean) =>
  `INSERT INTO preamp.records AS records (${COLUMNS})
  SELECT kind, key, namespace, json, index_json, ARRAY(SELECT jsonb_array_elements_text(fields::jsonb)),
    COALESCE(created_ms, ${NOW}), expires_ms, 1
  FROM rows WHERE created_ms IS ${dated ? "NOT NULL" : "NULL"} AND EXISTS (SELECT 1 FROM ready)
  ON CONFLICT (kind, key) DO UPDATE SET namespace = excluded.namespace, json = excluded.json,
    index_json = excluded.index_json, fields = excluded.fields, expires_ms = excluded.expires_ms,
    created_ms = ${
    dated
      ? "excluded.created_ms"
      : `CASE WHEN ${EXPIRED} THEN excluded.created_ms ELSE records.created_ms END`
  },
    version = CASE WHEN ${EXPIRED} THEN 1 ELSE records.version + 1 END`;

/**
 * Returns the SQL that ends a selection from arrays, of which `array` is one. It leaves out nothing; the
 * planner, which knows no lengths of parameters, expects one row instead of ten, and reads it by an index.
 */
export function FEW(array: string): string {
  return `LIMIT cardinality(${array})`;
}

/** Appends to all logs or to none, and puts the records only then. A log that is new must not exist. */
const commitTo = (releases: boolean, counts: boolean) =>
  `WITH log AS (
    SELECT * FROM unnest($4::text[], $5::bigint[], $6::bigint[], $7::float8[])
      AS log(name, after, count, expires_ms) ${FEW("$4::text[]")}
  ), held AS (
    SELECT 1 FROM preamp.leases WHERE name = $2 AND token = $3 FOR ${releases ? "UPDATE" : "SHARE"}
  ), locked AS (
    SELECT l.name FROM preamp.logs AS l JOIN log ON l.name = log.name AND l.last_seq = log.after
    WHERE $2::text IS NULL OR EXISTS (SELECT 1 FROM held) ORDER BY l.name FOR UPDATE OF l
  )${counts ? COUNTED : ""}, ready AS (
    SELECT 1 WHERE ($2::text IS NULL OR EXISTS (SELECT 1 FROM held))
      AND (SELECT count(*) FROM locked) = (SELECT count(*) FROM log WHERE after > 0)
      ${counts ? "AND (SELECT count FROM counted) < $22::int" : ""}
  ), moved AS (
    UPDATE preamp.logs AS l SET last_seq = log.after + log.count,
      expires_ms = NULLIF(COALESCE(log.expires_ms, l.expires_ms), 'Infinity')
    FROM log JOIN locked USING (name) WHERE l.name = log.name AND EXISTS (SELECT 1 FROM ready)
  ), made AS (
    INSERT INTO preamp.logs (name, last_seq, expires_ms)
    SELECT name, count, NULLIF(expires_ms, 'Infinity') FROM log WHERE after = 0 AND EXISTS (SELECT 1 FROM ready)
  ), added AS (
    INSERT INTO preamp.entries (log, seq, json)
    SELECT log.name, log.after + entry.position, entry.json
    FROM unnest($8::text[], $9::bigint[], $10::text[]) AS entry(log, position, json)
    JOIN log ON log.name = entry.log WHERE EXISTS (SELECT 1 FROM ready)
  )${releases ? RELEASED : ""}`;
const COUNTED = `, counted AS (SELECT ${countOpen("$19, $20, $21", true)} AS count)`;
const RELEASED = `, released AS (
    DELETE FROM preamp.leases WHERE name = $2 AND token = $3 AND EXISTS (SELECT 1 FROM ready)
  )`;
const RECORDS = `, rows AS (
    SELECT * FROM unnest($11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[],
      $17::float8[], $18::float8[]) AS row(kind, key, namespace, json, index_json, fields, created_ms, expires_ms)
  ), dated AS (${PUT(true)}), undated AS (${PUT(false)})`;
const DONE = " SELECT 1 FROM ready WHERE $1::float8 IS NULL OR TRUE";
const DONE_COUNTED = " SELECT count, EXISTS (SELECT 1 FROM ready) AS is_done FROM counted";

/** Changes nothing of a log. When this is durable, all that was committed before it is. */
export const SYNC = "UPDATE preamp.logs SET expires_ms = expires_ms WHERE name = $1";

/** Code of Postgres for a row that exists already: here that of a log that should be new. */
const EXISTS = "23505";

/**
 * Makes a simple commit in one statement; resolves to false when a log does not end where it should, or the
 * fence is not valid.
 */
export async function commitSimply(
  query: (text: string, values: Value[]) => Promise<Row[]>,
  { appends, puts, expiries, releases, count }: SimpleCommit,
  fence: Fence | undefined,
  now: number | null,
): Promise<boolean> {
  const entries = appends.flatMap(({ append, entries }) =>
    entries.map((json, index) => ({ append, json, position: index + 1 }))
  );
  const logs = [
    ...[now, fence?.lease ?? null, fence?.token ?? null],
    appends.map(({ append }) => append),
    appends.map(({ after }) => after),
    appends.map(({ entries }) => entries.length),
    appends.map(({ append }) => expiries.get(append) ?? null),
    entries.map(({ append }) => append),
    entries.map(({ position }) => position),
    entries.map(({ json }) => json),
  ];
  const columns = puts.length === 0 ? [] : [
    puts.map(({ kind }) => kind),
    puts.map(({ key }) => key),
    puts.map(({ namespace }) => namespace),
    puts.map(({ json }) => json),
    puts.map(({ index_json }) => index_json),
    puts.map(({ index_json }) => JSON.stringify(fieldsOf(index_json))),
    puts.map(({ created_ms }) => created_ms),
    puts.map(({ expires_ms }) => expires_ms),
  ];
  const counted = count === null ? [] : [...filterOf(count), count.below];
  const statement = `${commitTo(releases, count !== null)}${puts.length === 0 ? "" : RECORDS}${
    count === null ? DONE : DONE_COUNTED
  }`;
  try {
    const rows = await query(statement, [...logs, ...columns, ...counted]);
    if (count === null) return rows.length > 0;
    if (Number(rows[0]!.count) >= count.below) throw tooMany(count);
    return rows[0]!.is_done;
  } catch (error) {
    if (readField(readField(error, "cause"), "code") === EXISTS) return false;
    throw error;
  }
}
