/** The in-memory store of one process. Bounded: when full, it drops the oldest logs of ended runs first. */
import { comparePositions, decodeCursor, encodeCursor, pageLength } from "./rows.ts";
import { estimateJsonBytes } from "../sdk/json.ts";
import {
  type Change,
  type Fence,
  type Heartbeat,
  leaseLost,
  type ListOptions,
  type LogEntry,
  notAtEnd,
  notAtVersion,
  type OpenRecords,
  type Page,
  type Store,
  type StoredRecord,
  tooMany,
  type VersionedRecord,
} from "./store.ts";

/** Bounds of {@link MemoryStore}; each is unlimited by default. */
export interface StoreLimits {
  /** Maximum entries of all logs together; the oldest closed logs are dropped. */
  max_entries?: number;
  /** Maximum records of one kind; the least used closed ones are dropped. */
  max_records?: number;
  /**
   * Maximum estimated bytes of all logs and records together; the oldest closed logs are dropped, then the
   * least used records.
   */
  max_bytes?: number;
}

/** Numbers of dropped logs and records. */
export interface Dropped {
  /** The bound that was exceeded. */
  limit: keyof StoreLimits;
  logs: number;
  records: number;
}

/** Options of {@link MemoryStore}. */
export interface MemoryStoreOptions extends StoreLimits {
  /** Milliseconds since the epoch. */
  now?: () => number;
  /** Called with what was dropped since the last call, at most once a minute. */
  onDrop?: (dropped: Dropped) => void;
}

/** Milliseconds between two calls of `onDrop`. */
const REPORT_EVERY_MS = 60_000;

/**
 * Kinds of records that are dropped when bytes exceed the bound: the others are small, and an open approval
 * must stay.
 */
const LARGE_KINDS = ["run", "session"] as const;

interface Lease {
  owner: string;
  token: number;
}

/** An owner of leases. */
interface Owner {
  until_ms: number;
  is_dead: boolean;
}

/** A record with its position in lists. */
type KeptRecord = VersionedRecord & {
  readonly created_ms: number;
  readonly order: number;
  readonly bytes: number;
};

interface Log {
  readonly entries: LogEntry[];
  bytes: number;
  /** Milliseconds since the epoch. */
  expires_ms: number;
}

/** Stores records and logs in maps; every method is synchronous. */
export class MemoryStore implements Store {
  readonly kind = "memory";
  readonly #now: () => number;
  readonly #max_entries: number;
  readonly #max_records: number;
  readonly #max_bytes: number;
  readonly #onDrop: ((dropped: Dropped) => void) | undefined;
  readonly #logs = new Map<string, Log>();
  readonly #records = new Map<string, Map<string, KeptRecord>>();
  readonly #leases = new Map<string, Lease>();
  readonly #owners = new Map<string, Owner>();
  #entries = 0;
  #bytes = 0;
  #last_token = 0;
  #last_order = 0;
  #dropped = { logs: 0, records: 0 };
  #reported_ms = -Infinity;

  constructor(options: MemoryStoreOptions = {}) {
    this.#now = options.now ?? (() => Date.now());
    this.#max_entries = options.max_entries ?? Infinity;
    this.#max_records = options.max_records ?? Infinity;
    this.#max_bytes = options.max_bytes ?? Infinity;
    this.#onDrop = options.onDrop;
  }

  commit(changes: readonly Change[], fence?: Fence): void {
    if (fence && this.#leases.get(fence.lease)?.token !== fence.token) throw leaseLost(fence);
    changes.forEach((change) => this.#check(change)); // perf: `for … of` allocates 1 KB per run
    changes.forEach((change) => this.#apply(change));
  }

  #check(change: Change): void {
    if ("append" in change) {
      const length = this.#logs.get(change.append)?.entries.length ?? 0;
      if (length !== change.after) throw notAtEnd(change, length);
    } else if ("put" in change && change.expect !== undefined) {
      const version = this.get(change.put.kind, change.put.key)?.version ?? 0;
      if (version !== change.expect) throw notAtVersion(change, version);
    } else if ("count" in change && this.#countOf(change.count) >= change.below) throw tooMany(change);
  }

  #countOf({ kind, namespace, where }: OpenRecords): number {
    const options = { namespace, where: { ...where, open: "true" }, limit: Infinity, without_values: true };
    return this.list(kind, options).records.length;
  }

  #apply(change: Change): void {
    if ("append" in change) {
      this.#append(change.append, change.entries, change.bytes ?? estimateJsonBytes(change.entries));
    } else if ("put" in change) this.#put(change.put);
    else if ("delete" in change) this.#drop(change.delete.kind, change.delete.key);
    else if ("deleteLog" in change) this.#dropLog(change.deleteLog);
    else if ("release" in change) {
      const { lease, token } = change.release;
      if (this.#leases.get(lease)?.token === token) this.#leases.delete(lease);
    } else if ("expireLog" in change) {
      const log = this.#logs.get(change.expireLog);
      if (!log) return;
      if (log.expires_ms !== Infinity) { // again: after the logs that expire before it
        this.#logs.delete(change.expireLog);
        this.#logs.set(change.expireLog, log);
      }
      log.expires_ms = change.at_ms ?? Infinity;
    }
  }

  #append(name: string, entries: readonly LogEntry[], bytes: number): void {
    const log = this.#logs.get(name);
    if (!log) {
      this.#dropExpired();
      this.#logs.set(name, { entries: [...entries], bytes, expires_ms: Infinity });
    } else {
      // index is in the list
      for (let index = 0; index < entries.length; index++) log.entries.push(entries[index]!);
      log.bytes += bytes;
    }
    this.#bytes += bytes;
    this.#entries += entries.length;
    if (this.#entries > this.#max_entries) this.#makeRoom(name, "max_entries");
    else if (this.#bytes > this.#max_bytes) this.#makeRoom(name, "max_bytes");
  }

  /**
   * Drops expired logs. Logs expire about in the order in which they were created, so the first unexpired one
   * ends the search.
   */
  #dropExpired(): void {
    const now = this.#now();
    for (const [name, { expires_ms }] of this.#logs) {
      if (expires_ms > now) return;
      this.#dropLog(name);
    }
  }

  get #roomy(): boolean {
    return this.#entries <= this.#max_entries * 0.9 && this.#bytes <= this.#max_bytes * 0.9;
  }

  /**
   * Drops the oldest logs, then, if there are still too many bytes, the least used records, a session with
   * its log. Keeps `used` and everything of open runs.
   */
  #makeRoom(used: string, limit: keyof StoreLimits): void {
    for (const log of this.#logs.keys()) {
      if (this.#roomy) break;
      const is_of_session = this.#records.get("session")?.has(log); // dropped with it
      if (log === used || is_of_session || this.#isOpen("run", log)) continue;
      this.#dropLog(log);
      this.#dropped.logs++;
    }
    for (const kind of LARGE_KINDS) {
      for (const key of this.#records.get(kind)?.keys() ?? []) {
        if (kind === "session" ? this.#roomy : this.#bytes <= this.#max_bytes * 0.9) break;
        if (key === used || this.#isOpen(kind, key)) continue;
        this.#drop(kind, key);
        if (kind === "session") this.#dropLog(key);
        this.#dropped.records++;
      }
    }
    this.#report(limit);
  }

  #report(limit: keyof StoreLimits): void {
    const { logs, records } = this.#dropped;
    const now = this.#now();
    if (logs + records === 0 || now - this.#reported_ms < REPORT_EVERY_MS) return;
    this.#reported_ms = now;
    this.#dropped = { logs: 0, records: 0 };
    this.#onDrop?.({ limit, logs, records });
  }

  /** Returns whether a record must stay: its run has not ended. */
  #isOpen(kind: string, key: string): boolean {
    const record = this.#records.get(kind)?.get(key);
    return record?.index?.open === "true" || kind === "session" && record?.expires_ms === undefined;
  }

  #dropLog(name: string): void {
    const log = this.#logs.get(name);
    if (!log) return;
    this.#entries -= log.entries.length;
    this.#bytes -= log.bytes;
    this.#logs.delete(name);
  }

  #drop(kind: string, key: string): void {
    const records = this.#records.get(kind);
    this.#bytes -= records?.get(key)?.bytes ?? 0;
    records?.delete(key);
  }

  #put(record: StoredRecord): void {
    let kind = this.#records.get(record.kind);
    if (!kind) this.#records.set(record.kind, kind = new Map());
    const before = kind.get(record.key);
    kind.delete(record.key); // reinserted at the end: the least recently used record is dropped first
    const bytes = before?.value === record.value ? before.bytes : estimateJsonBytes(record.value);
    this.#bytes += bytes - (before?.bytes ?? 0);
    kind.set(record.key, {
      ...record,
      created_ms: record.created_ms ?? before?.created_ms ?? this.#now(),
      order: before?.order ?? ++this.#last_order,
      version: (before?.version ?? 0) + 1,
      bytes,
    });
    if (kind.size > this.#max_records) this.#shrink(record.kind, kind);
    if (this.#bytes > this.#max_bytes) this.#makeRoom(record.key, "max_bytes");
  }

  #shrink(name: string, kind: Map<string, KeptRecord>): void {
    for (const key of kind.keys()) {
      if (kind.size <= this.#max_records * 0.9) break;
      if (this.#isOpen(name, key)) continue;
      this.#drop(name, key);
      this.#dropped.records++;
      if (this.#logs.has(key)) this.#dropped.logs++;
      this.#dropLog(key);
    }
    this.#report("max_records");
  }

  entries(log: string, after: number, limit: number, max_bytes = Infinity): readonly LogEntry[] | null {
    const found = this.#logs.get(log);
    if (!found) return null;
    if (found.expires_ms <= this.#now()) {
      this.#dropLog(log);
      return null;
    }
    const entries = found.entries.slice(after, after + limit);
    if (found.bytes < max_bytes) return entries;
    let bytes = 0;
    const last = entries.findIndex((entry) => (bytes += estimateJsonBytes(entry)) >= max_bytes);
    return last === -1 ? entries : entries.slice(0, last + 1);
  }

  get(kind: string, key: string): VersionedRecord | null {
    const record = this.#records.get(kind)?.get(key);
    if (!record) return null;
    if (record.expires_ms === undefined || record.expires_ms > this.#now()) return record;
    this.#drop(kind, key);
    return null;
  }

  list(kind: string, { namespace, where = {}, limit, cursor, without_values }: ListOptions): Page {
    const wanted = Object.entries(where);
    const after = cursor === undefined ? null : decodeCursor(cursor);
    const found: KeptRecord[] = [];
    for (const record of this.#records.get(kind)?.values() ?? []) {
      if (record.namespace !== namespace) continue;
      if (!wanted.every(([field, value]) => record.index?.[field] === value)) continue;
      if (after && comparePositions(record, after) <= 0) continue;
      if (this.get(kind, record.key)) found.push(record);
    }
    found.sort(comparePositions);
    const page = found.slice(0, pageLength(found.map(({ bytes }) => without_values ? 0 : bytes), limit));
    const next_cursor = found.length > page.length ? encodeCursor(page.at(-1)!) : null;
    return { records: without_values ? page.map((record) => ({ ...record, value: {} })) : page, next_cursor };
  }

  heartbeat(owner: string, ttl_ms: number): Heartbeat {
    const now = this.#now();
    const own = this.#owners.get(owner) ?? { until_ms: 0, is_dead: false };
    this.#owners.set(owner, own);
    if (!own.is_dead) own.until_ms = Math.max(own.until_ms, now + ttl_ms);
    let deaths = false;
    for (const other of this.#owners.values()) {
      if (other === own) continue;
      other.is_dead ||= other.until_ms <= now;
      deaths ||= other.is_dead;
    }
    return { lives: !own.is_dead, deaths };
  }

  acquire(name: string, owner: string, at_once = true): number | null {
    const lease = this.#leases.get(name);
    if (lease && lease.owner !== owner && !this.#isFree(lease, at_once)) return null;
    // a token is never reused, so that an old fence stays invalid
    const token = lease?.owner === owner ? lease.token : ++this.#last_token;
    this.#leases.set(name, { owner, token });
    return token;
  }

  #isFree({ owner }: Lease, at_once: boolean): boolean {
    const holder = this.#owners.get(owner);
    return !holder || holder.is_dead && (at_once || holder.until_ms <= this.#now());
  }

  free(names: readonly string[]): string[] {
    return names.filter((name) => {
      const lease = this.#leases.get(name);
      return !lease || this.#isFree(lease, true);
    });
  }

  release(name: string, owner: string): void {
    const lease = this.#leases.get(name);
    if (lease?.owner === owner) this.#leases.delete(name);
  }

  ready(): { ok: boolean } {
    return { ok: true };
  }

  close(): void {
    this.#logs.clear();
    this.#records.clear();
    this.#leases.clear();
    this.#owners.clear();
    this.#entries = this.#bytes = 0;
  }
}
