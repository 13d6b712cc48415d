/** An MCP server of the new protocol on loopback. */
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "preamp";

/** Calls `use` with the address of a server of the new protocol, and the requests that it received. */
export async function onWebServer(use: (url: string, requests: Request[]) => Promise<void>): Promise<void> {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "web", version: "1.0.0" });
    server.registerTool(
      "sum",
      { description: "Adds", inputSchema: z.object({ a: z.number(), b: z.number() }) },
      ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }),
    );
    server.registerTool("headers", {}, (context) => ({
      content: [{ type: "text", text: context.http?.req?.headers.get("authorization") ?? "none" }],
    }));
    server.registerTool("fail", {}, () => ({ content: [{ type: "text", text: "No." }], isError: true }));
    server.registerTool("big", {}, () => ({ content: [{ type: "text", text: "x".repeat(200_000) }] }));
    server.registerTool("picture", {}, () => ({
      content: [{ type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" }],
    }));
    return server;
  });
  const requests: Request[] = [];
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    requests.push(request);
    const { pathname } = new URL(request.url);
    return pathname === "/moved"
      ? Response.redirect(new URL("/mcp", request.url), 307)
      : handler.fetch(request);
  });
  try {
    await use(`http://127.0.0.1:${server.addr.port}`, requests);
  } finally {
    await handler.close();
  }
}
