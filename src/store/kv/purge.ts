/** Deletes what has expired, and the parts of what was deleted: each minute, and in a vacuum. */
import { commit, isExpired } from "./commit.ts";
import {
  deleteAll,
  type GarbageValue,
  keys,
  type LogValue,
  type RecordValue,
  type SegmentValue,
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
    const [first = "", second = ""] = value;
    const is_record = key[3] === "record";
    const target = is_record ? keys.record(first, second) : keys.log(first);
    const { value: found } = await kv.get<RecordValue | LogValue>(target);
    if (found && isExpired(found, now_ms)) {
      const change = is_record ? { delete: { kind: first, key: second } } : { deleteLog: first };
      await commit(kv, [change], undefined, () => now_ms);
    } else await write(kv, (atomic) => atomic.delete(key));
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

async function deleteSegments(kv: Deno.Kv, id: string): Promise<void> {
  for await (const { value: { content } } of kv.list<SegmentValue>({ prefix: keys.segments(id) })) {
    if (!(content instanceof Uint8Array)) await deleteAll(kv, keys.blobs(content.blob));
  }
  await deleteAll(kv, keys.segments(id));
}
