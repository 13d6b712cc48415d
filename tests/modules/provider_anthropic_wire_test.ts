/** Answers of the API of `provider-anthropic`, field by field. */
import type { JsonObject, Message, ToolSpec } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { ANTHROPIC, blockEvents, event, message, messageEvents } from "./providers/anthropic_wire.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { mount } from "../../modules/provider-anthropic/mod.ts";

const USER: Message = { role: "user", content: "Hello" };

const TOOL: ToolSpec = {
  name: "lookup",
  description: "Looks up.",
  parameters: { type: "object", properties: {} },
};

/** Calls a provider whose server plays one response. */
async function complete(response: () => Response, stream: boolean, config: JsonObject = {}) {
  await using server = fakeServer(response);
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0, ...config });
  const provider = coordinator.providers.anthropic!;
  const deltas: unknown[] = [];
  const answer = await provider.complete(
    { messages: [USER], tools: [TOOL] },
    stream ? { onDelta: (delta) => deltas.push(delta) } : {},
  );
  return {
    answer,
    deltas,
    requests: server.requests,
    origin: `anthropic@${new URL(server.url).host}`,
    provider,
  };
}

function sse(events: readonly string[]): Response {
  return new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });
}

const THOUGHT = { type: "thinking", thinking: "Let me see.", signature: "sig==" };

const REDACTED = { type: "redacted_thinking", data: "opaque==" };

const SERVER_TOOL = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } };

const SERVER_RESULT = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] };

Deno.test("complete() streams every kind of block, and resolves to the same as without a stream", async () => {
  const usage = {
    input_tokens: 7,
    cache_read_input_tokens: 5,
    cache_creation_input_tokens: 3,
    output_tokens: 9,
  };
  const blocks = [
    ...blockEvents(0, { type: "thinking", thinking: "", signature: "" }, [
      { type: "thinking_delta", thinking: "Let me " },
      { type: "thinking_delta", thinking: "see." },
      { type: "signature_delta", signature: "sig==" },
    ]),
    ...blockEvents(1, REDACTED, []),
    ...blockEvents(2, { ...SERVER_TOOL, input: {} }, [{
      type: "input_json_delta",
      partial_json: '{"query":"x"}',
    }]),
    ...blockEvents(3, SERVER_RESULT, []),
    ...blockEvents(4, { type: "text", text: "" }, [{ type: "text_delta", text: "Found." }]),
    ...blockEvents(5, { type: "tool_use", id: "toolu_1", name: "lookup", input: {} }, [
      { type: "input_json_delta", partial_json: "" },
      { type: "input_json_delta", partial_json: '{"key"' },
      { type: "input_json_delta", partial_json: ':"a"}' },
    ]),
    ...blockEvents(6, { type: "tool_use", id: "toolu_2", name: "lookup", input: {} }, []),
  ];
  const streamed = await complete(() => sse(messageEvents(blocks, "tool_use", usage)), true);
  const content = [
    THOUGHT,
    REDACTED,
    SERVER_TOOL,
    SERVER_RESULT,
    { type: "text", text: "Found." },
    { type: "tool_use", id: "toolu_1", name: "lookup", input: { key: "a" } },
    { type: "tool_use", id: "toolu_2", name: "lookup", input: {} },
  ];
  const whole = await complete(() => Response.json(message(content, { usage })), false);
  const expected = (provider: string) => ({
    content: [
      { ...THOUGHT, provider },
      { ...REDACTED, provider },
      { type: "provider_tool_call", id: "srvtoolu_1", name: "web_search", input: { query: "x" }, provider },
      { type: "provider_tool_result", id: "srvtoolu_1", name: "web_search", result: [], provider },
      { type: "text", text: "Found." },
      { type: "tool_call", id: "toolu_1", name: "lookup", input: { key: "a" } },
      { type: "tool_call", id: "toolu_2", name: "lookup", input: {} },
    ],
    tool_calls: [{ id: "toolu_1", name: "lookup", arguments: { key: "a" } }, {
      id: "toolu_2",
      name: "lookup",
      arguments: {},
    }],
    finish_reason: "tool_calls",
    model: "claude-sonnet-5-5",
    usage: {
      input_tokens: 15,
      output_tokens: 9,
      cache_read_tokens: 5,
      cache_write_tokens: 3,
      total_tokens: 24,
      cost_usd: "0.000112",
    },
    metadata: { response_id: "msg_01" },
  });
  const plain = (value: unknown) => JSON.parse(JSON.stringify(value));
  assertEquals(plain(streamed.answer), expected(streamed.origin));
  assertEquals(plain(whole.answer), expected(whole.origin));
  const text = (block_index: number, block_type: string, delta: string, more = {}) => ({
    block_index,
    block_type,
    delta,
    ...more,
  });
  assertEquals(streamed.deltas, [
    text(0, "thinking", "Let me "),
    text(0, "thinking", "see."),
    text(4, "text", "Found."),
    text(5, "tool_call", "", { id: "toolu_1", name: "lookup" }),
    text(5, "tool_call", '{"key"'),
    text(5, "tool_call", ':"a"}'),
    text(6, "tool_call", "", { id: "toolu_2", name: "lookup" }),
    text(6, "tool_call", "{}"),
  ]);
  assertEquals(whole.deltas, []);
});

Deno.test("complete() sends an answer's own blocks back, in order and unchanged", async () => {
  const content = [THOUGHT, REDACTED, {
    type: "tool_use",
    id: "toolu_1",
    name: "lookup",
    input: { key: "a" },
  }];
  await using server = fakeServer((_request, count) =>
    Response.json(count === 0 ? message(content) : message([{ type: "text", text: "Done." }]))
  );
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url });
  const provider = coordinator.providers.anthropic!;
  const answer = await provider.complete({ messages: [USER], tools: [TOOL] });
  const stored: Message = { role: "assistant", content: answer.content };
  const result: Message = { role: "tool", tool_call_id: "toolu_1", name: "lookup", content: "found" };
  await provider.complete({ messages: [USER, stored, result], tools: [TOOL] });
  assertEquals(server.requests[1]!.body.messages, [
    { role: "user", content: [{ type: "text", text: "Hello" }] },
    { role: "assistant", content },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "found" }] },
  ]);
});

Deno.test("complete() continues a paused turn, streamed and whole", async () => {
  for (const stream of [true, false]) {
    await using server = fakeServer((_request, count) => {
      const text = count === 0 ? "One. " : "Two.";
      const stop_reason = count === 0 ? "pause_turn" : "end_turn";
      const deltas = [{ type: "text_delta", text }];
      return stream
        ? sse(messageEvents(blockEvents(0, { type: "text", text: "" }, deltas), stop_reason))
        : Response.json(message([{ type: "text", text }], { stop_reason }));
    });
    const coordinator = new TestCoordinator();
    await mount(coordinator, { api_key: "k", base_url: server.url });
    const deltas: [number, string][] = [];
    const answer = await coordinator.providers.anthropic!.complete({ messages: [USER] }, {
      ...(stream ? { onDelta: ({ block_index, delta }) => void deltas.push([block_index, delta]) } : {}),
    });
    assertEquals(answer.content, [{ type: "text", text: "One. " }, { type: "text", text: "Two." }]);
    assertEquals(answer.usage?.output_tokens, 6);
    assertEquals(deltas, stream ? [[0, "One. "], [1, "Two."]] : []);
    assertEquals((server.requests[1]!.body.messages as unknown[]).at(-1), {
      role: "assistant",
      content: [{ type: "text", text: "One." }], // the API refuses white space at the end
    });
  }
});

Deno.test("complete() continues a paused turn without empty texts, which the API sends but refuses", async () => {
  await using server = fakeServer((_request, count) =>
    Response.json(
      count === 0
        ? message([{ type: "text", text: "" }, SERVER_TOOL], { stop_reason: "pause_turn" })
        : message([{ type: "text", text: "Done." }]),
    )
  );
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url });
  await coordinator.providers.anthropic!.complete({ messages: [USER] });
  assertEquals((server.requests[1]!.body.messages as unknown[])[1], {
    role: "assistant",
    content: [SERVER_TOOL],
  });
});

const REASONS = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "content_filter",
  something_new: "something_new",
};

for (const [stop_reason, expected] of Object.entries(REASONS)) {
  Deno.test(`complete() reads stop_reason ${stop_reason}`, async () => {
    const text = [{ type: "text", text: "x" }];
    const { answer } = await complete(() => Response.json(message(text, { stop_reason })), false);
    assertEquals(answer.finish_reason, expected);
  });
}

const ERRORS: readonly [status: number, type: string, message: string, expected: JsonObject][] = [
  [400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", {
    type: "ContextLengthError",
    retryable: false,
    limit_tokens: 200_000,
    requested_tokens: 210_000,
  }],
  [413, "request_too_large", "Request exceeds the maximum size", {
    type: "ContextLengthError",
    retryable: false,
  }],
  [400, "invalid_request_error", "messages.0: bad", { type: "InvalidRequestError", retryable: false }],
  [400, "invalid_request_error", "Your credit balance is too low", {
    type: "QuotaExceededError",
    retryable: false,
  }],
  [401, "authentication_error", "invalid x-api-key", { type: "AuthenticationError", retryable: false }],
  [403, "permission_error", "no access", { type: "AccessDeniedError", retryable: false }],
  [404, "not_found_error", "model: nope", { type: "NotFoundError", retryable: false }],
  [429, "rate_limit_error", "rate limit", { type: "RateLimitError", retryable: true }],
  [500, "api_error", "internal", { type: "ProviderUnavailableError", retryable: true }],
  [529, "overloaded_error", "Overloaded", { type: "ProviderUnavailableError", retryable: true }],
];

for (const [status, type, text, expected] of ERRORS) {
  Deno.test(`complete() reads error ${status}: ${text}`, async () => {
    const answer = () => Response.json({ type: "error", error: { type, message: text } }, { status });
    const error = await complete(answer, false).then(() => null, (thrown) => thrown);
    const { limit_tokens, requested_tokens, ...facts } = {
      type: error.type,
      retryable: error.retryable,
      limit_tokens: error.limit_tokens,
      requested_tokens: error.requested_tokens,
    };
    const numbers = limit_tokens === undefined ? {} : { limit_tokens, requested_tokens };
    assertEquals({ ...facts, ...numbers }, expected);
    assertEquals([error.message, error.status_code, error.provider, error.model], [
      text,
      status,
      "anthropic",
      "claude-sonnet-5-5",
    ]);
  });
}

Deno.test("complete() reads the status of an error event", async () => {
  const events = [event({ type: "error", error: { type: "invalid_request_error", message: "bad" } })];
  const error = await complete(() => sse(events), true).then(() => null, (thrown) => thrown);
  assertEquals([error.type, error.status_code], ["InvalidRequestError", 400]);
});

Deno.test("listModels() returns the account's models with sizes from the API, else from the table", async () => {
  const data = [
    {
      type: "model",
      id: "claude-new-9",
      display_name: "New 9",
      max_input_tokens: 2_000_000,
      max_tokens: 256_000,
    },
    {
      type: "model",
      id: "claude-haiku-4-5",
      display_name: "Claude Haiku 4.5",
      max_input_tokens: null,
      max_tokens: null,
    },
  ];
  await using server = fakeServer(() => Response.json({ data, has_more: false }));
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: `${server.url}/proxy/v1/` });
  const models = await coordinator.providers.anthropic!.listModels();
  assertEquals(
    models.map(({ id, display_name, context_window, max_output_tokens }) => [
      id,
      display_name,
      context_window,
      max_output_tokens,
    ]),
    [
      ["claude-new-9", "New 9", 2_000_000, 256_000],
      ["claude-haiku-4-5", "Claude Haiku 4.5", 200_000, 32_000],
    ],
  );
  assertEquals(server.requests[0]!.path.split("?")[0], "/proxy/v1/models");
});

Deno.test("requests have the key and nothing from variables of the process", async () => {
  const names = {
    ANTHROPIC_CUSTOM_HEADERS: "x-internal-token: secret\nAuthorization: Bearer secret\nuser-agent: Us",
    ANTHROPIC_AUTH_TOKEN: "secret",
    ANTHROPIC_BASE_URL: "http://127.0.0.1:1/",
  };
  for (const [name, value] of Object.entries(names)) Deno.env.set(name, value);
  try {
    const { requests } = await complete(() => Response.json(ANTHROPIC.whole({ text: ["x"] })), false);
    const { headers, path } = requests[0]!;
    assertEquals(path, "/v1/messages");
    assertEquals([headers.get("x-api-key"), headers.get("authorization")], ["k", null]);
    assertEquals([headers.get("x-internal-token"), headers.get("user-agent") === "Us"], [null, false]);
  } finally {
    for (const name of Object.keys(names)) Deno.env.delete(name);
  }
});

Deno.test({
  name: "a request needs no permission to read variables",
  permissions: { env: false, net: ["127.0.0.1"] },
  async fn() {
    const { requests } = await complete(() => Response.json(ANTHROPIC.whole({ text: ["x"] })), false);
    assertEquals(requests.length, 1);
  },
});

const START = event({ type: "message_start", message: message([], { stop_reason: null }) });

const END = event({ type: "message_stop" });

const TEXT_BLOCK = { type: "text", text: "" };

const textDelta = (index: number, text: unknown) =>
  event({ type: "content_block_delta", index, delta: { type: "text_delta", text } });

const blockStart = (index: number, content_block: unknown) =>
  event({ type: "content_block_start", index, content_block });

/** Streams that no server of the API sends. */
const ODD: Readonly<Record<string, readonly string[]>> = {
  "a block with a huge index": [START, blockStart(1e9, TEXT_BLOCK), END],
  "a negative index": [START, blockStart(-1, TEXT_BLOCK), END],
  "the same block twice": [
    START,
    blockStart(0, TEXT_BLOCK),
    textDelta(0, "a"),
    blockStart(0, TEXT_BLOCK),
    END,
  ],
  "a delta without a block": [START, textDelta(0, "a"), END],
  "a delta of another kind": [
    START,
    blockStart(0, { type: "tool_use", id: "a", name: "b" }),
    textDelta(0, "a"),
    END,
  ],
  "a delta that is not text": [START, blockStart(0, TEXT_BLOCK), textDelta(0, 7), END],
  "a block that is null": [START, blockStart(0, null), END],
  "a message that is null": [event({ type: "message_start", message: null }), END],
  "nothing": [],
};

for (const [name, events] of Object.entries(ODD)) {
  Deno.test(`complete() refuses a stream with ${name}`, async () => {
    const error = await complete(() => sse(events), true).then(() => null, (thrown) => thrown);
    assert(["StreamError", "LLMError"].includes(error?.type), String(error));
  });
}

const MESSAGES_OF_OTHERS: readonly unknown[] = [null, [], "text", {}, { content: [] }, {
  content: [null],
  usage: {},
}];

for (const value of MESSAGES_OF_OTHERS) {
  Deno.test(`complete() refuses the answer ${JSON.stringify(value)}`, async () => {
    const error = await complete(() => Response.json(value), false).then(() => null, (thrown) => thrown);
    assertMatch(String(error?.message), /^Cannot read the answer: /);
  });
}

Deno.test("complete() reads the answer of a server that does not stream", async () => {
  const reply = () => Response.json(message([{ type: "text", text: "Hi." }]));
  const { answer, deltas } = await complete(reply, true);
  assertEquals([answer.content, deltas], [
    [{ type: "text", text: "Hi." }],
    [{ block_index: 0, block_type: "text", delta: "Hi." }],
  ]);
});

Deno.test("complete() reads a stream with CRLF, comments, several data lines, and fields it does not know", async () => {
  const odd = messageEvents([
    ...blockEvents(0, { ...TEXT_BLOCK, new_field: 1 }, [{ type: "text_delta", text: "Hi", more: 1 }]),
    event({ type: "event_of_tomorrow", index: 0 }),
  ], "end_turn").map((text) => `: comment\nid: 7\nretry: 10\n${text}`.replaceAll("\n", "\r\n"));
  const { answer, deltas } = await complete(() => sse(["\ufeff", ...odd].slice(1)), true);
  assertEquals([answer.content.map(({ text }) => text), deltas.length], [["Hi"], 1]);
});

Deno.test("complete() reads the input of a call that is in its start", async () => {
  const block = { type: "tool_use", id: "toolu_1", name: "lookup", input: { key: "a" } };
  const events = blockEvents(0, block, [{ type: "input_json_delta", partial_json: "" }]);
  const { answer } = await complete(() => sse(messageEvents(events, "tool_use")), true);
  assertEquals(answer.tool_calls?.map((call) => call.arguments), [{ key: "a" }]);
});

Deno.test("complete() reads a server that sends no usage", async () => {
  const { usage: _, ...start } = message([], { stop_reason: null });
  const { answer } = await complete(() =>
    sse([
      event({ type: "message_start", message: start }),
      ...blockEvents(0, TEXT_BLOCK, [{ type: "text_delta", text: "Hi" }]),
      event({ type: "message_delta", delta: { stop_reason: "end_turn" } }),
      event({ type: "message_stop" }),
    ]), true);
  assertEquals([answer.content, answer.usage?.estimated], [[{ type: "text", text: "Hi" }], true]);
});

Deno.test("the keys of Amplifier's plans set the model, the maximum and the thinking", async () => {
  const sent = async (config: JsonObject) => {
    const whole = () => Response.json(ANTHROPIC.whole({ text: ["x"] }));
    const { model, max_tokens, thinking } = (await complete(whole, false, config)).requests[0]!.body;
    return [model, max_tokens, (thinking as JsonObject | undefined)?.budget_tokens];
  };
  const keys = { default_model: "claude-haiku-4-5", max_tokens: 20_000, extended_thinking: true };
  assertEquals(await sent(keys), ["claude-haiku-4-5", 20_000, 8192]);
  const own = { model: "claude-opus-4-6", max_output_tokens: 9000, thinking_budget: 2000 };
  assertEquals(await sent({ ...keys, ...own }), ["claude-opus-4-6", 9000, 2000]);
});

Deno.test("complete() says which address cannot be reached, and why", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close(); // nothing listens there now
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: `http://127.0.0.1:${port}`, max_retries: 0 });
  const call = coordinator.providers.anthropic!.complete({ messages: [USER] });
  const error = await call.then(() => null, (thrown) => thrown);
  assertEquals([error.type, error.retryable], ["NetworkError", true]);
  assertMatch(
    error.message,
    new RegExp(
      `^Cannot reach the API: nothing listens at .*127\\.0\\.0\\.1:${port}; is the server running\\?$`,
    ),
  );
});

Deno.test("complete() does not try again what this process may not do", async () => {
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: "http://127.0.0.1:1234" });
  const original = globalThis.fetch;
  globalThis.fetch = () => Promise.reject(new Deno.errors.NotCapable("Requires net access"));
  try {
    const call = coordinator.providers.anthropic!.complete({ messages: [USER] });
    const error = await call.then(() => null, (thrown) => thrown);
    assertEquals([error.type, error.message], [
      "ConfigurationError",
      "Cannot reach the API: Requires net access",
    ]);
  } finally {
    globalThis.fetch = original;
  }
});
