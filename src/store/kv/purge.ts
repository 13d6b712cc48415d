/** Deletes what has expired, and the parts of what was deleted: each minute, and in a vacuum. */
import { isExpired } from "./commit.ts";
import {
  deleteAll,
  dropContent,
  type GarbageValue,
  indexKeys,
  keys,
  type LogValue,
  type RecordValue,
  repeat,
  type SegmentValue,
  tryCommit,
  write,
} from "./database.ts";

/** Milliseconds that a reader may still need the parts of something deleted. */
const KEEP_DELETED_MS = 60_000;
/** Milliseconds after which a commit that wrote a blob ahead has failed. */
const KEEP_PENDING_MS = 3_600_000;

/**
 * Deletes what expired before `now_ms`, milliseconds since the epoch; `all`: and all parts of what was
 * deleted.
 */
export async function purge(kv: Deno.Kv, now_ms: number, all = false): Promise<void> {
  for await (
    const { key, value } of kv.list<string[]>({ prefix: keys.expiry(), end: keys.expiry(now_ms + 1) })
  ) {
    await repeat(() => deleteExpired(kv, key, value, now_ms));
  }
  for await (const { key, value } of kv.list<GarbageValue>({ prefix: keys.garbage() })) {
    if (!all && value.at_ms > now_ms - KEEP_DELETED_MS) continue;
    const id = String(key.at(-1));
    if (value.what === "log") await deleteSegments(kv, id);
    else await deleteAll(kv, keys.blobs(id));
    await write(kv, (atomic) => atomic.delete(key));
  }
  for await (const { key, value: at_ms } of kv.list<number>({ prefix: keys.pending() })) {
    if (at_ms > now_ms - KEEP_PENDING_MS) continue;
    await deleteAll(kv, keys.blobs(String(key.at(-1))));
    await write(kv, (atomic) => atomic.delete(key));
  }
}

/**
 * Deletes a key of the index of what expires, and what it names, if that has expired; resolves to false if
 * another commit changed it meanwhile.
 */
async function deleteExpired(
  kv: Deno.Kv,
  index: Deno.KvKey,
  [first = "", second = ""]: string[],
  now_ms: number,
): Promise<boolean> {
  const target = index[3] === "record" ? keys.record(first, second) : keys.log(first);
  const found = await kv.get<RecordValue | LogValue>(target);
  const atomic = kv.atomic().check(found).delete(index);
  if (found.value && isExpired(found.value, now_ms)) {
    atomic.delete(target);
    if ("last_seq" in found.value) {
      atomic.set(keys.garbage(found.value.id), { what: "log", at_ms: now_ms } satisfies GarbageValue);
    } else {
      dropContent(atomic, found.value.content, now_ms);
      for (const key of indexKeys(first, found.value)) atomic.delete(key);
    }
  }
  return await tryCommit(atomic);
}

async function deleteSegments(kv: Deno.Kv, id: string): Promise<void> {
  for await (const { value: { content } } of kv.list<SegmentValue>({ prefix: keys.segments(id) })) {
    if (!(content instanceof Uint8Array)) await deleteAll(kv, keys.blobs(content.blob));
  }
  await deleteAll(kv, keys.segments(id));
}
