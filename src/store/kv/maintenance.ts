/** Maintenance of a KV store, and the purge that each store does. Works beside running servers. */
import type { Maintenance, StoreState } from "../store.ts";
import {
  type Content,
  deleteAll,
  type GarbageValue,
  keys,
  LAYOUT_VERSION,
  type LogValue,
  openKv,
  readContent,
  type RecordValue,
  type SegmentValue,
  write,
} from "./database.ts";
import { commit, isExpired } from "./commit.ts";

/** Opens a database for maintenance. @throws {Error} as the store does. */
export async function openKvMaintenance(path: string | null): Promise<Maintenance> {
  const { kv, found } = await openKv(path);
  return {
    opened_version: found,
    state: () => stateOf(kv),
    vacuum: (now_ms) => purge(kv, now_ms, true),
    close: () => Promise.resolve(kv.close()),
  };
}

/** Reads everything. `bytes` is the size of the JSON, because Deno KV does not say what it uses on disk. */
async function stateOf(kv: Deno.Kv): Promise<StoreState> {
  const state: StoreState = {
    problems: [],
    version: LAYOUT_VERSION,
    records: 0,
    logs: 0,
    entries: 0,
    bytes: 0,
  };
  const measure = async (content: Content): Promise<string | null> => {
    const text = await readContent(kv, content);
    state.bytes += text === null ? 0 : new TextEncoder().encode(text).length;
    return text;
  };
  for await (const { key, value } of kv.list<RecordValue>({ prefix: keys.records() })) {
    state.records++;
    if (await measure(value.content) !== null) continue;
    const { value: now } = await kv.get<RecordValue>(key);
    if (now?.version === value.version) {
      state.problems.push(`the value of record ${value.key} is not complete`);
    }
  }
  for await (const { key, value: log } of kv.list<LogValue>({ prefix: keys.logs() })) {
    state.logs++;
    let seq = 0;
    for await (const segment of kv.list<SegmentValue>({ prefix: keys.segments(log.id) })) {
      if (segment.value.last_seq > log.last_seq) break; // appended since the head was read
      const text = await measure(segment.value.content);
      const count: number = text === null ? 0 : JSON.parse(text).length;
      if (segment.key.at(-1) === seq + 1 && segment.value.last_seq === seq + count) seq += count;
    }
    state.entries += seq;
    if (seq === log.last_seq || (await kv.get<LogValue>(key)).value?.id !== log.id) continue;
    state.problems.push(`log ${String(key.at(-1))} has ${seq} of ${log.last_seq} entries`);
  }
  return state;
}

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
