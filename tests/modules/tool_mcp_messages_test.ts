/** What is read of a server's messages: whatever it sends, the client accepts, and good items stay. */
import {
  Client,
  type JSONRPCMessage,
  type PriorDiscovery,
  type Transport,
} from "@modelcontextprotocol/client";
import fc from "fast-check";
import type { JsonObject } from "preamp";
import { eventsOf, linesOf } from "../../modules/tool-mcp/lines.ts";
import { readMessages, type RequestId } from "../../modules/tool-mcp/messages.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../assert.ts";
import { HELLO } from "../support/odd_mcp_server.ts";

const LEGACY: PriorDiscovery = { kind: "legacy" };
const MODERN: PriorDiscovery = {
  kind: "modern",
  discover: {
    supportedVersions: ["2026-07-28"],
    capabilities: { tools: {}, resources: {}, prompts: {} },
    ttlMs: 0,
    cacheScope: "private",
  },
};

/** Answers every request with the same result, as it was read. */
class Answering implements Transport {
  onmessage?: NonNullable<Transport["onmessage"]>;
  result: unknown;
  start = () => Promise.resolve();
  close = () => Promise.resolve();
  send(message: JSONRPCMessage): Promise<void> {
    if (!("id" in message) || !("method" in message)) return Promise.resolve();
    const { id, method } = message;
    const result = method === "initialize"
      ? { protocolVersion: "2025-11-25", capabilities: { tools: true, prompts: {}, resources: {} } }
      : this.result;
    const [read] = readMessages(
      JSON.stringify({ jsonrpc: "2.0", id, result }),
      new Map([[id as RequestId, method]]),
    );
    this.onmessage?.(read as unknown as JSONRPCMessage);
    return Promise.resolve();
  }
}

async function connected(prior: PriorDiscovery): Promise<{ client: Client; transport: Answering }> {
  const transport = new Answering();
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport, { prior });
  return { client, transport };
}

type Asked = (client: Client) => Promise<unknown>;

/** Method → its request, the field with its items, and a good item. */
const METHODS: Readonly<Record<string, { ask: Asked; key: string; good: JsonObject }>> = {
  "tools/list": { ask: (client) => client.request({ method: "tools/list" }), key: "tools", good: HELLO },
  "resources/list": {
    ask: (client) => client.request({ method: "resources/list" }),
    key: "resources",
    good: { uri: "file:///good", name: "good", description: "A resource", mimeType: "text/plain" },
  },
  "resources/templates/list": {
    ask: (client) => client.request({ method: "resources/templates/list" }),
    key: "resourceTemplates",
    good: { uriTemplate: "file:///{good}", name: "good" },
  },
  "prompts/list": {
    ask: (client) => client.request({ method: "prompts/list" }),
    key: "prompts",
    good: { name: "good", arguments: [{ name: "who", required: true }] },
  },
  "tools/call": {
    ask: (client) => client.request({ method: "tools/call", params: { name: "hello" } }),
    key: "content",
    good: { type: "text", text: "good" },
  },
  "resources/read": {
    ask: (client) => client.request({ method: "resources/read", params: { uri: "file:///good" } }),
    key: "contents",
    good: { uri: "file:///good", text: "good" },
  },
  "prompts/get": {
    ask: (client) => client.request({ method: "prompts/get", params: { name: "good" } }),
    key: "messages",
    good: { role: "assistant", content: { type: "text", text: "good" } },
  },
};

/** Any JSON, often with the names of the protocol's fields. */
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(null, true, 0, -1.5, "", "text", "image", "object", "iVBORw0KGgo=", "a\u0000b"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(
      fc.constantFrom(
        ...[
          "name",
          "type",
          "text",
          "data",
          "mimeType",
          "uri",
          "uriTemplate",
          "resource",
          "blob",
          "role",
          "content",
        ],
        ...[
          "inputSchema",
          "outputSchema",
          "properties",
          "required",
          "annotations",
          "title",
          "description",
          "_meta",
        ],
        ...[
          "arguments",
          "icons",
          "size",
          "isError",
          "structuredContent",
          "nextCursor",
          "ttlMs",
          "cacheScope",
        ],
      ),
      tie("value"),
      { maxKeys: 5 },
    ),
  ),
})).value;

Deno.test("whatever a server answers, the client accepts it in both protocols, and the good items are in it", async () => {
  for (const prior of [LEGACY, MODERN]) {
    const { client, transport } = await connected(prior);
    for (const [method, { ask, key, good }] of Object.entries(METHODS)) {
      await fc.assert(
        fc.asyncProperty(json, fc.array(json, { maxLength: 4 }), fc.nat(4), async (fields, items, at) => {
          const odd = {
            ...(typeof fields === "object" && !Array.isArray(fields) ? fields : {}),
          } as JsonObject;
          transport.result = fields;
          await ask(client);
          const listed = items.toSpliced(at, 0, good);
          transport.result = { ...odd, [key]: listed };
          const found = (await ask(client) as JsonObject)[key] as JsonObject[];
          assert(
            found.some((item) => Object.entries(good).every(([name, value]) => equal(item[name], value))),
            `${method}: ${JSON.stringify(found)}`,
          );
        }),
        { numRuns: 60 },
      );
    }
  }
});

function equal(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

Deno.test("a tool in good form is read as it was sent", () => {
  const tool = {
    name: "sum",
    title: "Sum",
    description: "Adds",
    inputSchema: {
      $schema: "x",
      type: "object",
      properties: { a: { type: ["number", "null"] } },
      required: ["a"],
      $defs: {},
    },
    outputSchema: { type: "object", properties: {}, additionalProperties: false },
    annotations: { title: "Sum", readOnlyHint: true, idempotentHint: false },
  };
  const [message] = readMessages(
    JSON.stringify({ id: 1, result: { tools: [tool] } }),
    new Map([[1, "tools/list"]]),
  );
  assertEquals(message, {
    jsonrpc: "2.0",
    id: 1,
    result: { tools: [tool], ttlMs: 0, cacheScope: "private", resultType: "complete" },
  });
});

Deno.test("what is not an answer that someone waits for is left out", () => {
  const open = new Map<RequestId, string>([[1, "tools/call"], [2, "tools/call"]]);
  for (
    const text of [
      "Server started",
      "{}",
      "[]",
      "null",
      "7",
      '"a"',
      '{"id":3,"result":{}}',
      '{"result":{}}',
      "{".repeat(100),
    ]
  ) {
    assertEquals(readMessages(text, open), [], text);
  }
  assertEquals(readMessages('[{"id":"1","result":{}},{"id":2,"error":{"code":1,"message":"no"}}]', open), [
    { jsonrpc: "2.0", id: 1, result: { content: [], resultType: "complete" } },
    { jsonrpc: "2.0", id: 2, error: { code: 1, message: "no" } },
  ]);
});

Deno.test("deep, long and many: what is passed on stays small", () => {
  const answer = (method: string, result: string) => {
    const [message] = readMessages(`{"id":1,"result":${result}}`, new Map([[1, method]]));
    return message!.result as JsonObject;
  };
  const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
  assertEquals(
    (answer("tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object","x":${deep}}}]}`).tools as [])
      .length,
    0,
  );
  const { content: texts, structuredContent } = answer("tools/call", `{"structuredContent":{"x":${deep}}}`);
  assertEquals([(texts as JsonObject[])[0]!.type, structuredContent], ["text", undefined]);
  const tools = Array.from(
    { length: 700 },
    (_, index) => ({ name: `t${index}`, inputSchema: { type: "object" } }),
  );
  assertEquals((answer("tools/list", JSON.stringify({ tools })).tools as []).length, 500);
  const large = Array.from(
    { length: 100 },
    (_, index) => ({ name: `t${index}`, description: "x".repeat(60_000) }),
  );
  assert(JSON.stringify(answer("tools/list", JSON.stringify({ tools: large }))).length < 2_200_000);
  const images = Array.from(
    { length: 1_000 },
    () => ({ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }),
  );
  const { content } = answer("tools/call", JSON.stringify({ content: images })) as { content: JsonObject[] };
  assertEquals([content.length, content.at(-1)!.text], [
    201,
    "(800 further blocks are left out)",
  ]);
  const many = `{"content":[${"{},".repeat(1_000_000)}{}]}`;
  assertThrows(() => answer("tools/call", many), Error, "more than 1000000 objects and lists");
  const text = JSON.stringify({ content: [{ type: "text", text: '{"[\\"{'.repeat(400_000) }] });
  assertEquals((answer("tools/call", text).content as []).length, 1); // what is in a string does not count
});

/** Returns bytes cut at any place. */
function cut(text: string, places: readonly number[]): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  const ends = [...places.map((place) => place % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
  return ReadableStream.from(ends.slice(1).map((end, index) => bytes.slice(ends[index], end)));
}

Deno.test("lines and events are the same wherever a stream is cut", async () => {
  const text =
    '\uFEFF: comment\r\nevent: endpoint\ndata: /a\n\nid: 1\nretry: 250\ndata:\n\ndata: {"a":\r\ndata: "ö😀"}\n\ndata: last';
  await fc.assert(fc.asyncProperty(fc.array(fc.nat(200), { maxLength: 8 }), async (places) => {
    assertEquals(await Array.fromAsync(eventsOf(cut(text, places), 100)), [
      { event: "endpoint", data: "/a" },
      { event: "message", id: "1", retry_ms: 250, data: "" },
      { event: "message", data: '{"a":\n"ö😀"}' },
      { event: "message", data: "last" },
    ]);
    assertEquals(await Array.fromAsync(linesOf(cut("a\r\n\nb", places), 100)), ["a", "", "b"]);
  }));
});

Deno.test("a line or an event that is too long ends the stream", async () => {
  await assertRejects(
    () => Array.fromAsync(linesOf(cut("x".repeat(101), [50]), 100)),
    Error,
    "more than 100 bytes",
  );
  await assertRejects(
    () => Array.fromAsync(eventsOf(cut("data: 123456789\n".repeat(20), []), 100)),
    Error,
    "more than 100 bytes",
  );
  assertEquals((await Array.fromAsync(linesOf(cut(`${"x".repeat(100)}\n`.repeat(3), [7]), 100))).length, 3);
});
