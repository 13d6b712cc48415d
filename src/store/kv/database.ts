/**
 * A database of Deno KV: how it is opened and written, its keys and its values. Every key begins with {@link ROOT}. Lists are read
 * from index keys, which sort by age: Deno KV orders numbers in keys.
 */
import { createHash } from "node:crypto";

const ROOT = "preamp";

/** Version of the keys and values that this program reads and writes. */
export const LAYOUT_VERSION = 1;

/** Bytes of a text, or the blob that contains them. */
export type Content = Uint8Array<ArrayBuffer> | { readonly blob: string; readonly parts: number };

/** A record. */
export interface RecordValue {
  readonly key: string;
  readonly namespace: string;
  readonly index_json: string | null;
  readonly created_ms: number;
  /** Distinguishes records of the same millisecond. */
  readonly order: number;
  readonly expires_ms: number | null;
  readonly version: number;
  /** The record's value as JSON. */
  readonly content: Content;
}

/** The head of a log. Its entries are under `id`, so that a log of the same name can begin while they are deleted. */
export interface LogValue {
  readonly id: string;
  readonly last_seq: number;
  readonly expires_ms: number | null;
}

/** Consecutive entries of a log, as the JSON of a list. */
export interface SegmentValue {
  readonly last_seq: number;
  readonly content: Content;
}

/** Deleted data whose parts are still there. */
export interface GarbageValue {
  readonly what: "blob" | "log";
  readonly at_ms: number;
}

/** The keys of everything in a store. */
export const keys = {
  version: () => [ROOT, "version"],
  changed: () => [ROOT, "changed"],
  record: (kind: string, key: string) => [ROOT, "record", part(kind), part(key)],
  records: () => [ROOT, "record"],
  log: (name: string) => [ROOT, "log", part(name)],
  logs: () => [ROOT, "log"],
  segment: (id: string, first_seq: number) => [ROOT, "segment", id, first_seq],
  segments: (id: string) => [ROOT, "segment", id],
  blob: (id: string, index: number) => [ROOT, "blob", id, index],
  blobs: (id: string) => [ROOT, "blob", id],
  /** Blobs that no record or segment names yet. */
  pending: (id?: string) => id === undefined ? [ROOT, "pending"] : [ROOT, "pending", id],
  garbage: (id?: string) => id === undefined ? [ROOT, "garbage"] : [ROOT, "garbage", id],
  /** A lease. Its token is in a key of its own, so that renewing the lease does not disturb commits. */
  lease: (name: string) => [ROOT, "lease", part(name)],
  token: (name: string) => [ROOT, "token", part(name)],
  /** Index of a list: all records of a namespace, or those with one field. */
  list: (kind: string, namespace: string, field?: readonly [string, string]) =>
    field === undefined
      ? [ROOT, "list", part(kind), part(namespace)]
      : [ROOT, "by", part(kind), part(namespace), part(field[0]), part(field[1])],
  /** Index of what expires, by time. */
  expiry: (...at: readonly (string | number)[]) => [ROOT, "expires", ...at],
} satisfies Record<string, (...args: never[]) => Deno.KvKey>;

/** Keys of one `getMany`. */
const READS = 10;

/** Reads any number of keys. */
export async function getAll<Value>(
  kv: Deno.Kv,
  wanted: readonly Deno.KvKey[],
): Promise<Deno.KvEntryMaybe<Value>[]> {
  const found: Deno.KvEntryMaybe<Value>[] = [];
  for (let first = 0; first < wanted.length; first += READS) {
    found.push(...await kv.getMany<Value[]>(wanted.slice(first, first + READS)));
  }
  return found;
}

/** Keys have at most 2 KiB in Deno KV; a longer part is replaced by its hash. */
const MAX_PART = 240;

function part(text: string): string {
  return text.length <= MAX_PART ? text : `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

/** Returns the index keys of a record. */
export function indexKeys(kind: string, record: RecordValue): Deno.KvKey[] {
  const { key, namespace, index_json, created_ms, order, expires_ms } = record;
  const fields: [string, string][] = index_json === null ? [] : Object.entries(JSON.parse(index_json));
  return [
    [...keys.list(kind, namespace), created_ms, order],
    ...fields.map((field) => [...keys.list(kind, namespace, field), created_ms, order]),
    ...(expires_ms === null ? [] : [keys.expiry(expires_ms, "record", part(kind), part(key))]),
  ];
}

/** Opens a database, and writes the version of its layout into a new one. `found` is 0 for a new one. */
export async function openKv(path: string | null): Promise<{ kv: Deno.Kv; found: number }> {
  if (typeof Deno.openKv !== "function") {
    throw new Error(
      'this process has no Deno KV: start it with --unstable-kv, or list "kv" under "unstable" in deno.json',
    );
  }
  const kv = await Deno.openKv(path ?? undefined);
  try {
    const { value } = await kv.get<number>(keys.version());
    if (value !== null && value > LAYOUT_VERSION) {
      throw new Error(
        `the database has version ${value}, and this program knows version ${LAYOUT_VERSION}: use the newer program`,
      );
    }
    if (value === null) await write(kv, (atomic) => atomic.set(keys.version(), LAYOUT_VERSION));
    return { kv, found: value ?? 0 };
  } catch (error) {
    kv.close();
    throw error;
  }
}

/** Attempts while others change the same keys, or another process locks the file. */
const ATTEMPTS = 100;
/** Longest pause between two attempts in milliseconds. */
const MAX_PAUSE_MS = 50;

/** Commits; resolves to false if a check failed, or another process writes to the same file at this moment. */
export async function tryCommit(atomic: Deno.AtomicOperation): Promise<boolean> {
  try {
    return (await atomic.commit()).ok;
  } catch (error) {
    if (error instanceof Error && /database is locked/i.test(error.message)) return false; // nothing was written
    throw error;
  }
}

/**
 * Calls `attempt` until it resolves to a result; `false` asks for another attempt.
 *
 * @throws {Error} after too many attempts.
 */
export async function repeat<Result>(attempt: () => Promise<Result | false>): Promise<Result> {
  for (let count = 1; count <= ATTEMPTS; count++) {
    const result = await attempt();
    if (result !== false) return result;
    // at random, so that two commits do not meet again
    const ms = Math.random() * Math.min(MAX_PAUSE_MS, 2 ** count);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
  throw new Error("Cannot write to the store: others change the same keys all the time");
}

/** Commits an atomic operation without checks, which `build` makes for each attempt. */
export async function write(kv: Deno.Kv, build: (atomic: Deno.AtomicOperation) => void): Promise<void> {
  await repeat(async () => {
    const atomic = kv.atomic();
    build(atomic);
    return await tryCommit(atomic);
  });
}
