/**
 * A loopback server that writes HTTP/1.1 responses byte by byte, and breaks them off where a test asks for
 * it.
 */
import type { JsonObject } from "preamp";

/** How a response ends: complete, connection closed in the middle, or silence until the client leaves. */
export type Ending = "complete" | "cut" | "stall";

/** One response. */
export interface Reply {
  /** Absent: the connection is closed before any response. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Parts of the body, each written on its own. A function is called for parts until the client leaves. */
  readonly body?: readonly (string | Uint8Array)[] | (() => string);
  readonly end?: Ending;
}

/** A running server. */
export interface RawServer extends AsyncDisposable {
  /** Its address without a trailing slash. */
  readonly url: string;
  /** JSON bodies of the requests. */
  readonly requests: JsonObject[];
  /** Head of each request: its first line and its headers. */
  readonly heads: string[];
}

const encoder = new TextEncoder();

/**
 * Starts a server that gives each request the next reply, and the last one again when there are no more.
 *
 * @param onStall Called when a reply stalls.
 */
export function rawServer(replies: readonly Reply[], onStall: () => void = () => {}): RawServer {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const requests: JsonObject[] = [];
  const heads: string[] = [];
  const open = new Set<Deno.Conn>();
  async function serve(connection: Deno.Conn): Promise<void> {
    open.add(connection);
    try {
      const { head, body } = await readRequest(connection);
      heads.push(head);
      requests.push(body === "" ? {} : JSON.parse(body));
      const reply = replies[Math.min(requests.length, replies.length) - 1]!; // a test gives at least one
      await write(connection, reply, onStall);
    } catch {
      // the client left
    } finally {
      open.delete(connection);
      close(connection);
    }
  }
  const serving = (async () => {
    const all: Promise<void>[] = [];
    for await (const connection of listener) all.push(serve(connection));
    await Promise.all(all);
  })();
  return {
    url: `http://127.0.0.1:${listener.addr.port}`,
    requests,
    heads,
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const connection of open) close(connection);
      await serving;
    },
  };
}

function close(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // it is closed already
  }
}

async function write(connection: Deno.Conn, reply: Reply, onStall: () => void): Promise<void> {
  const { status, headers = {}, body = [], end = "complete" } = reply;
  if (status === undefined) {
    if (end !== "stall") return;
    onStall();
    return await untilClosed(connection);
  }
  const lines = Object.entries({ ...headers, "transfer-encoding": "chunked", "connection": "close" });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  await writeAll(connection, encoder.encode(`HTTP/1.1 ${status} Any\r\n${head}\r\n`));
  if (typeof body === "function") { for (;;) await writeChunk(connection, body()); }
  for (const part of body) {
    await writeChunk(connection, part);
    await new Promise((resolve) => setTimeout(resolve, 0)); // the parts arrive one by one
  }
  if (end === "complete") return await writeAll(connection, encoder.encode("0\r\n\r\n"));
  if (end === "cut") return;
  onStall();
  await untilClosed(connection);
}

async function writeChunk(connection: Deno.Conn, part: string | Uint8Array): Promise<void> {
  const bytes = typeof part === "string" ? encoder.encode(part) : part;
  if (bytes.length === 0) return;
  const [size, end] = [encoder.encode(`${bytes.length.toString(16)}\r\n`), encoder.encode("\r\n")];
  const chunk = new Uint8Array(size.length + bytes.length + end.length);
  chunk.set(size);
  chunk.set(bytes, size.length);
  chunk.set(end, size.length + bytes.length);
  await writeAll(connection, chunk); // in one call: some tests write thousands
}

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) written += await connection.write(bytes.subarray(written));
}

async function untilClosed(connection: Deno.Conn): Promise<void> {
  const buffer = new Uint8Array(1024);
  while (await connection.read(buffer) !== null);
}

async function readRequest(connection: Deno.Conn): Promise<{ head: string; body: string }> {
  let bytes = new Uint8Array();
  const buffer = new Uint8Array(65_536);
  for (;;) {
    const text = new TextDecoder("latin1").decode(bytes);
    const end = text.indexOf("\r\n\r\n");
    const length = Number(/^content-length: *(\d+)/im.exec(text)?.[1] ?? 0);
    if (end !== -1 && bytes.length >= end + 4 + length) {
      return {
        head: text.slice(0, end),
        body: new TextDecoder().decode(bytes.subarray(end + 4, end + 4 + length)),
      };
    }
    const count = await connection.read(buffer);
    if (count === null) throw new Error("the client left");
    const joined = new Uint8Array(bytes.length + count);
    joined.set(bytes);
    joined.set(buffer.subarray(0, count), bytes.length);
    bytes = joined;
  }
}
