/**
 * A store in Deno KV: a local file, a database attached to Deno Deploy, or a remote one. A commit is one
 * atomic operation. Leases are `observed_leases.ts`.
 */
import { errorMessage } from "../../sdk/errors.ts";
import { isSame, type LeaseAttempt, ObservedLeases, type StoredLease } from "../observed_leases.ts";
import { decodeCursor, decodeRecord, pageOf, type StoredRow } from "../rows.ts";
import {
  type Change,
  type Fence,
  type ListOptions,
  type LogEntry,
  MAX_PAGE_BYTES,
  type Page,
  type Store,
  type VersionedRecord,
} from "../store.ts";
import { Changes, type Notifications } from "../waiters.ts";
import {
  getAll,
  keys,
  type LogValue,
  openKv,
  readContent,
  READS,
  type RecordValue,
  repeat,
  type SegmentValue,
  tryCommit,
} from "./database.ts";
import { commit, isExpired } from "./commit.ts";
import { purge } from "./purge.ts";

/** Options of {@link openKvStore}. */
export interface KvStoreOptions {
  /** Returns milliseconds since the epoch. Default: the clock of this process. */
  now?: () => number;
  /** Returns milliseconds that never go backwards, for leases. Default: `performance.now`. */
  monotonic?: () => number;
}

/** As `poll_ms`: files of other processes have no notifications. */
const POLL_MS = 500;
const PURGE_EVERY_MS = 60_000;
/** Attempts to read a text that was replaced while it was read. */
const ATTEMPTS = 5;

/**
 * Opens a database.
 *
 * @param path A file, an `https://` URL of KV Connect, or null: the attached database, else the default file.
 * @throws {Error} when it cannot be opened, or a newer program wrote it.
 */
export async function openKvStore(path: string | null, options: KvStoreOptions = {}): Promise<Store> {
  const { kv } = await openKv(path);
  return new KvStore(kv, options.now ?? Date.now, options.monotonic ?? (() => performance.now()));
}

/** Returns notifications: watches one key that every process writes. */
function notificationsOf(kv: Deno.Kv): Notifications {
  const origin = crypto.randomUUID();
  let count = 0;
  return {
    poll_ms: POLL_MS,
    send: () => kv.set(keys.changed(), { origin, count: ++count }),
    listen(wake, lost) {
      const reader = kv.watch<[{ origin: string }]>([keys.changed()]).getReader();
      const watch = async () => {
        await reader.read(); // the value at the start
        for (let next = await reader.read(); !next.done; next = await reader.read()) {
          if (next.value[0].value?.origin !== origin) wake();
        }
      };
      watch().then(lost, lost);
      return () => reader.cancel();
    },
  };
}

/** Bounds of the entries to read. */
interface Bounds {
  readonly limit: number;
  readonly max_bytes: number;
}

class KvStore implements Store {
  readonly kind = "kv";
  readonly #kv: Deno.Kv;
  readonly #now: () => number;
  readonly #changes: Changes;
  readonly #purging: ReturnType<typeof setInterval>;
  readonly #working = new Set<Promise<unknown>>();
  readonly #observed: ObservedLeases;
  #purge: Promise<void> | undefined;
  #closed = false;

  constructor(kv: Deno.Kv, now: () => number, monotonic: () => number) {
    this.#kv = kv;
    this.#observed = new ObservedLeases(monotonic);
    this.#now = now;
    this.#changes = new Changes(notificationsOf(kv));
    // a failed purge is tried again: what has expired counts as deleted anyway
    this.#purging = setInterval(() => {
      this.#purge ??= purge(kv, now()).catch(() => {}).finally(() => this.#purge = undefined);
    }, PURGE_EVERY_MS);
    Deno.unrefTimer(this.#purging);
  }

  commit(changes: readonly Change[], fence?: Fence): Promise<void> {
    return this.#track(async () => {
      await commit(this.#kv, changes, fence, this.#now);
      this.#changes.notify();
    });
  }

  entries(
    log: string,
    after: number,
    limit: number,
    max_bytes = Infinity,
  ): Promise<readonly LogEntry[] | null> {
    return this.#track(() => this.#entries(log, after, { limit, max_bytes }));
  }

  get(kind: string, key: string): Promise<VersionedRecord | null> {
    return this.#track(async () => {
      const row = await this.#get(kind, key);
      return row && decodeRecord(row);
    });
  }

  list(kind: string, options: ListOptions): Promise<Page> {
    return this.#track(() => this.#list(kind, options));
  }

  acquire(lease: string, owner: string, ttl_ms: number, wait?: boolean): Promise<number | null> {
    return this.#observed.acquire(
      lease,
      { ttl_ms, wait },
      (expired) => this.#track(() => this.#acquire(lease, { owner, ttl_ms, expired })),
    );
  }

  renew(lease: string, owner: string, ttl_ms: number): Promise<boolean> {
    return this.#track(() => this.#renew(lease, owner, ttl_ms));
  }

  release(lease: string, owner: string): Promise<void> {
    return this.#track(() => this.#release(lease, owner));
  }

  /** Calls `work`; {@link close} waits for it. */
  async #track<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new Error("Cannot use the store: it is closed");
    const working = work();
    this.#working.add(working);
    try {
      return await working;
    } finally {
      this.#working.delete(working);
    }
  }

  async #entries(log: string, after: number, bounds: Bounds): Promise<readonly LogEntry[] | null> {
    for (let attempt = 1;; attempt++) {
      const { value: head } = await this.#kv.get<LogValue>(keys.log(log));
      if (!head || isExpired(head, this.#now())) return null;
      if (after >= head.last_seq || bounds.limit <= 0) return [];
      const found = await this.#segments(head.id, after, bounds);
      if (found || attempt === ATTEMPTS) return found;
    }
  }

  /** Resolves to entries of a log; null if they were deleted meanwhile. */
  async #segments(id: string, after: number, { limit, max_bytes }: Bounds): Promise<LogEntry[] | null> {
    const prefix = keys.segments(id);
    const containing = this.#kv.list({ prefix, end: keys.segment(id, after + 2) }, {
      reverse: true,
      limit: 1,
    });
    const { value: first } = await containing.next();
    if (!first) return null;
    const found: LogEntry[] = [];
    let bytes = 0;
    const list = this.#kv.list<SegmentValue>({ prefix, start: first.key }, {
      batchSize: Math.min(limit, 16),
    });
    for await (const { key, value: { content } } of list) {
      const text = await readContent(this.#kv, content);
      if (text === null) return null;
      const entries: LogEntry[] = JSON.parse(text);
      const first_seq = Number(key.at(-1));
      found.push(...entries.slice(Math.max(0, after + 1 - first_seq)));
      bytes += text.length;
      if (found.length >= limit) return found.slice(0, limit);
      if (bytes >= max_bytes) return found;
    }
    return found.length === 0 ? null : found;
  }

  async #get(kind: string, key: string): Promise<StoredRow | null> {
    for (let attempt = 1;; attempt++) {
      const { value } = await this.#kv.get<RecordValue>(keys.record(kind, key));
      const row = await this.#row(kind, value);
      if (row !== "replaced") return row;
      if (attempt === ATTEMPTS) return null;
    }
  }

  async #row(kind: string, value: RecordValue | null): Promise<StoredRow | null | "replaced"> {
    if (!value || isExpired(value, this.#now())) return null;
    const json = await readContent(this.#kv, value.content);
    return json === null ? "replaced" : rowOf(kind, value, json);
  }

  async #list(kind: string, options: ListOptions): Promise<Page> {
    const { limit } = options;
    const rows: StoredRow[] = [];
    let bytes = 0;
    for await (const row of this.#rows(kind, options)) {
      rows.push(row);
      if (rows.length > limit || bytes >= MAX_PAGE_BYTES) break;
      bytes += row.json.length;
    }
    return pageOf(rows, limit);
  }

  /** Yields the rows of a list after its cursor; reads about `limit` of them at a time. */
  async *#rows(
    kind: string,
    { namespace, where = {}, limit, cursor, without_values }: ListOptions,
  ): AsyncGenerator<StoredRow> {
    const fields = Object.entries(where);
    // the longest value is the most selective one: an id and not a status
    const [field] = fields.toSorted(([, a], [, b]) => b.length - a.length);
    const prefix = keys.list(kind, namespace, field);
    const before = cursor === undefined ? null : decodeCursor(cursor);
    const selector = before ? { prefix, end: [...prefix, before.created_ms, before.order] } : { prefix };
    const index = this.#kv.list<string[]>(selector, { reverse: true, batchSize: Math.min(limit + 1, 500) });
    for await (const some of inGroups(index, READS)) {
      const values = await getAll<RecordValue>(
        this.#kv,
        some.map(({ value: [, key = ""] }) => keys.record(kind, key)),
      );
      for (const [at, { value }] of values.entries()) {
        const [created_ms, order] = some[at]!.key.slice(-2); // as indexKeys wrote it
        if (value?.created_ms !== created_ms || value?.order !== order || value?.namespace !== namespace) {
          continue; // the record was replaced meanwhile
        }
        const stored = value.index_json === null ? {} : JSON.parse(value.index_json);
        if (!fields.every(([name, text]) => stored[name] === text)) continue;
        if (without_values) {
          if (!isExpired(value, this.#now())) yield rowOf(kind, value, "{}");
          continue;
        }
        const found = await this.#row(kind, value);
        const row = found === "replaced" ? await this.#get(kind, value.key) : found;
        if (row) yield row;
      }
    }
  }

  async #acquire(
    lease: string,
    { owner, ttl_ms, expired }: { owner: string; ttl_ms: number; expired: StoredLease | null },
  ): Promise<LeaseAttempt> {
    const key = keys.lease(lease);
    const token_key = keys.token(lease);
    return await repeat<LeaseAttempt>(async () => {
      const [held, fence] = await this.#kv.getMany<[StoredLease, number]>([key, token_key]);
      const now_ms = this.#now();
      const is_own = held.value?.owner === owner;
      if (held.value && !is_own && !isSame(expired, held.value)) {
        return { held: held.value, late: held.value.until_ms <= now_ms };
      }
      // a token is never used again, so that an old fence stays invalid
      const token = is_own && fence.value !== null ? fence.value : randomToken();
      const acquired: StoredLease = { owner, until_ms: now_ms + ttl_ms };
      const atomic = this.#kv.atomic().check(held, fence).set(key, acquired);
      if (token !== fence.value) atomic.set(token_key, token);
      return await tryCommit(atomic) && { acquired, token };
    });
  }

  async #renew(lease: string, owner: string, ttl_ms: number): Promise<boolean> {
    const key = keys.lease(lease);
    const renewed = await repeat<StoredLease | null>(async () => {
      const held = await this.#kv.get<StoredLease>(key);
      if (held.value?.owner !== owner) return null;
      const value: StoredLease = { owner, until_ms: this.#now() + ttl_ms };
      return await tryCommit(this.#kv.atomic().check(held).set(key, value)) && value;
    });
    if (renewed) this.#observed.see(lease, renewed);
    return renewed !== null;
  }

  async #release(lease: string, owner: string): Promise<void> {
    const key = keys.lease(lease);
    this.#observed.forget(lease);
    await repeat(async () => {
      const held = await this.#kv.get<StoredLease>(key);
      if (held.value?.owner !== owner) return true;
      return await tryCommit(this.#kv.atomic().check(held).delete(key).delete(keys.token(lease)));
    });
    this.#changes.notify(); // a run may wait for the lease
  }

  changed(signal: AbortSignal): Promise<void> {
    return this.#changes.changed(signal);
  }

  async ready(): Promise<{ ok: boolean; reason?: string }> {
    try {
      await this.#kv.get(keys.version());
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: `store not reachable: ${errorMessage(error)}` };
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#purging);
    await Promise.allSettled([...this.#working]);
    await this.#changes.close();
    await this.#purge;
    this.#kv.close();
  }
}

/** Yields items in groups of `size`; the last one may be smaller. */
async function* inGroups<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  const group: T[] = [];
  for await (const item of items) {
    if (group.push(item) === size) yield group.splice(0);
  }
  if (group.length > 0) yield group;
}

function randomToken(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high % 2 ** 20) * 2 ** 32 + low;
}

function rowOf(kind: string, { content: _, order, ...row }: RecordValue, json: string): StoredRow {
  return { ...row, kind, json, id: order };
}
