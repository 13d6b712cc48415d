/** Requests and answers of `provider-ollama`, field by field. */
import type { JsonObject, LLMError, Message, ToolSpec } from "preamp";
import { type CallSettings, toConversation, type WireRequest } from "preamp/provider";
import { TestCoordinator } from "preamp/testing";
import { mount } from "../../modules/provider-ollama/mod.ts";
import { toRequest } from "../../modules/provider-ollama/request.ts";
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { chunk, line } from "./providers/ollama_wire.ts";

const USER: Message = { role: "user", content: "Hello" };
const TOOL: ToolSpec = {
  name: "lookup",
  description: "Looks up.",
  parameters: { type: "object", properties: { key: { type: "string" } } },
};
const OTHER: ToolSpec = { name: "other", parameters: { type: "object", properties: { page: {} } } };
const SENT_TOOL = { type: "function", function: TOOL };
const SENT_OTHER = { type: "function", function: { ...OTHER, description: "" } };

function request(fields: Partial<CallSettings> = {}, messages: Message[] = [USER]): WireRequest {
  const { conversation } = toConversation(messages, "ollama");
  const call = { model: "qwen3:8b", conversation, tools: [], max_output_tokens: 4096, stream: false };
  const settings = { windowOf: () => 16_384, keep_alive: "10m", options: { seed: 1, num_ctx: 1 } };
  return toRequest({ ...call, ...fields }, settings);
}

/** Returns what a setting adds to the body, and how the request was degraded. */
function added(fields: Partial<CallSettings>): [body: JsonObject, degradation: string | undefined] {
  const base = Object.keys(request().body);
  const { body, degradation } = request(fields);
  const entries = Object.entries(body).filter(([key]) => !base.includes(key));
  return [Object.fromEntries(entries), degradation?.actual];
}

function messagesOf(messages: Message[]): unknown {
  return request({}, messages).body.messages;
}

Deno.test("toRequest() sends parameters in the API's form", () => {
  const fields = { stop: ["END"], temperature: 0.5, top_p: 0.9, stream: true };
  assertEquals(request(fields, [{ role: "system", content: "Be brief." }, USER]), {
    body: {
      model: "qwen3:8b",
      messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "Hello" }],
      stream: true,
      truncate: false,
      shift: false,
      keep_alive: "10m",
      options: { seed: 1, num_ctx: 16_384, num_predict: 4096, temperature: 0.5, top_p: 0.9, stop: ["END"] },
    },
    degradation: undefined,
  });
});

const SETTINGS: readonly [fields: Partial<CallSettings>, body: JsonObject, degradation?: string][] = [
  [{ reasoning_effort: "low" }, { think: "low" }],
  [{ reasoning_effort: "max" }, { think: "max" }],
  [{ reasoning_effort: "none" }, { think: false }],
  [{ reasoning_effort: "minimal" }, { think: "low" }, "low"],
  [{ reasoning_effort: "unheard" }, { think: true }, "true"],
  [{ thinking_budget: 0 }, { think: false }],
  [{ thinking_budget: 1000 }, { think: true }, "thinking without a limit"],
  [{ response_format: { type: "json" } }, { format: "json" }],
  [{ response_format: { type: "json_schema", schema: { type: "object" } } }, { format: { type: "object" } }],
  [{ response_format: { type: "text" } }, {}],
  [{ response_format: { type: "json" }, tools: [TOOL] }, { tools: [SENT_TOOL] }, "text"],
  [{ tools: [TOOL, OTHER] }, { tools: [SENT_TOOL, SENT_OTHER] }],
  [{ tools: [TOOL, OTHER], tool_choice: "auto" }, { tools: [SENT_TOOL, SENT_OTHER] }],
  [{ tools: [TOOL, OTHER], tool_choice: "none" }, {}],
  [{ tools: [TOOL, OTHER], tool_choice: "other" }, { tools: [SENT_OTHER] }, "auto"],
  [{ tools: [TOOL], tool_choice: "required" }, { tools: [SENT_TOOL] }, "auto"],
  [{ tools: [TOOL], tool_choice: { type: "function" } }, { tools: [SENT_TOOL] }, "auto"],
];

for (const [fields, body, degradation] of SETTINGS) {
  Deno.test(`toRequest() ${JSON.stringify(fields)}`, () => assertEquals(added(fields), [body, degradation]));
}

Deno.test("toRequest() sends schemas that the server can read", () => {
  const inner = { type: ["object", "null"], properties: { any: true, key: { type: "string" } } };
  const parameters = { type: ["object"], properties: { any: true, inner }, additionalProperties: false };
  const { body } = request({ tools: [{ name: "lookup", parameters: parameters as ToolSpec["parameters"] }] });
  assertEquals((body.tools as { function: JsonObject }[])[0]!.function.parameters, {
    type: "object",
    properties: { any: {}, inner: { ...inner, properties: { any: {}, key: { type: "string" } } } },
    additionalProperties: false,
  });
  const union = { anyOf: [{ properties: { key: { type: "string" } } }, { properties: { any: true } }] };
  const { tools } = request({ tools: [{ name: "lookup", parameters: union }] }).body;
  assertEquals((tools as { function: JsonObject }[])[0]!.function.parameters, {
    type: "object",
    properties: { key: { type: "string" }, any: {} },
  });
});

Deno.test("toRequest() sends images and text files, and notes in the place of others", () => {
  const content = [
    { type: "text", text: "Look:" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
    { type: "document", source: { type: "text", data: "plain ä" }, title: "notes" },
    { type: "image_url", image_url: { url: "https://example.com/a.png" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
  ];
  const { body, degradation } = request({}, [{ role: "user", content }]);
  assertEquals(body.messages, [{
    role: "user",
    content: "Look:\n\nFile notes:\nplain ä\n\n" +
      "[The image https://example.com/a.png cannot be shown to this model.]\n\n" +
      "[The file a.pdf cannot be shown to this model.]",
    images: ["AAAA"],
  }]);
  assertEquals(degradation, {
    requested: "image https://example.com/a.png; file a.pdf",
    actual: "a note in its place",
    reason: "Ollama takes images as data, and no other files than texts",
  });
});

Deno.test("toRequest() sends thoughts, calls and results", () => {
  const content = [
    { type: "thinking", thinking: "Let me see.", provider: "ollama" },
    { type: "text", text: "Looking." },
    { type: "tool_call", id: "call_1", name: "lookup", input: { key: "a" } },
    { type: "tool_call", id: "call_2", name: "lookup", input: {} },
  ];
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
  const messages: Message[] = [
    USER,
    { role: "assistant", content },
    { role: "tool", tool_call_id: "call_1", name: "lookup", content: "found" },
    { role: "tool", tool_call_id: "call_2", name: "lookup", content: [{ type: "text", text: "see" }, image] },
    USER,
  ];
  assertEquals(messagesOf(messages), [
    { role: "user", content: "Hello" },
    {
      role: "assistant",
      content: "Looking.",
      tool_calls: [
        { id: "call_1", function: { name: "lookup", arguments: { key: "a" } } },
        { id: "call_2", function: { name: "lookup", arguments: {} } },
      ],
      thinking: "Let me see.",
    },
    { role: "tool", content: "found", tool_name: "lookup", tool_call_id: "call_1" },
    { role: "tool", content: "see", images: ["AAAA"], tool_name: "lookup", tool_call_id: "call_2" },
    { role: "user", content: "Hello" },
  ]);
});

/** Calls a provider whose server plays one response. */
async function complete(answer: () => Response, stream: boolean, tools: ToolSpec[] = [TOOL], message = USER) {
  await using server = fakeServer(answer);
  const coordinator = new TestCoordinator();
  await mount(coordinator, { base_url: server.url, max_retries: 0, context_window: 1000 });
  const deltas: unknown[] = [];
  const options = stream ? { onDelta: (delta: unknown) => void deltas.push(delta) } : {};
  const answered = await coordinator.providers.ollama!.complete({ messages: [message], tools }, options);
  const origin = `ollama@${new URL(server.url).host}`;
  return { answer: JSON.parse(JSON.stringify(answered)), deltas, origin, requests: server.requests };
}

function lines(objects: readonly JsonObject[]): Response {
  return new Response(objects.map(line).join(""), { headers: { "content-type": "application/x-ndjson" } });
}

async function failureOf(call: Promise<unknown>): Promise<LLMError> {
  return await call.then(() => Promise.reject(new Error("it succeeded")), (error) => error);
}

Deno.test("complete() reads thoughts, text and calls, streamed and whole", async () => {
  const calls = [
    { function: { index: 0, name: "lookup", arguments: { key: "a" } }, id: "call_a" },
    { function: { index: 1, name: "lookup", arguments: '{"key":"b"}' }, id: "call_a" },
    { function: { index: 2, name: "lookup", arguments: '{"key":' }, id: "call_c" },
  ];
  const streamed = await complete(() =>
    lines([
      chunk({ thinking: "Let me " }),
      chunk({ thinking: "see." }),
      chunk({ content: "Look" }),
      chunk({ content: "ing." }),
      chunk({ tool_calls: calls }),
      chunk({}, "stop"),
    ]), true);
  const whole = await complete(
    () => Response.json(chunk({ thinking: "Let me see.", content: "Looking.", tool_calls: calls }, "stop")),
    false,
  );
  const second = streamed.answer.tool_calls[1].id;
  assertEquals(/^call_[\w-]{36}$/.test(second), true);
  const expected = (provider: string, id: string) => ({
    content: [
      { type: "thinking", thinking: "Let me see.", provider },
      { type: "text", text: "Looking." },
      { type: "tool_call", id: "call_a", name: "lookup", input: { key: "a" } },
      { type: "tool_call", id, name: "lookup", input: { key: "b" } },
      { type: "tool_call", id: "call_c", name: "lookup", input: {} },
    ],
    tool_calls: [
      { id: "call_a", name: "lookup", arguments: { key: "a" } },
      { id, name: "lookup", arguments: { key: "b" } },
      { id: "call_c", name: "lookup", arguments: {} },
    ],
    finish_reason: "tool_calls",
    model: "qwen3:8b",
    usage: { input_tokens: 10, output_tokens: 3, total_tokens: 13, cost_usd: null },
    metadata: { total_duration: 4_883_583_458, load_duration: 1_334_875 },
  });
  assertEquals(streamed.answer, expected(streamed.origin, second));
  assertEquals(whole.answer, expected(whole.origin, whole.answer.tool_calls[1].id));
  const delta = (block_index: number, block_type: string, text: string, more = {}) => ({
    block_index,
    block_type,
    delta: text,
    ...more,
  });
  assertEquals(streamed.deltas, [
    delta(0, "thinking", "Let me "),
    delta(0, "thinking", "see."),
    delta(1, "text", "Look"),
    delta(1, "text", "ing."),
    delta(2, "tool_call", '{"key":"a"}', { id: "call_a", name: "lookup" }),
    delta(3, "tool_call", '{"key":"b"}', { id: second, name: "lookup" }),
    delta(4, "tool_call", '{"key":', { id: "call_c", name: "lookup" }),
  ]);
});

Deno.test("complete() reads objects whose error is null", async () => {
  const { answer } = await complete(
    () => lines([chunk({ content: "Hi" }), chunk({}, "stop")].map((object) => ({ ...object, error: null }))),
    true,
  );
  assertEquals(answer.content, [{ type: "text", text: "Hi" }]);
});

Deno.test("complete() reads how an answer ended", async () => {
  const ends = { stop: "stop", length: "length", load: "load" };
  for (const [reason, expected] of Object.entries(ends)) {
    const { answer } = await complete(() => Response.json(chunk({ content: "x" }, reason)), false);
    assertEquals(answer.finish_reason, expected);
  }
});

Deno.test("complete() makes a call that the model can correct of one that the server could not read", async () => {
  const text = `{"page": 6*7${" ".repeat(2000)}}`;
  const error =
    `error parsing tool call: raw='${text}', err=invalid character '*' after object key:value pair`;
  const forms = [
    () => lines([chunk({ thinking: "hm" }), { error }]),
    () => Response.json({ error }, { status: 500 }),
  ];
  for (const form of forms) {
    const { answer, deltas } = await complete(form, true, [TOOL, OTHER]);
    assertEquals(answer.finish_reason, "tool_calls");
    assertEquals([answer.tool_calls[0].name, answer.tool_calls[0].arguments], ["other", {}]);
    assertEquals((deltas.at(-1) as { delta: string }).delta, text);
    const { type } = await failureOf(complete(form, true, []));
    assertEquals(type, "ProviderUnavailableError");
  }
});

Deno.test("complete() sends no effort to a model that refuses it", async () => {
  await using server = fakeServer(({ body }) =>
    body.think && body.model === "llama3.1:8b"
      ? Response.json({ error: '"llama3.1:8b" does not support thinking' }, { status: 400 })
      : Response.json(chunk({ content: "Hi" }, "stop"))
  );
  const coordinator = new TestCoordinator();
  await mount(coordinator, { base_url: server.url, max_retries: 0, reasoning_effort: "low" });
  const ask = (model: string) => coordinator.providers.ollama!.complete({ messages: [USER], model });
  const degradation = { requested: "think low", actual: "left out", reason: "llama3.1:8b does not think" };
  assertEquals((await ask("llama3.1:8b")).degradation, degradation);
  assertEquals((await ask("llama3.1:8b")).degradation, degradation);
  assertEquals((await ask("qwen3:8b")).degradation, undefined);
  assertEquals(server.requests.map(({ body }) => body.think), ["low", undefined, undefined, "low"]);
  assertEquals(coordinator.hooks.getEvents("provider:retry").length, 1);
});

Deno.test("complete() keeps the tokens of an answer when the server counted none of the request", async () => {
  const fields = { prompt_eval_count: undefined, eval_count: 777 };
  const answerTo = (message: Message) =>
    complete(() => Response.json(chunk({ content: "x" }, "stop", fields)), false, [], message);
  const { usage } = (await answerTo(USER)).answer;
  assertEquals([usage.input_tokens > 0, usage.output_tokens, usage.estimated], [true, 777, true]);
  const long: Message = { role: "user", content: "word ".repeat(2000) };
  assertEquals((await answerTo(long)).answer.degradation, undefined); // it is not known what was left out
});

const NESTED = JSON.stringify({
  error: {
    code: 400,
    message: "request is too large",
    type: "exceed_context_size_error",
    n_prompt_tokens: 9021,
    n_ctx: 8192,
  },
});

const ERRORS: readonly [status: number, error: string, expected: JsonObject][] = [
  [404, "model 'qwen3:8b' not found", {
    type: "NotFoundError",
    message: "Cannot find the model qwen3:8b in Ollama: get it with `ollama pull qwen3:8b`",
  }],
  [404, 'model "qwen3:8b" not found, try pulling it first', {
    type: "NotFoundError",
    message: "Cannot find the model qwen3:8b in Ollama: get it with `ollama pull qwen3:8b`",
  }],
  [400, '"qwen3:8b" does not support tools', { type: "InvalidRequestError" }],
  [
    400,
    "the prompt is longer than the context length currently available to the model; shorten the prompt",
    { type: "ContextLengthError" },
  ],
  [400, "the input length exceeds the context length", { type: "ContextLengthError" }],
  [400, "request (9021 tokens) exceeds the available context size (8192 tokens), try increasing it", {
    type: "ContextLengthError",
    limit_tokens: 8192,
    requested_tokens: 9021,
  }],
  [400, NESTED, {
    type: "ContextLengthError",
    message: "request is too large (exceed_context_size_error, n_prompt_tokens: 9021, n_ctx: 8192)",
    limit_tokens: 8192,
    requested_tokens: 9021,
  }],
  [500, "no user query found in messages", { type: "ContextLengthError" }],
  [500, "model requires more system memory (5.6 GiB) than is available (3.2 GiB)", {
    type: "ProviderUnavailableError",
    message: "model requires more system memory (5.6 GiB) than is available (3.2 GiB); " +
      "choose a smaller model, or a smaller context_window",
  }],
  [500, "llama runner process has terminated", { type: "ProviderUnavailableError", retryable: true }],
  [503, "server busy, please try again", { type: "ProviderUnavailableError", retryable: true }],
  [401, "unauthorized", { type: "AuthenticationError" }],
  [429, "you've reached your hourly usage limit", { type: "QuotaExceededError" }],
];

for (const [status, error, { message = error, retryable = false, ...expected }] of ERRORS) {
  Deno.test(`complete() reads error ${status}: ${error}`, async () => {
    const failed = await failureOf(complete(() => Response.json({ error }, { status }), false));
    const { type, limit_tokens, requested_tokens } = failed;
    const counts = limit_tokens === undefined ? {} : { limit_tokens, requested_tokens };
    assertEquals({ type, ...counts }, expected);
    assertEquals([failed.message, failed.retryable, failed.status_code], [message, retryable, status]);
    const inStream = await failureOf(complete(() => lines([chunk({}), { error }]), true));
    if (status >= 500) assertEquals([inStream.type, inStream.message], [expected.type, message]);
  });
}

Deno.test("complete() reads an answer that is not JSON", async () => {
  const page = () => new Response("<html>proxy</html>", { status: 502 });
  assertEquals((await failureOf(complete(page, false))).message, "<html>proxy</html>");
  const ok = await failureOf(complete(() => new Response("proxy"), true));
  assertEquals(ok.type, "StreamError");
  assertStringIncludes(ok.message, "has no JSON object; check base_url");
});
