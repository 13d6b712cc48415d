/** An MCP server over HTTP on loopback that behaves well, but where a test answers in its place. */
import type { JsonObject } from "preamp";

/** A message that the server received, and what it is about. */
export interface Received {
  readonly method: string;
  readonly id?: number | string;
  readonly params?: JsonObject;
  readonly request: Request;
}

/** Returns an answer in the place of the server; undefined: the server answers. */
export type Instead = (received: Received) => Response | undefined | Promise<Response | undefined>;

/** A tool of the server. */
export const HELLO: JsonObject = {
  name: "hello",
  description: "Says hello",
  inputSchema: { type: "object", properties: { name: { type: "string" } } },
};

/** Returns the answer to a message. */
export function result(id: Received["id"], value: unknown, headers: Record<string, string> = {}): Response {
  return Response.json({ jsonrpc: "2.0", id: id ?? null, result: value }, { headers });
}

/** Returns a stream of these bytes, which ends after them, is cut there, or stays open. */
export function stream(text: string, end: "ends" | "cut" | "stays" = "ends"): Response {
  const bytes = new TextEncoder().encode(text);
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      if (end !== "stays") controller.close();
    },
  });
  const headers = new Headers({ "content-type": "text/event-stream" });
  if (end === "cut") headers.set("content-length", String(bytes.length + 1)); // a byte that never comes
  return new Response(body, { headers });
}

/**
 * Calls `use` with the address of a server, and the methods that it received. Its tool `hello` counts its
 * calls; each `initialize` starts a session.
 */
export async function onOddServer(
  instead: Instead,
  use: (url: string, methods: string[]) => Promise<void>,
): Promise<void> {
  const methods: string[] = [];
  let calls = 0;
  let sessions = 0;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const { method, id, params } = request.method === "POST"
      ? await request.json()
      : { method: request.method, id: undefined, params: undefined };
    methods.push(method);
    const special = await instead({ method, id, params, request });
    if (special) return special;
    if (request.method !== "POST") return new Response(null, { status: 405 });
    if (id === undefined) return new Response(null, { status: 202 });
    switch (method) {
      case "initialize":
        return result(id, {
          protocolVersion: "2025-11-25",
          capabilities: { tools: {} },
          serverInfo: { name: "odd", version: "1" },
        }, { "mcp-session-id": `session-${++sessions}` });
      case "tools/list":
        return result(id, { tools: [HELLO] });
      case "tools/call":
        return result(id, { content: [{ type: "text", text: `call ${++calls}` }] });
    }
    return Response.json({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
  });
  try {
    await use(`http://127.0.0.1:${server.addr.port}/mcp`, methods);
  } finally {
    await server.shutdown();
  }
}
