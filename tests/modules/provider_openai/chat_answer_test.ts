/** Answers of Chat Completions: whole and streamed, of OpenAI and of servers that only resemble it. */
import { assertEquals, assertMatch } from "../../assert.ts";
import type { JsonObject, Message } from "preamp";
import { joined, mounted } from "./kit.ts";
import { CHAT_USAGE, chatChunks, chunk, completion, sse, usageChunk } from "./wire.ts";

const USAGE = {
  input_tokens: 20,
  output_tokens: 11,
  reasoning_tokens: 5,
  cache_read_tokens: 8,
  total_tokens: 31,
  cost_usd: "0.0000674",
};

/** Resolves to the streamed answer of chunks. */
async function streamed(chunks: readonly JsonObject[], end?: string) {
  await using server = await mounted(() => sse(chatChunks(chunks, end)));
  return await server.stream("Hi");
}

/** Returns a delta with one tool call. */
function callDelta(fields: JsonObject, name?: string, args?: unknown): JsonObject {
  return {
    tool_calls: [{
      ...fields,
      type: "function",
      function: {
        ...(name === undefined ? {} : { name }),
        ...(args === undefined ? {} : { arguments: args }),
      },
    }],
  };
}

Deno.test("an answer with text and parallel calls is the same whole and streamed", async () => {
  const call = (id: string, args: string) => ({
    id,
    type: "function",
    function: { name: "add", arguments: args },
  });
  await using server = await mounted(({ body }) =>
    body.stream
      ? sse(chatChunks([
        chunk({ role: "assistant", content: "", refusal: null }),
        chunk({ content: "Adding: " }),
        chunk({ content: "ünï🚀" }),
        chunk(callDelta({ index: 0, id: "call_a" }, "add", "")),
        chunk(callDelta({ index: 0 }, undefined, '{"a"')),
        chunk(callDelta({ index: 1, id: "call_b" }, "add", "")),
        chunk(callDelta({ index: 0 }, undefined, ":1}")),
        chunk(callDelta({ index: 1 }, undefined, '{"a":2}')),
        chunk({}, "tool_calls"),
        usageChunk(),
      ]))
      : Response.json(completion(
        { content: "Adding: ünï🚀", tool_calls: [call("call_a", '{"a":1}'), call("call_b", '{"a":2}')] },
        "tool_calls",
      ))
  );
  const whole = await server.ask("Hi");
  const { answer, deltas } = await server.stream("Hi");
  assertEquals(answer, whole);
  assertEquals({ ...answer, tool_calls: answer.tool_calls?.map((call) => ({ ...call })) }, {
    content: [
      { type: "text", text: "Adding: ünï🚀" },
      { type: "tool_call", id: "call_a", name: "add", input: { a: 1 } },
      { type: "tool_call", id: "call_b", name: "add", input: { a: 2 } },
    ],
    tool_calls: [
      { id: "call_a", name: "add", arguments: { a: 1 } },
      { id: "call_b", name: "add", arguments: { a: 2 } },
    ] as never,
    finish_reason: "tool_calls",
    model: "gpt-4.1",
    usage: USAGE,
    metadata: { response_id: "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT" },
  });
  assertEquals(joined(deltas), { 0: "Adding: ünï🚀", 1: '{"a":1}', 2: '{"a":2}' });
});

Deno.test("every split of the bytes gives the same answer", async () => {
  const bytes = new TextEncoder().encode(
    chatChunks([chunk({ content: "ünï" }), chunk({ content: "🚀" }, "stop"), usageChunk()]).replaceAll(
      "\n",
      "\r\n",
    ),
  );
  await using server = await mounted((_, count) =>
    new Response(
      new ReadableStream({
        start(controller) {
          const size = count + 1;
          for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
          controller.close();
        },
      }),
      { headers: { "content-type": "text/event-stream" } },
    )
  );
  for (let size = 1; size <= 12; size++) {
    const { answer } = await server.stream("Hi");
    assertEquals([size, answer.content, answer.usage], [size, [{ type: "text", text: "ünï🚀" }], USAGE]);
  }
});

Deno.test("reasoning_content and reasoning become thinking", async () => {
  for (const field of ["reasoning_content", "reasoning"]) {
    const { answer, deltas } = await streamed([
      chunk({ role: "assistant", content: null, [field]: "" }),
      chunk({ [field]: "Let me " }),
      chunk({ [field]: "think." }),
      chunk({ content: "Yes", [field]: null }),
      chunk({}, "stop"),
    ]);
    const provider = answer.content[0]!.provider;
    assertEquals(answer.content, [
      { type: "thinking", thinking: "Let me think.", provider },
      { type: "text", text: "Yes" },
    ]);
    assertEquals(joined(deltas), { 0: "Let me think.", 1: "Yes" });
  }
});

Deno.test("content in parts, as Mistral sends it, is thinking and text", async () => {
  const { answer } = await streamed([
    chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm" }] }] }),
    chunk({ content: [{ type: "text", text: "Yes" }] }, "stop"),
  ]);
  assertEquals(answer.content.map(({ thinking, text }) => thinking ?? text), ["Hm", "Yes"]);
});

Deno.test("reasoning that two fields repeat is read once", async () => {
  const { answer } = await streamed([
    chunk({ reasoning_content: "Hm", reasoning: "Hm" }),
    chunk({ reasoning_content: "m.", reasoning: "m." }),
    chunk({ content: "Yes" }, "stop"),
  ]);
  assertEquals(answer.content.map(({ thinking, text }) => thinking ?? text), ["Hmm.", "Yes"]);
});

/** Chunks of calls as servers send them, and the calls that they mean: id (a pattern) and arguments. */
const CALLS: Record<string, { deltas: JsonObject[]; calls: [RegExp, JsonObject][] }> = {
  "arguments as an object": {
    deltas: [callDelta({ index: 0, id: "c1" }, "add", { a: 1 })],
    calls: [[/^c1$/, { a: 1 }]],
  },
  "no arguments": {
    deltas: [callDelta({ index: 0, id: "c1" }, "add")],
    calls: [[/^c1$/, {}]],
  },
  "arguments null, as a value and as text": {
    deltas: [
      callDelta({ index: 0, id: "c1" }, "add", null),
      callDelta({ index: 1, id: "c2" }, "add", "null"),
    ],
    calls: [[/^c1$/, {}], [/^c2$/, {}]],
  },
  "no ids": {
    deltas: [callDelta({ index: 0 }, "add", '{"a":1}'), callDelta({ index: 1, id: "" }, "add", '{"a":2}')],
    calls: [[/^[\w-]+$/, { a: 1 }], [/^[\w-]+$/, { a: 2 }]],
  },
  "the same id twice": {
    deltas: [
      callDelta({ index: 0, id: "c1" }, "add", '{"a":1}'),
      callDelta({ index: 1, id: "c1" }, "add", '{"a":2}'),
    ],
    calls: [[/^c1$/, { a: 1 }], [/^[\w-]+$/, { a: 2 }]],
  },
  "index 0 for every call": {
    deltas: [
      callDelta({ index: 0, id: "c1" }, "add", '{"a":1}'),
      callDelta({ index: 0, id: "c2" }, "add", '{"a":2}'),
    ],
    calls: [[/^c1$/, { a: 1 }], [/^c2$/, { a: 2 }]],
  },
  "index 0 for every call, without ids": {
    deltas: [callDelta({ index: 0 }, "add", '{"a":1}'), callDelta({ index: 0 }, "add", '{"a":2}')],
    calls: [[/^[\w-]+$/, { a: 1 }], [/^[\w-]+$/, { a: 2 }]],
  },
  "no index": {
    deltas: [
      callDelta({ id: "c1" }, "add", '{"a":'),
      callDelta({}, undefined, "1}"),
      callDelta({ id: "c2" }, "add", '{"a":2}'),
    ],
    calls: [[/^c1$/, { a: 1 }], [/^c2$/, { a: 2 }]],
  },
  "a gap between the indexes": {
    deltas: [
      callDelta({ index: 1, id: "c1" }, "add", '{"a":1}'),
      callDelta({ index: 7, id: "c2" }, "add", '{"a":2}'),
    ],
    calls: [[/^c1$/, { a: 1 }], [/^c2$/, { a: 2 }]],
  },
  "id and name in every delta": {
    deltas: [
      callDelta({ index: 0, id: "c1" }, "add", '{"a":'),
      callDelta({ index: 0, id: "c1" }, "add", "1}"),
      callDelta({ index: 0, id: "c1" }, "add", ""),
    ],
    calls: [[/^c1$/, { a: 1 }]],
  },
  "the finished call sent again": {
    deltas: [
      callDelta({ index: 0, id: "c1" }, "add", '{"a":'),
      callDelta({ index: 0 }, undefined, "1}"),
      callDelta({ index: 0, id: "c1" }, "add", '{"a": 1}'),
      callDelta({ index: 0 }, undefined, '{"a":1}'),
    ],
    calls: [[/^c1$/, { a: 1 }]],
  },
  "the finished call sent again in deltas, at another index": {
    deltas: [
      callDelta({ index: 0, id: "c1" }, "add", '{"a":1}'),
      callDelta({ index: 1, id: "c1" }, "add", ""),
      callDelta({ index: 1 }, undefined, '{"a"'),
      callDelta({ index: 1 }, undefined, ":1}"),
      callDelta({ index: 2, id: "c2" }, "add", '{"a":1}'),
    ],
    calls: [[/^c1$/, { a: 1 }], [/^c2$/, { a: 1 }]],
  },
  "the finished call sent again, without ids": {
    deltas: [callDelta({ index: 0 }, "add", '{"a":1}'), callDelta({ index: 0 }, "add", '{"a":1}')],
    calls: [[/^[\w-]+$/, { a: 1 }]],
  },
  "both finished calls of one id sent again": {
    deltas: [1, 2, 1, 2].map((a) => callDelta({ index: a, id: "c1" }, "add", JSON.stringify({ a }))),
    calls: [[/^c1$/, { a: 1 }], [/^[\w-]+$/, { a: 2 }]],
  },
  "one id for calls that arrive in turns": {
    deltas: [
      callDelta({ index: 0, id: "c1" }, "add", '{"a":'),
      callDelta({ index: 1, id: "c1" }, "add", '{"a":'),
      callDelta({ index: 0, id: "c1" }, undefined, "1}"),
      callDelta({ index: 1, id: "c1" }, undefined, "2}"),
    ],
    calls: [[/^c1$/, { a: 1 }], [/^[\w-]+$/, { a: 2 }]],
  },
  "another id in every delta": {
    deltas: [
      callDelta({ index: 0, id: "c1" }, "add", '{"a":'),
      callDelta({ index: 0, id: "c2" }, undefined, "1"),
      callDelta({ index: 0, id: "c3" }, "add", "}"),
    ],
    calls: [[/^c1$/, { a: 1 }]],
  },
  "no index and no ids": {
    deltas: [callDelta({}, "add", '{"a":1}'), callDelta({}, "add", '{"a":'), callDelta({}, undefined, "1}")],
    calls: [[/^[\w-]+$/, { a: 1 }], [/^[\w-]+$/, { a: 1 }]],
  },
  "a name after the id": {
    deltas: [callDelta({ index: 0, id: "c1" }, "", ""), callDelta({ index: 0 }, "add", '{"a":1}')],
    calls: [[/^[\w-]+$/, { a: 1 }]],
  },
};

for (const [name, { deltas, calls }] of Object.entries(CALLS)) {
  Deno.test(`calls are read with ${name}`, async () => {
    const { answer, deltas: emitted } = await streamed([
      ...deltas.map((delta) => chunk(delta)),
      chunk({}, "stop"),
    ]);
    assertEquals(answer.finish_reason, "tool_calls");
    assertEquals(
      answer.tool_calls?.map((call) => [call.name, call.arguments]),
      calls.map(([, args]) => ["add", args]),
    );
    answer.tool_calls!.forEach(({ id }, index) => assertMatch(id, calls[index]![0]));
    assertEquals(answer.content.map(({ id }) => id), answer.tool_calls!.map(({ id }) => id));
    assertEquals(emitted.flatMap(({ id }) => id ?? []), answer.tool_calls!.map(({ id }) => id));
  });
}

Deno.test("a whole message at the end of a stream adds what did not arrive before", async () => {
  const calls = callDelta({ id: "c1" }, "add", '{"a":1}').tool_calls;
  const end = (message: JsonObject) => ({
    ...chunk({}, "stop"),
    choices: [{ index: 0, finish_reason: "stop", delta: null, message }],
  });
  const { answer, deltas } = await streamed([
    chunk({ content: "Hel" }),
    chunk({ tool_calls: calls }),
    end({ content: "Hello", tool_calls: calls }),
  ]);
  assertEquals(answer.content.map(({ text, id }) => text ?? id), ["Hello", "c1"]);
  assertEquals(joined(deltas), { 0: "Hello", 1: '{"a":1}' });
});

Deno.test("an id that an earlier call of the session has is replaced", async () => {
  await using server = await mounted(() =>
    sse(chatChunks([chunk(callDelta({ index: 0, id: "call_0" }, "add", "{}"), "stop")]))
  );
  const { answer } = await server.stream([
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "call_0", name: "add", tool: "add", arguments: {} }],
    },
    { role: "tool", tool_call_id: "call_0", content: "3" },
  ]);
  assertMatch(answer.tool_calls![0]!.id, /^call_[\w-]{36}$/);
});

Deno.test("the end of a stream may lack [DONE], usage and ids", async () => {
  const bare = (delta: JsonObject, finish_reason: string | null = null) => ({
    choices: [{ delta, finish_reason }],
  });
  const { answer: { usage, ...answer } } = await streamed(
    [bare({ content: "Hel" }), bare({ content: "lo" }), bare({}, "stop")],
    "",
  );
  assertEquals(usage?.estimated, true);
  assertEquals(answer, {
    content: [{ type: "text", text: "Hello" }],
    finish_reason: "stop",
    model: "gpt-6.1-terra",
  });
});

Deno.test("comments and empty events of a stream are ignored", async () => {
  const text = `: OPENROUTER PROCESSING\n\n${chatChunks([chunk({ content: "Hi" }, "stop")])}`;
  await using server = await mounted(() => sse(text));
  assertEquals((await server.stream("Hi")).answer.content, [{ type: "text", text: "Hi" }]);
});

Deno.test("usage is read from DeepSeek's and from OpenAI's fields", async () => {
  const { answer } = await streamed([
    chunk({ content: "Hi" }, "stop", {
      usage: { prompt_tokens: 9, completion_tokens: 2, prompt_cache_hit_tokens: 4 },
    }),
  ]);
  assertEquals(answer.usage, {
    input_tokens: 9,
    output_tokens: 2,
    cache_read_tokens: 4,
    total_tokens: 11,
    cost_usd: "0.0000152",
  });
  const usage = { ...CHAT_USAGE, prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 6 } };
  const second = await streamed([chunk({ content: "Hi" }, "stop"), usageChunk(usage)]);
  assertEquals(second.answer.usage, {
    ...USAGE,
    cache_write_tokens: 6,
    cost_usd: "0.0000689",
  });
});

Deno.test("finish reasons and refusals", async () => {
  for (
    const [delta, reason, expected] of [
      [{ content: "Hi" }, "length", "length"],
      [{ content: "Hi" }, "content_filter", "content_filter"],
      [{ content: "Hi" }, "sensitive", "content_filter"],
      [callDelta({ index: 0, id: "c" }, "add", "{}"), "model_length", "length"],
      [{ content: "Hi" }, "model_context_window_exceeded", "length"],
      [{ refusal: "No." }, "stop", "content_filter"],
      [{ content: "Hi" }, "eos", "eos"],
      [{ content: "Hi" }, "constructor", "constructor"],
      [callDelta({ index: 0, id: "c" }, "add", "{}"), "function_call", "tool_calls"],
    ] as const
  ) {
    assertEquals((await streamed([chunk(delta), chunk({}, reason)])).answer.finish_reason, expected);
  }
});

Deno.test("a server that does not stream is read whole", async () => {
  await using server = await mounted(() => Response.json(completion({ content: "Hello" })));
  const { answer, deltas } = await server.stream("Hi");
  assertEquals(answer.content, [{ type: "text", text: "Hello" }]);
  assertEquals(joined(deltas), { 0: "Hello" });
});

Deno.test("reasoning that a server counts in the total only is part of the output", async () => {
  const details = { completion_tokens_details: { reasoning_tokens: 94 } };
  const usage = { prompt_tokens: 32, completion_tokens: 9, total_tokens: 135, ...details };
  const { answer } = await streamed([chunk({ content: "Hi" }, "stop"), usageChunk(usage)]);
  assertEquals(
    [answer.usage?.input_tokens, answer.usage?.output_tokens, answer.usage?.total_tokens],
    [32, 103, 135],
  );
});

Deno.test("thought signatures of Gemini's server are kept on their calls, and sent back", async () => {
  const extra_content = { google: { thought_signature: "c2ln" } };
  await using server = await mounted(() =>
    sse(chatChunks([chunk(callDelta({ index: 0, id: "c", extra_content }, "add", "{}"), "stop")]))
  );
  const question: Message = { role: "user", content: "Hi" };
  const { answer: { content } } = await server.stream([question]);
  const result: Message = { role: "tool", tool_call_id: "c", name: "add", content: "3" };
  await server.stream([question, { role: "assistant", content }, result]);
  const sent = server.requests[1]!.body.messages as { tool_calls?: JsonObject[] }[];
  assertEquals(sent[1]!.tool_calls?.[0]?.extra_content, extra_content);
});
