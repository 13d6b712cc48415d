/** An MCP server over standard input and output: the shelf of mcp.yaml. It needs no permission. */

const SHELF = ["Persuasion", "Middlemarch", "Emma"];

const TITLE = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };

/** Tool → what a client sees of it, and what it does. */
const TOOLS: Record<string, { definition: object; call(input: { title?: string }): string }> = {
  find: {
    definition: {
      description: "Returns whether a book is on the shelf",
      inputSchema: TITLE,
      annotations: { readOnlyHint: true },
    },
    call: ({ title = "" }) => SHELF.includes(title) ? `${title} is on the shelf.` : `There is no ${title}.`,
  },
  reserve: {
    definition: { description: "Reserves a book", inputSchema: TITLE },
    call: ({ title }) => `${title} is reserved.`,
  },
};

function answer(method: string, params: { name?: string; arguments?: object; protocolVersion?: string }) {
  const tool = TOOLS[params.name ?? ""];
  if (method === "initialize") {
    const { protocolVersion } = params;
    return {
      protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "library", version: "1.0.0" },
    };
  }
  if (method === "tools/list") {
    return { tools: Object.entries(TOOLS).map(([name, { definition }]) => ({ name, ...definition })) };
  }
  if (method !== "tools/call" || !tool) return undefined;
  return { content: [{ type: "text", text: tool.call(params.arguments ?? {}) }] };
}

let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const { id, method, params = {} } = JSON.parse(line);
    if (id === undefined) continue; // a notification
    const result = answer(method, params);
    const reply = result ? { result } : { error: { code: -32601, message: `Unknown: ${method}` } };
    await Deno.stdout.write(
      new TextEncoder().encode(`${JSON.stringify({ jsonrpc: "2.0", id, ...reply })}\n`),
    );
  }
}
