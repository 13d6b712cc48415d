/**
 * Opens connections and sends the beginning of a request on each, which it never finishes. Prints one line
 * once all are open, then one JSON line once the server has closed all of them, or after `max_s` seconds:
 * {@link HalfOpen}.
 *
 * Arguments: host, port, connections, max_s.
 */

/** What became of the connections. */
export interface HalfOpen {
  readonly closed: number;
  /**
   * Seconds from the first connection until the server closed the last one, and until all of them were open.
   */
  readonly closed_after_s: number;
  readonly opened_after_s: number;
}

const [hostname = "127.0.0.1", port = "0", count = "1", max_s = "30"] = Deno.args;
const HALF = new TextEncoder().encode("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: appl");
/** Connections that are opened at the same time: fewer than the server's queue of new connections holds. */
const AT_ONCE = 64;

const start = performance.now();
const seconds = () => (performance.now() - start) / 1_000;
const open: Deno.TcpConn[] = [];
let left = Number(count);
await Promise.all(Array.from({ length: AT_ONCE }, async () => {
  while (left-- > 0) {
    const connection = await Deno.connect({ hostname, port: Number(port) });
    await connection.write(HALF);
    open.push(connection);
  }
}));
const opened_after_s = seconds();
write("open");

let closed = 0;
let closed_after_s = opened_after_s;
const closing = open.map(async (connection) => {
  const buffer = new Uint8Array(1_024);
  try {
    while (await connection.read(buffer) !== null); // an answer such as 408 is part of closing
  } catch {
    // reset
  }
  closed++;
  closed_after_s = seconds();
});
await Promise.race([
  Promise.all(closing),
  new Promise((resolve) => setTimeout(resolve, Number(max_s) * 1_000)),
]);
const figures: HalfOpen = { closed, closed_after_s, opened_after_s };
write(JSON.stringify(figures));
Deno.exit();

function write(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
