/**
 * A database of Deno KV: how it is opened and written, its keys, its values and their texts. Every key
 * begins with {@link ROOT}. Lists are read from index keys, which sort by age: Deno KV orders numbers in
 * keys. Values have at most 64 KiB and atomic operations at most 800 KiB: a small text is part of the
 * value that contains it. A large one is written ahead as a blob in several values; the commit that refers
 * to it stays small and atomic. A blob that no commit refers to is deleted after an hour.
 */
import { createHash } from "node:crypto";
import { errorMessage, PreampError } from "../../sdk/errors.ts";

const ROOT = "preamp";

/** Version of the keys and values that this program reads and writes. */
export const LAYOUT_VERSION = 1;

/** Bytes of a text, or the blob that contains them. */
export type Content = Uint8Array<ArrayBuffer> | { readonly blob: string; readonly parts: number };

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

/**
 * The head of a log. Its entries are under `id`, so that a log of the same name can begin while they are
 * deleted.
 */
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
export const READS = 10;

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

/**
 * Commits; resolves to false if a check failed, or another process writes to the same file at this moment.
 *
 * @throws {PreampError} `storage_full` if the disk is full or read-only.
 */
export async function tryCommit(atomic: Deno.AtomicOperation): Promise<boolean> {
  try {
    return (await atomic.commit()).ok;
  } catch (error) {
    const message = errorMessage(error);
    if (/database is locked/i.test(message)) return false; // nothing was written
    if (!/disk is full|readonly database/i.test(message)) throw error;
    throw new PreampError("storage_full", "Cannot write to the store: its disk is full or read-only", {
      cause: error,
    });
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

/** Largest text inside a value: the value has other fields too. */
const INLINE_BYTES = 48 * 1024;
/** Largest sum of texts inside the values of one atomic operation. */
const INLINE_TOTAL = 400 * 1024;
const PART_BYTES = 60 * 1024;
/** Parts of one atomic operation. */
const PARTS = 12;
/** Deleted keys of one atomic operation. */
const DELETES = 200;

/** The texts of one commit. */
export class Contents {
  readonly #kv: Deno.Kv;
  readonly #staged: string[] = [];
  #inline_bytes = 0;

  constructor(kv: Deno.Kv) {
    this.#kv = kv;
  }

  /** Returns a text for a value, after writing it ahead as a blob if it is large. */
  async add(text: string, now_ms: number): Promise<Content> {
    const bytes = new TextEncoder().encode(text);
    if (bytes.length <= INLINE_BYTES && this.#inline_bytes + bytes.length <= INLINE_TOTAL) {
      this.#inline_bytes += bytes.length;
      return bytes;
    }
    const blob = crypto.randomUUID();
    this.#staged.push(blob);
    await write(this.#kv, (atomic) => atomic.set(keys.pending(blob), now_ms));
    const parts = Math.ceil(bytes.length / PART_BYTES);
    for (let first = 0; first < parts; first += PARTS) {
      const last = Math.min(first + PARTS, parts);
      await write(this.#kv, (atomic) => {
        for (let part = first; part < last; part++) {
          atomic.set(keys.blob(blob, part), bytes.slice(part * PART_BYTES, (part + 1) * PART_BYTES));
        }
      });
    }
    return { blob, parts };
  }

  /** Makes the blobs permanent with an atomic operation. */
  keep(atomic: Deno.AtomicOperation): void {
    for (const blob of this.#staged) atomic.delete(keys.pending(blob));
  }

  /** Deletes the blobs after a commit that failed. One whose answer was lost may have made them permanent. */
  async discard(): Promise<void> {
    for (const blob of this.#staged) {
      const { value } = await this.#kv.get(keys.pending(blob));
      if (value === null) continue;
      await deleteAll(this.#kv, keys.blobs(blob));
      await write(this.#kv, (atomic) => atomic.delete(keys.pending(blob)));
    }
  }
}

/** Resolves to the text of a content; null if its blob was deleted meanwhile. */
export async function readContent(kv: Deno.Kv, content: Content): Promise<string | null> {
  if (content instanceof Uint8Array) return new TextDecoder().decode(content);
  const { blob, parts } = content;
  const decoder = new TextDecoder();
  let text = "";
  for (
    const { value } of await getAll(
      kv,
      Array.from({ length: parts }, (_, part) => keys.blob(blob, part)),
    )
  ) {
    if (!(value instanceof Uint8Array)) return null;
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

/** Adds the deletion of a content's blob to an atomic operation. */
export function dropContent(atomic: Deno.AtomicOperation, content: Content, at_ms: number): void {
  if (content instanceof Uint8Array) return;
  atomic.set(keys.garbage(content.blob), { what: "blob", at_ms } satisfies GarbageValue);
}

/** Deletes every key below a prefix, in parts. */
export async function deleteAll(kv: Deno.Kv, prefix: Deno.KvKey): Promise<void> {
  let found: Deno.KvKey[] = [];
  const deleteFound = () =>
    write(kv, (atomic) => {
      for (const key of found) atomic.delete(key);
    });
  for await (const { key } of kv.list({ prefix }, { batchSize: DELETES })) {
    if (found.push(key) < DELETES) continue;
    await deleteFound();
    found = [];
  }
  if (found.length > 0) await deleteFound();
}
