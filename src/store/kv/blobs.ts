/**
 * Texts of any size in Deno KV, whose values have at most 64 KiB and whose atomic operations have at most 800 KiB. A small
 * text is part of the value that contains it. A large one is written ahead as a blob in several values; the commit that
 * refers to it stays small and atomic. A blob that no commit refers to is deleted after an hour.
 */
import { type Content, type GarbageValue, getAll, keys, write } from "./database.ts";

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
