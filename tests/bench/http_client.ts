/**
 * A small HTTP/1.1 client: repeats a request over a few persistent connections and counts complete responses.
 * It uses raw TCP, because `fetch` would cost more than the measured request.
 *
 * Arguments: a file with the request's bytes, host, port, requests, connections. Writes one JSON line:
 * {@link Sent}.
 */
import { ResponseReader } from "./response_reader.ts";

/** What was sent. */
export interface Sent {
  /** Milliseconds from the first request to the last answer. */
  readonly ms: number;
  /** Status → answers. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Milliseconds from a request to the end of its answer: the middle and the 99th percentile. */
  readonly p50_ms: number;
  readonly p99_ms: number;
}

const [path = "", hostname = "127.0.0.1", port = "0", requests = "1", connections = "1"] = Deno.args;
const request = await Deno.readFile(path);
let left = Number(requests);
const statuses: Record<string, number> = {};
const latencies: number[] = [];

const start = performance.now();
await Promise.all(Array.from({ length: Number(connections) }, run));
const ms = performance.now() - start;
latencies.sort((a, b) => a - b);
const at = (part: number) => latencies[Math.ceil(latencies.length * part) - 1] ?? NaN;
const sent: Sent = { ms, statuses, p50_ms: at(0.5), p99_ms: at(0.99) };
Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(sent)}\n`));

async function run(): Promise<void> {
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const reader = new ResponseReader(connection);
  while (left-- > 0) {
    const start = performance.now();
    for (let sent = 0; sent < request.length;) sent += await connection.write(request.subarray(sent));
    const status = await reader.next();
    latencies.push(performance.now() - start);
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
}
