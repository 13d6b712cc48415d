/** Deletes what has expired, and the parts of what was deleted. Any number of processes may do it at once. */
import type { GarbageValue, LogValue, RecordValue, SegmentValue } from "./keys.ts";
import { write } from "./atomic.ts";
import { deleteAll } from "./blobs.ts";
import { commit, isExpired } from "./commit.ts";
import { keys } from "./keys.ts";

/** Milliseconds that a reader may still need the parts of something deleted. */
const KEEP_DELETED_MS = 60_000;
/** Milliseconds after which a commit that wrote a blob ahead has failed. */
const KEEP_PENDING_MS = 3_600_000;

/** Deletes what expired before `now_ms`, milliseconds since the epoch; `all`: and all parts of what was deleted. */
export async function purge(kv: Deno.Kv, now_ms: number, all = false): Promise<void> {
  const now = () => now_ms;
  const expired = kv.list<string[]>({ prefix: keys.expiry(), end: keys.expiry(now_ms + 1) }, {
    batchSize: 100,
  });
  for await (const { key, value } of expired) {
    if (key[3] === "record") {
      const [kind = "", name = ""] = value;
      const { value: record } = await kv.get<RecordValue>(keys.record(kind, name));
      if (record && isExpired(record, now_ms)) {
        await commit(kv, [{ delete: { kind, key: name } }], undefined, now);
      } else await write(kv, (atomic) => atomic.delete(key));
    } else {
      const [name = ""] = value;
      const { value: log } = await kv.get<LogValue>(keys.log(name));
      if (log && isExpired(log, now_ms)) await commit(kv, [{ deleteLog: name }], undefined, now);
      else await write(kv, (atomic) => atomic.delete(key));
    }
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
