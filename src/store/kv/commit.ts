/** One commit: reads what its changes touch, compares, and writes everything in one atomic operation. */
import { PreampError } from "../../sdk/errors.ts";
import { encodeChange, type EncodedChange } from "../rows.ts";
import { type Change, ConflictError, type Fence, leaseLost, notAtEnd, notAtVersion } from "../store.ts";
import {
  type Content,
  Contents,
  dropContent,
  type GarbageValue,
  getAll,
  indexKeys,
  keys,
  type LogValue,
  type RecordValue,
  repeat,
  type SegmentValue,
  tryCommit,
} from "./database.ts";

/** Size of the texts of a segment, unless one entry is larger. */
const SEGMENT_LENGTH = 200_000;

/** Texts of the changes, written before the first attempt. */
type Prepared = EncodedChange & { contents?: readonly SegmentContent[]; content?: Content };

interface SegmentContent {
  readonly count: number;
  readonly content: Content;
}

/** What a change touches: its value before the commit and after the changes so far. */
interface Target<Value> {
  readonly key: Deno.KvKey;
  readonly versionstamp: string | null;
  readonly before: Value | null;
  after: Value | null;
}

/**
 * Applies all changes or none.
 *
 * @throws {ConflictError} when a comparison fails.
 * @throws {PreampError} `storage_full` if the database is full, or takes fewer changes at once.
 */
export async function commit(
  kv: Deno.Kv,
  changes: readonly Change[],
  fence: Fence | undefined,
  now: () => number,
): Promise<void> {
  const contents = new Contents(kv);
  try {
    const prepared: Prepared[] = [];
    for (const change of changes) prepared.push(await prepare(encodeChange(change), contents, now()));
    await repeat(() => new Attempt(kv, prepared, now()).run(fence, contents));
  } catch (error) {
    await contents.discard().catch(() => {}); // deleted after an hour otherwise
    throw toStoreError(error, changes);
  }
}

async function prepare(change: EncodedChange, contents: Contents, now_ms: number): Promise<Prepared> {
  if ("put" in change) return { ...change, content: await contents.add(change.put.json, now_ms) };
  if (!("append" in change)) return change;
  const segments: SegmentContent[] = [];
  for (let first = 0; first < change.entries.length;) {
    let end = first;
    let length = 0;
    while (
      end < change.entries.length && (end === first || length + change.entries[end]!.length <= SEGMENT_LENGTH)
    ) {
      length += change.entries[end++]!.length;
    }
    const content = await contents.add(`[${change.entries.slice(first, end).join(",")}]`, now_ms);
    segments.push({ count: end - first, content });
    first = end;
  }
  return { ...change, contents: segments };
}

/** One attempt of a commit. */
class Attempt {
  readonly #kv: Deno.Kv;
  readonly #changes: readonly Prepared[];
  readonly #now_ms: number;
  readonly #atomic: Deno.AtomicOperation;
  readonly #records = new Map<string, Target<RecordValue> & { readonly kind: string }>();
  readonly #logs = new Map<string, Target<LogValue>>();

  constructor(kv: Deno.Kv, changes: readonly Prepared[], now_ms: number) {
    this.#kv = kv;
    this.#changes = changes;
    this.#now_ms = now_ms;
    this.#atomic = kv.atomic();
  }

  /** Resolves to false if another commit was faster. @throws {ConflictError} */
  async run(fence: Fence | undefined, contents: Contents): Promise<boolean> {
    await this.#read(fence);
    for (const change of this.#changes) this.#apply(change);
    for (const target of this.#records.values()) this.#writeRecord(target);
    for (const [name, target] of this.#logs) this.#writeLog(name, target);
    contents.keep(this.#atomic);
    return await tryCommit(this.#atomic);
  }

  async #read(fence: Fence | undefined): Promise<void> {
    const wanted = new Map<string, Deno.KvKey>();
    const want = (key: Deno.KvKey) => wanted.set(JSON.stringify(key), key);
    if (fence) want(keys.token(fence.lease));
    for (const change of this.#changes) want(keyOf(change));
    const entries = await getAll(this.#kv, [...wanted.values()]);
    const found = new Map(entries.map((entry) => [JSON.stringify(entry.key), entry]));
    const at = (key: Deno.KvKey) => found.get(JSON.stringify(key))!; // all were read
    if (fence) {
      const entry = at(keys.token(fence.lease));
      if (entry.value !== fence.token) throw leaseLost(fence);
      this.#atomic.check(entry);
    }
    for (const change of this.#changes) {
      const { key, versionstamp, value } = at(keyOf(change));
      const log = logOf(change);
      if (log !== undefined) {
        const before = value as LogValue | null; // written by this file
        this.#logs.set(log, { key, versionstamp, before, after: before });
      } else if ("put" in change || "delete" in change) {
        const { kind, key: name } = "put" in change ? change.put : change.delete;
        const before = value as RecordValue | null; // written by this file
        this.#records.set(JSON.stringify([kind, name]), { kind, key, versionstamp, before, after: before });
      }
    }
  }

  #apply(change: Prepared): void {
    if ("append" in change) this.#append(change);
    else if ("put" in change) this.#put(change);
    else if ("delete" in change) this.#replace(this.#record(change.delete.kind, change.delete.key), null);
    else {
      const log = this.#logs.get(logOf(change)!)!; // every other change names a log, and all were read
      if (!log.after) return;
      if ("expireLog" in change) log.after = { ...log.after, expires_ms: change.at_ms };
      else {
        const garbage: GarbageValue = { what: "log", at_ms: this.#now_ms };
        this.#atomic.set(keys.garbage(log.after.id), garbage);
        log.after = null;
      }
    }
  }

  /** Sets what a record is after the changes so far, and deletes the blob of what it was. */
  #replace(target: Target<RecordValue>, after: RecordValue | null): void {
    if (target.after) dropContent(this.#atomic, target.after.content, this.#now_ms);
    target.after = after;
  }

  #record(kind: string, key: string): Target<RecordValue> {
    return this.#records.get(JSON.stringify([kind, key]))!; // all were read
  }

  #append(change: Extract<Prepared, { append: string }>): void {
    const { append: name, after, entries, contents = [] } = change;
    const log = this.#logs.get(name)!; // all were read
    const last = log.after?.last_seq ?? 0;
    if (last !== after) throw notAtEnd(change, last);
    const { id = crypto.randomUUID(), expires_ms = null } = log.after ?? {};
    let seq = after;
    for (const { count, content } of contents) {
      const segment: SegmentValue = { last_seq: seq + count, content };
      this.#atomic.set(keys.segment(id, seq + 1), segment);
      seq += count;
    }
    log.after = { id, last_seq: after + entries.length, expires_ms };
  }

  #put(change: Extract<Prepared, { put: unknown }>): void {
    const { put: { kind, key, namespace, index_json, created_ms, expires_ms }, expect, content } = change;
    const target = this.#record(kind, key);
    const current = target.after && !isExpired(target.after, this.#now_ms) ? target.after : null;
    const version = current?.version ?? 0;
    if (expect !== undefined && expect !== version) throw notAtVersion(change, version);
    this.#replace(target, {
      key,
      namespace,
      index_json,
      created_ms: created_ms ?? current?.created_ms ?? this.#now_ms,
      order: current?.order ?? nextOrder(),
      expires_ms,
      version: version + 1,
      content: content!, // prepared
    });
  }

  #writeRecord(
    { kind, key, versionstamp, before, after }: Target<RecordValue> & { readonly kind: string },
  ): void {
    if (before === after) return;
    this.#atomic.check({ key, versionstamp });
    if (after) this.#atomic.set(key, after);
    else this.#atomic.delete(key);
    const old = new Map(before ? indexKeys(kind, before).map((one) => [JSON.stringify(one), one]) : []);
    for (const index of after ? indexKeys(kind, after) : []) {
      if (!old.delete(JSON.stringify(index))) this.#atomic.set(index, [kind, after!.key]);
    }
    for (const index of old.values()) this.#atomic.delete(index);
  }

  #writeLog(name: string, { key, versionstamp, before, after }: Target<LogValue>): void {
    if (before === after) return;
    this.#atomic.check({ key, versionstamp });
    if (after) this.#atomic.set(key, after);
    else this.#atomic.delete(key);
    if (before?.expires_ms === after?.expires_ms) return;
    if (before && before.expires_ms !== null) {
      this.#atomic.delete(keys.expiry(before.expires_ms, "log", before.id));
    }
    if (after && after.expires_ms !== null) {
      this.#atomic.set(keys.expiry(after.expires_ms, "log", after.id), [name]);
    }
  }
}

/** Returns the log that a change touches. */
function logOf(change: EncodedChange): string | undefined {
  if ("append" in change) return change.append;
  if ("deleteLog" in change) return change.deleteLog;
  return "expireLog" in change ? change.expireLog : undefined;
}

function keyOf(change: EncodedChange): Deno.KvKey {
  if ("put" in change) return keys.record(change.put.kind, change.put.key);
  if ("delete" in change) return keys.record(change.delete.kind, change.delete.key);
  return keys.log(logOf(change)!); // every other change names a log
}

/** Returns whether a record or a log counts as deleted. */
export function isExpired({ expires_ms }: { readonly expires_ms: number | null }, now_ms: number): boolean {
  return expires_ms !== null && expires_ms <= now_ms;
}

let created = 0;

/** Returns a number that no other record of the same millisecond has; it grows within a process. */
function nextOrder(): number {
  created = (created + 1) % 2 ** 20;
  return created * 2 ** 32 + crypto.getRandomValues(new Uint32Array(1))[0]!;
}

/** Returns an error of the database as one of ours. */
function toStoreError(error: unknown, changes: readonly Change[]): unknown {
  if (!(error instanceof Error) || error instanceof ConflictError) return error;
  if (/too (many|large)/i.test(error.message)) {
    const message =
      `Cannot write to the store: Deno KV does not take ${changes.length} changes at once: ${error.message}`;
    return new PreampError("storage_full", message, { cause: error });
  }
  return error;
}
