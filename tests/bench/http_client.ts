/**
 * A small HTTP/1.1 client: repeats a request over a few persistent connections and counts complete responses. It uses raw TCP,
 * because `fetch` would cost more than the measured request.
 *
 * Arguments: a file with the request's bytes, host, port, requests, connections. Writes one JSON line.
 */
import { ResponseReader } from "./response_reader.ts";

const [path = "", hostname = "127.0.0.1", port = "0", requests = "1", connections = "1"] = Deno.args;
const request = await Deno.readFile(path);
let left = Number(requests);
const statuses: Record<string, number> = {};

const start = performance.now();
await Promise.all(Array.from({ length: Number(connections) }, run));
const ms = performance.now() - start;
Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify({ ms, statuses })}\n`));

async function run(): Promise<void> {
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const reader = new ResponseReader(connection);
  while (left-- > 0) {
    for (let sent = 0; sent < request.length;) sent += await connection.write(request.subarray(sent));
    const status = await reader.next();
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
}
