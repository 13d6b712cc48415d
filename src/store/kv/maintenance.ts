/** Maintenance of a KV store, beside running servers. */
import { type Maintenance, type StoreState, wrongLog } from "../store.ts";
import {
  type Content,
  keys,
  LAYOUT_VERSION,
  type LogValue,
  openKv,
  readContent,
  type RecordValue,
  type SegmentValue,
} from "./database.ts";
import { purge } from "./purge.ts";

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
    state.problems.push(wrongLog({ name: key.at(-1), last_seq: log.last_seq, count: seq }));
  }
  return state;
}
