/**
 * Reads many live streams at once over raw connections and checks every event. Arguments: a file with the
 * request's bytes, host, port, streams, deltas of each. Writes one JSON line: {@link Read}.
 */
import { ResponseReader } from "./response_reader.ts";

/** What arrived. */
export interface Read {
  /** Marks of all streams that arrived, and those that did not. */
  readonly marks: number;
  readonly lost: number;
  /** Marks after a later one, and those that arrived twice. */
  readonly reordered: number;
  /** Events whose id does not follow the one before it by one. */
  readonly gaps: number;
  /** Milliseconds from the making of a mark to its arrival. */
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
}

const [path = "", hostname = "127.0.0.1", port = "0", streams = "1", deltas = "1"] = Deno.args;
const request = await Deno.readFile(path);
const latencies: number[] = [];
let [lost, reordered, gaps] = [0, 0, 0];

await Promise.all(Array.from({ length: Number(streams) }, readStream));
latencies.sort((a, b) => a - b);
const at = (part: number) => (latencies[Math.ceil(latencies.length * part) - 1] ?? NaN) / 1_000;
const read: Read = {
  marks: latencies.length,
  lost,
  reordered,
  gaps,
  p50_ms: at(0.5),
  p99_ms: at(0.99),
  max_ms: at(1),
};
Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(read)}\n`));

async function readStream(): Promise<void> {
  using connection = await Deno.connect({ hostname, port: Number(port) });
  for (let sent = 0; sent < request.length;) sent += await connection.write(request.subarray(sent));
  let [next, seq, rest] = [0, 0, ""];
  for await (const chunk of new ResponseReader(connection).chunks()) {
    const now_us = (performance.timeOrigin + performance.now()) * 1_000;
    const frames = (rest + chunk).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const id = /^id: (\d+)$/m.exec(frame)?.[1];
      if (id === undefined) continue; // a comment, or the time to wait before a reconnect
      if (Number(id) !== seq + 1) gaps++;
      seq = Number(id);
      if (!/^event: content_block:delta$/m.test(frame)) continue;
      for (const [, index, made_us] of frame.matchAll(/(\d+)@(\d+);/g)) {
        latencies.push(now_us - Number(made_us));
        if (Number(index) < next) reordered++;
        else {
          lost += Number(index) - next;
          next = Number(index) + 1;
        }
      }
    }
  }
  lost += Number(deltas) - next;
}
