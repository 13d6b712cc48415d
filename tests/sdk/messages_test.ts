import * as fc from "fast-check";
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

Deno.test("Usage() adds up: input and output are the total, and input includes what caches read and wrote", () => {
  const tokens = fc.option(fc.oneof(fc.nat(1000), fc.constantFrom(-1, NaN, "7")), { nil: undefined });
  const names = ["input", "output", "total", "cache_read", "cache_write"].map((name) => `${name}_tokens`);
  const stated = fc.record(Object.fromEntries(names.map((name) => [name, tokens])));
  fc.assert(fc.property(stated, (fields) => {
    const { input_tokens, output_tokens, total_tokens, ...usage } = Usage(fields);
    const { cache_read_tokens = 0, cache_write_tokens = 0 } = usage;
    assertEquals(input_tokens + output_tokens, total_tokens);
    assertEquals(cache_read_tokens + cache_write_tokens <= input_tokens, true);
    for (
      const [name, least] of [["input", input_tokens], ["output", output_tokens], ["total", total_tokens]]
    ) {
      const value = fields[`${name}_tokens`];
      if (typeof value === "number" && value > 0) assertEquals(Number(least) >= value, true);
    }
  }));
});

Deno.test("Usage() reads cache tokens that are stated beside the input", () => {
  const inputOf = (fields: object) => Usage({ input_tokens: 100, output_tokens: 10, ...fields }).input_tokens;
  assertEquals(inputOf({ cache_read_tokens: 60, cache_write_tokens: 30 }), 100);
  assertEquals(inputOf({ cache_read_tokens: 60, cache_write_tokens: 30, total_tokens: 140 }), 130);
  assertEquals(inputOf({ cache_read_tokens: 80, cache_write_tokens: 30 }), 130);
  assertEquals(inputOf({ cache_read_tokens: 500, cache_write_tokens: 30 }), 630);
});

Deno.test("Usage() fills in missing numbers and refuses invalid ones", () => {
  assertEquals(Usage({ input_tokens: 3, output_tokens: 4 }).total_tokens, 7);
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
