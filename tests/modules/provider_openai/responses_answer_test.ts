/** Answers of the Responses API: whole and streamed, through OpenAI's client. */
import { assertEquals } from "../../assert.ts";
import type { JsonObject } from "preamp";
import { joined, mounted } from "./kit.ts";
import {
  functionCall,
  outputMessage,
  reasoning,
  response,
  RESPONSE_USAGE,
  responseEvents,
  sse,
  streamOf,
} from "./wire.ts";

const CONFIG = { api: "responses" };
const ITEM = reasoning(["**Weighing** it", "Done: ünïcödé 🚀"], "gAAAAABo-encrypted");
const USAGE = {
  input_tokens: 36,
  output_tokens: 87,
  reasoning_tokens: 64,
  cache_read_tokens: 12,
  total_tokens: 123,
  cost_usd: "0.0004596",
};

/** Resolves to the whole and the streamed answer of the same output; both must be equal. */
async function both(output: readonly JsonObject[], fields: JsonObject = {}) {
  await using server = await mounted(
    ({ body }) => body.stream ? sse(streamOf(output, fields)) : Response.json(response(output, fields)),
    CONFIG,
  );
  const whole = await server.ask("Hi");
  const { answer, deltas } = await server.stream("Hi");
  assertEquals(answer, whole);
  return { answer, deltas };
}

Deno.test("an answer has thinking, text and calls, and keeps the encrypted reasoning", async () => {
  const output = [
    ITEM,
    outputMessage("I will add them.", { phase: "commentary" }),
    functionCall("call_a", "add", '{"a":1,"b":2}'),
    functionCall("call_b", "add", '{"a":3,"b":4}'),
  ];
  const { answer, deltas } = await both(output);
  const host = String(answer.content[0]!.provider);
  assertEquals({ ...answer, tool_calls: answer.tool_calls?.map((call) => ({ ...call })) }, {
    content: [
      ...["**Weighing** it", "Done: ünïcödé 🚀"].map((thinking) => ({
        type: "thinking",
        thinking,
        itemId: ITEM.id,
        reasoningEncryptedContent: "gAAAAABo-encrypted",
        provider: host,
      })),
      { type: "text", text: "I will add them.", phase: "commentary", provider: host },
      { type: "tool_call", id: "call_a", name: "add", input: { a: 1, b: 2 } },
      { type: "tool_call", id: "call_b", name: "add", input: { a: 3, b: 4 } },
    ],
    tool_calls: [
      { id: "call_a", name: "add", arguments: { a: 1, b: 2 } },
      { id: "call_b", name: "add", arguments: { a: 3, b: 4 } },
    ] as never,
    finish_reason: "tool_calls",
    model: "gpt-6.1-terra",
    usage: USAGE,
    metadata: { response_id: "resp_67ccd2bed1ec8190" },
  });
  assertEquals(joined(deltas), {
    0: "**Weighing** it",
    1: "Done: ünïcödé 🚀",
    2: "I will add them.",
    3: '{"a":1,"b":2}',
    4: '{"a":3,"b":4}',
  });
  assertEquals(
    deltas.filter(({ id }) => id).map((
      { block_index, block_type, id, name },
    ) => [block_index, block_type, id, name]),
    [[3, "tool_call", "call_a", "add"], [4, "tool_call", "call_b", "add"]],
  );
});

Deno.test("a refusal is text with the finish_reason content_filter", async () => {
  const { answer, deltas } = await both([
    outputMessage("", { content: [{ type: "refusal", refusal: "I cannot help with that." }] }),
  ]);
  assertEquals(answer.content, [{ type: "text", text: "I cannot help with that." }]);
  assertEquals(answer.finish_reason, "content_filter");
  assertEquals(joined(deltas), { 0: "I cannot help with that." });
});

Deno.test("an incomplete response has the finish_reason length or content_filter, and its text", async () => {
  for (const [reason, expected] of [["max_output_tokens", "length"], ["content_filter", "content_filter"]]) {
    const { answer } = await both([outputMessage("Once upon a", { status: "incomplete" })], {
      status: "incomplete",
      incomplete_details: { reason },
    });
    assertEquals([answer.finish_reason, answer.content], [expected, [{ type: "text", text: "Once upon a" }]]);
  }
});

Deno.test("arguments that are not a JSON object are kept for the loop's answer to the model", async () => {
  const { answer } = await both([functionCall("call_a", "add", '{"a": 1,')]);
  assertEquals(answer.content, [{ type: "tool_call", id: "call_a", name: "add", input: {} }]);
  assertEquals(answer.tool_calls?.[0]?.invalid_arguments, '{"a": 1,');
});

Deno.test("items of OpenAI's own tools and citations are kept", async () => {
  const search = {
    id: "ws_1",
    type: "web_search_call",
    status: "completed",
    action: { type: "search", query: "x" },
  };
  const annotations = [{
    type: "url_citation",
    url: "https://e.com",
    title: "E",
    start_index: 0,
    end_index: 2,
  }];
  await using server = await mounted(() =>
    Response.json(response([
      search,
      outputMessage("", { content: [{ type: "output_text", text: "Hi", annotations }] }),
    ])), CONFIG);
  const { content } = await server.ask("Hi");
  const [call, result, text] = content;
  assertEquals([call?.type, call?.name, result?.type, result?.id], [
    "provider_tool_call",
    "web_search",
    "provider_tool_result",
    call?.id,
  ]);
  assertEquals([text?.text, text?.citations], ["Hi", [{ url: "https://e.com", title: "E" }]]);
});

Deno.test("reasoning without encrypted content is thinking that is not sent back", async () => {
  const { answer } = await both([reasoning(["Short"], null), outputMessage("Hi")]);
  assertEquals(answer.content.map(({ type, thinking, item }) => [type, thinking, item]), [
    ["thinking", "Short", undefined],
    ["text", undefined, undefined],
  ]);
});

Deno.test("encrypted reasoning without a summary is kept", async () => {
  const { answer, deltas } = await both([reasoning([], "gAAA"), outputMessage("Hi")]);
  assertEquals(answer.content.map(({ type, thinking }) => [type, thinking]), [["thinking", ""], [
    "text",
    undefined,
  ]]);
  assertEquals(joined(deltas), { 1: "Hi" });
});

Deno.test("tokens written to the cache are input tokens with a price of their own", async () => {
  const usage = { ...RESPONSE_USAGE, input_tokens_details: { cached_tokens: 12, cache_write_tokens: 20 } };
  const { answer } = await both([outputMessage("Hi")], { usage });
  assertEquals(answer.usage, { ...USAGE, cache_write_tokens: 20, cost_usd: "0.0004646" });
});

Deno.test("text that has no deltas is that of the finished answer", async () => {
  const item = outputMessage("Hello there");
  await using server = await mounted(() =>
    sse(responseEvents([
      { type: "keepalive" },
      { type: "response.completed", response: response([item]) },
    ])), CONFIG);
  const { answer, deltas } = await server.stream("Hi");
  assertEquals(answer.content, [{ type: "text", text: "Hello there" }]);
  assertEquals(deltas.map(({ delta }) => delta), ["Hello there"]);
});

Deno.test("reasoning text of an open model is thinking", async () => {
  const item = {
    type: "reasoning",
    id: "rs",
    summary: [],
    content: [{ type: "reasoning_text", text: "Hmm." }],
  };
  await using server = await mounted(() =>
    sse(responseEvents([
      { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
      {
        type: "response.reasoning_text.delta",
        item_id: "rs",
        output_index: 0,
        content_index: 0,
        delta: "Hmm.",
      },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: response([item, outputMessage("Yes")]) },
    ])), CONFIG);
  const { answer, deltas } = await server.stream("Hi");
  assertEquals(answer.content.map(({ thinking, text }) => thinking ?? text), ["Hmm.", "Yes"]);
  assertEquals(joined(deltas), { 0: "Hmm.", 1: "Yes" });
});

Deno.test("a stream of llama.cpp is read, which has no places of its items", async () => {
  const id = "msg_1";
  const events = [
    { type: "response.created", response: { id: "resp_1", object: "response", status: "in_progress" } },
    { type: "response.output_item.added", item: { id, type: "message", role: "assistant", content: [] } },
    { type: "response.content_part.added", item_id: id, part: { type: "output_text", text: "" } },
    { type: "response.output_text.delta", item_id: id, delta: "Hé" },
    { type: "response.output_text.delta", item_id: id, delta: "llo" },
    { type: "response.output_item.done", item: outputMessage("Héllo", { id }) },
    { type: "response.completed", response: response([outputMessage("Héllo", { id })]) },
  ];
  await using server = await mounted(() => sse(responseEvents(events)), CONFIG);
  const { answer, deltas } = await server.stream("Hi");
  assertEquals(answer.content, [{ type: "text", text: "Héllo" }]);
  assertEquals(deltas.map(({ delta }) => delta), ["Hé", "llo"]);
});
