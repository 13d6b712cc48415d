/** The store in memory: for one process, gone with it. Bounded: the logs of runs that ended go first, oldest first. */
import { comparePlaces, decodeCursor, encodeCursor } from "./cursor.ts";
import { weigh } from "../sdk/size.ts";
import { weighRecord } from "./size.ts";
import {
  type Change,
  ConflictError,
  type Fence,
  type ListOptions,
  type LogEntry,
  type Store,
  type StoredRecord,
  type VersionedRecord,
} from "./store.ts";

/** Options of {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /** Milliseconds since the epoch. */
  now?: () => number;
  /** Entries of all logs together above which the oldest closed logs are dropped. Default 50,000. */
  max_entries?: number;
  /** Records of one kind above which the oldest closed ones are dropped. Default 5,000. */
  max_records?: number;
  /**
   * Bytes of JSON, about, of all logs and records together above which the oldest closed logs are dropped, then the records
   * that were least used. Default 256 MiB.
   */
  max_bytes?: number;
}

/** Kinds that hold what people and models wrote; the others are small, and an answer to a question may wait for one. */
const LARGE_KINDS = ["run", "session"] as const;

interface Lease {
  owner: string | null;
  token: number;
  until_ms: number;
}

/** A record with its place in lists. */
type Kept = VersionedRecord & {
  readonly created_ms: number;
  readonly order: number;
  readonly bytes: number;
};

interface Log {
  readonly entries: LogEntry[];
  bytes: number;
}

/** Kinds and logs in maps; every call answers at once. */
export class MemoryStore implements Store {
  readonly kind = "memory";
  readonly buffer_ms = 0;
  readonly #now: () => number;
  readonly #max_entries: number;
  readonly #max_records: number;
  readonly #max_bytes: number;
  readonly #logs = new Map<string, Log>();
  readonly #records = new Map<string, Map<string, Kept>>();
  readonly #leases = new Map<string, Lease>();
  #entries = 0;
  #bytes = 0;
  #last_token = 0;
  #last_order = 0;

  constructor(options: MemoryStoreOptions = {}) {
    this.#now = options.now ?? (() => Date.now());
    this.#max_entries = options.max_entries ?? 50_000;
    this.#max_records = options.max_records ?? 5_000;
    this.#max_bytes = options.max_bytes ?? 256 * 1024 * 1024;
  }

  commit(changes: readonly Change[], fence?: Fence): void {
    if (fence && this.#leases.get(fence.lease)?.token !== fence.token) {
      throw new ConflictError(`Cannot commit: lease "${fence.lease}" is not held with token ${fence.token}`);
    }
    for (const change of changes) this.#check(change);
    for (const change of changes) this.#apply(change);
  }

  #check(change: Change): void {
    if ("append" in change) {
      const length = this.#logs.get(change.append)?.entries.length ?? 0;
      if (length !== change.after) {
        throw new ConflictError(
          `Cannot append to "${change.append}": ends at ${length}: received ${change.after}`,
        );
      }
    } else if ("put" in change && change.expect !== undefined) {
      const version = this.get(change.put.kind, change.put.key)?.version ?? 0;
      if (version !== change.expect) {
        throw new ConflictError(
          `Cannot put ${change.put.kind} "${change.put.key}": is at version ${version}: received ${change.expect}`,
        );
      }
    }
  }

  #apply(change: Change): void {
    if ("append" in change) {
      this.#append(change.append, change.entries, change.bytes ?? weigh(change.entries));
    } else if ("put" in change) this.#put(change.put);
    else if ("delete" in change) this.#drop(change.delete.kind, change.delete.key);
    else this.#dropLog(change.deleteLog);
  }

  #append(name: string, entries: readonly LogEntry[], bytes: number): void {
    let log = this.#logs.get(name);
    if (!log) this.#logs.set(name, log = { entries: [], bytes: 0 });
    for (let index = 0; index < entries.length; index++) log.entries.push(entries[index]!); // index is in the list
    log.bytes += bytes;
    this.#bytes += bytes;
    this.#entries += entries.length;
    if (this.#entries > this.#max_entries || this.#bytes > this.#max_bytes) this.#makeRoom(name);
  }

  get #roomy(): boolean {
    return this.#entries <= this.#max_entries * 0.9 && this.#bytes <= this.#max_bytes * 0.9;
  }

  /**
   * Drops the oldest logs, then, when bytes are what there is too much of, the records that were least used: all but what is
   * used just now, and what a run needs that has not ended.
   */
  #makeRoom(used: string): void {
    for (const log of this.#logs.keys()) {
      if (this.#roomy) return;
      if (log !== used && !this.#isOpen("run", log)) this.#dropLog(log);
    }
    for (const kind of LARGE_KINDS) {
      for (const key of this.#records.get(kind)?.keys() ?? []) {
        if (this.#bytes <= this.#max_bytes * 0.9) return;
        if (key !== used && !this.#isOpen(kind, key)) this.#drop(kind, key);
      }
    }
  }

  /** A run says in its record's index whether it has ended. */
  #isOpen(kind: string, key: string): boolean {
    return this.#records.get(kind)?.get(key)?.index?.open === "true";
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
    kind.delete(record.key); // behind the others: what is used is dropped last
    const bytes = weighRecord(record.value);
    this.#bytes += bytes - (before?.bytes ?? 0);
    kind.set(record.key, {
      ...record,
      created_ms: record.created_ms ?? before?.created_ms ?? this.#now(),
      order: before?.order ?? ++this.#last_order,
      version: (before?.version ?? 0) + 1,
      bytes,
    });
    if (kind.size > this.#max_records) this.#shrink(record.kind, kind);
    if (this.#bytes > this.#max_bytes) this.#makeRoom(record.key);
  }

  #shrink(name: string, kind: Map<string, Kept>): void {
    for (const [key, record] of kind) {
      if (kind.size <= this.#max_records * 0.9) return;
      if (record.index?.open === "true") continue;
      this.#drop(name, key);
      this.#dropLog(key);
    }
  }

  entries(log: string, after: number, limit: number): readonly LogEntry[] | null {
    return this.#logs.get(log)?.entries.slice(after, after + limit) ?? null;
  }

  get(kind: string, key: string): VersionedRecord | null {
    const record = this.#records.get(kind)?.get(key);
    if (!record) return null;
    if (record.expires_ms === undefined || record.expires_ms > this.#now()) return record;
    this.#drop(kind, key);
    return null;
  }

  list(kind: string, options: ListOptions): { records: VersionedRecord[]; next_cursor: string | null } {
    const { namespace, where, limit, cursor } = options;
    const after = cursor === undefined ? null : decodeCursor(cursor);
    const found: Kept[] = [];
    for (const record of this.#records.get(kind)?.values() ?? []) {
      if (record.namespace !== namespace || (where && !matches(record, where))) continue;
      if (after && comparePlaces(record, after) <= 0) continue;
      if (this.get(kind, record.key)) found.push(record);
    }
    const records = found.sort(comparePlaces).slice(0, limit);
    return { records, next_cursor: found.length > limit ? encodeCursor(records.at(-1)!) : null };
  }

  acquire(name: string, owner: string, ttl_ms: number): number | null {
    const lease = this.#leases.get(name);
    const now = this.#now();
    if (lease && lease.owner !== null && lease.owner !== owner && lease.until_ms > now) return null;
    const token = lease?.owner === owner ? lease.token : ++this.#last_token; // never the same twice: an old fence stays old
    this.#leases.set(name, { owner, token, until_ms: now + ttl_ms });
    return token;
  }

  renew(name: string, owner: string, ttl_ms: number): boolean {
    const lease = this.#leases.get(name);
    if (!lease || lease.owner !== owner) return false;
    lease.until_ms = this.#now() + ttl_ms;
    return true;
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
    this.#entries = this.#bytes = 0;
  }
}

function matches(record: VersionedRecord, where: Record<string, string>): boolean {
  return Object.entries(where).every(([key, value]) => record.index?.[key] === value);
}
