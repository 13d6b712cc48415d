import {
  ChatRequest,
  ChatResponse,
  Message,
  textOf,
  toBlocks,
  toChatResponse,
  Usage,
} from "../../src/sdk/messages.ts";
import { assert, assertEquals, assertThrows } from "../assert.ts";

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

Deno.test("toChatResponse() reads a plain object with a list and usage", () => {
  const response = toChatResponse({
    content: [{ type: "text", text: "Hi" }],
    usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  });
  assertEquals(textOf(response.content), "Hi");
  assertEquals(response.usage, { input_tokens: 10, output_tokens: 5, total_tokens: 15, cost_usd: null });
  assert(!("tool_calls" in response));
});

Deno.test("toChatResponse() makes one text block of a text", () => {
  for (
    const given of ["Hi", { content: "Hi" }, { text: "Hi" }, {
      content_blocks: [{ type: "text", text: "Hi" }],
    }]
  ) {
    assertEquals(toChatResponse(given).content, [{ type: "text", text: "Hi" }]);
  }
});

Deno.test("toChatResponse() takes missing tool_calls from tool_call blocks", () => {
  const block = { type: "tool_call", id: "call_1", name: "f", input: { x: 1 } };
  assertEquals(plain(toChatResponse({ content: [block] }).tool_calls), [{
    id: "call_1",
    name: "f",
    arguments: { x: 1 },
  }]);
});

Deno.test("toChatResponse() calls parseToolCalls without calls and tool blocks", () => {
  const response = toChatResponse({ content: "<call/>" }, () => [{ id: "c", name: "f", input: {} }]);
  assertEquals(plain(response.tool_calls), [{ id: "c", name: "f", arguments: {} }]);
});

Deno.test("toChatResponse() prefers the response's own calls over its blocks", () => {
  const response = toChatResponse({
    content: [{ type: "tool_call", id: "b", name: "block", input: {} }],
    tool_calls: [{ id: "a", name: "own", arguments: {} }],
  }, () => {
    throw new Error("not asked");
  });
  assertEquals(response.tool_calls?.map((call) => call.name), ["own"]);
});

Deno.test("toChatResponse() keeps other fields and block kinds it does not know", () => {
  const given = { content: [{ type: "hologram", depth: 3 }], finish_reason: "stop", service_tier: "x" };
  assertEquals(plain(toChatResponse(given)), given);
});

Deno.test("toChatResponse() refuses a value that is not a response", () => {
  for (const given of [null, undefined, 4, [], true]) {
    assertThrows(() => toChatResponse(given), TypeError, "must be an object");
  }
});

Deno.test("Usage() refuses a cost that is a number, keeps a decimal text and null", () => {
  assertThrows(
    () => Usage({ cost_usd: 0.1 }),
    TypeError,
    "must be a decimal string or null: received number",
  );
  assertThrows(() => Usage({ cost_usd: "1e-3" }), TypeError);
  assertEquals(JSON.parse(JSON.stringify(Usage({ cost_usd: "0.10" }))).cost_usd, "0.10");
  assertEquals(Usage({ cost_usd: null }).cost_usd, null);
});

Deno.test("Usage() fills in missing numbers and refuses invalid ones", () => {
  assertEquals(Usage({ input_tokens: 3, output_tokens: 4 }).total_tokens, 7);
  assertEquals(Usage({ input_tokens: 3, output_tokens: 4, cache_write_tokens: 5 }).total_tokens, 12);
  assertEquals(Usage({ input_tokens: -3, output_tokens: NaN, total_tokens: "9" }), {
    input_tokens: 0,
    output_tokens: 0,
    total_tokens: 0,
    cost_usd: null,
  });
});

Deno.test("toBlocks() and textOf() agree on text", () => {
  assertEquals(toBlocks(""), []);
  assertEquals(textOf(toBlocks("a")), "a");
  assertEquals(
    textOf([{ type: "text", text: "a" }, { type: "thinking", thinking: "t" }, { type: "text", text: "b" }]),
    "a\n\nb",
  );
  assertEquals(textOf(undefined), "");
});

Deno.test("Message() refuses an unknown role, content of neither kind, and a result that answers no call", () => {
  assertThrows(() => Message({ role: "robot" as never, content: "" }), TypeError, 'received "robot"');
  assertThrows(
    () => Message({ role: "user", content: 5 as never }),
    TypeError,
    "content must be text or a list",
  );
  assertThrows(() => Message({ role: "user", content: [{} as never] }), TypeError, "content must be");
  assertThrows(() => Message({ role: "tool", content: "x" }), TypeError, "tool_call_id");
  assertEquals(Message({ role: "user", content: "x", custom: 1 }), { role: "user", content: "x", custom: 1 });
});

Deno.test("ChatRequest() checks every message and every tool's name", () => {
  assertThrows(() => ChatRequest({ messages: "x" as never }), TypeError, "messages must be a list");
  assertThrows(() => ChatRequest({ messages: [{ role: "x" as never, content: "" }] }), TypeError, "role");
  assertThrows(
    () => ChatRequest({ messages: [], tools: [{ name: "", parameters: {} }] }),
    TypeError,
    "tools[].name",
  );
  const request = ChatRequest({ messages: [{ role: "user", content: "x" }], max_output_tokens: 5 });
  assertEquals(request, { messages: [{ role: "user", content: "x" }], max_output_tokens: 5 });
});

Deno.test("ChatResponse() reads what toChatResponse reads", () => {
  assertEquals(ChatResponse({ content: "Hi" }), toChatResponse("Hi"));
});
