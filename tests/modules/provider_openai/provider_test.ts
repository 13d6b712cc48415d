/**
 * `provider-openai` as a module: the contract, keys, servers that refuse parameters, models, changing
 * providers.
 */
import { assert, assertEquals } from "../../assert.ts";
import type { JsonObject, Message } from "preamp";
import { TestCoordinator, testProvider } from "preamp/testing";
import * as openai from "../../../modules/provider-openai/mod.ts";
import { staticImports } from "../../static_imports.ts";
import { fakeServer } from "../providers/fake_server.ts";
import { mounted } from "./kit.ts";
import {
  chatChunks,
  chunk,
  completion,
  functionCall,
  outputMessage,
  reasoning,
  response,
  sse,
  streamOf,
  usageChunk,
} from "./wire.ts";

const TOOL_CALL = { id: "call_1", type: "function", function: { name: "calculator", arguments: "{}" } };

const server = fakeServer(({ path, body }) => {
  if (path === "/v1/models") {
    return Response.json({ object: "list", data: [{ id: "local", object: "model" }] });
  }
  if (body.model === "unknown") {
    return Response.json({ error: { message: "No such model" } }, { status: 404 });
  }
  if (path === "/v1/responses") {
    const output = body.tools ? [functionCall("call_1", "calculator", "{}")] : [outputMessage("Hello")];
    return body.stream ? sse(streamOf(output)) : Response.json(response(output));
  }
  if (body.tools) return Response.json(completion({ tool_calls: [TOOL_CALL] }, "tool_calls"));
  if (!body.stream) return Response.json(completion({ content: "Hello" }));
  return sse(chatChunks([chunk({ content: "Hello" }), chunk({}, "stop"), usageChunk()]));
});
Deno.test.afterAll(async () => await server[Symbol.asyncDispose]());

for (const api of ["responses", "chat"]) {
  testProvider(`provider-openai, ${api}`, () => openai, {
    config: { api, api_key: "sk-test", base_url: `${server.url}/v1/`, max_retries: 0 },
    tool_request: {
      messages: [{ role: "user", content: "What is 6 * 7?" }],
      tools: [{ name: "calculator", parameters: { type: "object" } }],
    },
    failing_request: { model: "unknown", messages: [{ role: "user", content: "Hi" }] },
  });
}

Deno.test("OpenAI's client is imported at the first call, not with the module", async () => {
  const imports = await staticImports(
    new URL("../../../modules/provider-openai/mod.ts", import.meta.url).pathname,
  );
  assertEquals(
    imports.filter((specifier) => specifier.startsWith("npm:") && !/zod|json-schema/.test(specifier)),
    [],
  );
});

Deno.test("mount() without a key is skipped and says what to do", async () => {
  assertEquals(await openai.mount(new TestCoordinator(), {}), {
    skipped: "Cannot use provider-openai without a key: set the variable OPENAI_API_KEY; " +
      "keys are created at https://platform.openai.com/api-keys",
  });
});

Deno.test("a server of one's own needs no key, and none is sent", async () => {
  await using local = await mounted(() => Response.json(completion({ content: "Hi" })), {
    api_key: undefined,
  });
  await local.ask("Hi");
  assertEquals(local.requests[0]?.headers.get("authorization"), null);
  assertEquals(local.requests[0]?.path, "/v1/chat/completions");
});

Deno.test("requests have the key, the plan's headers, and nothing of the environment", async () => {
  const names = {
    OPENAI_ORG_ID: "org-env",
    OPENAI_PROJECT_ID: "proj-env",
    OPENAI_CUSTOM_HEADERS: "X-Env: secret",
    OPENAI_BASE_URL: "http://127.0.0.1:1/",
    OPENAI_ADMIN_KEY: "sk-admin",
  };
  for (const [name, value] of Object.entries(names)) Deno.env.set(name, value);
  try {
    await using local = await mounted(() => Response.json(completion({ content: "Hi" })), {
      headers: { "X-Title": "Preamp" },
    });
    await local.ask("Hi");
    const headers = Object.fromEntries(local.requests[0]!.headers);
    assertEquals([headers.authorization, headers["x-title"]], ["Bearer sk-test", "Preamp"]);
    assertEquals(
      Object.entries(headers).filter(([name, value]) => /env|secret|admin/.test(name + value)),
      [],
    );
  } finally {
    for (const name of Object.keys(names)) Deno.env.delete(name);
  }
});

Deno.test({
  name: "a request needs no permission to read variables",
  permissions: { env: false, net: ["127.0.0.1"] },
  async fn() {
    await using local = await mounted(() => Response.json(completion({ content: "Hi" })));
    await local.ask("Hi");
    assertEquals(local.requests.length, 1);
  },
});

Deno.test("getInfo() knows OpenAI's models, and takes the sizes of others from the plan", async () => {
  const infoOf = async (config: JsonObject) => {
    const coordinator = new TestCoordinator();
    await openai.mount(coordinator, { api_key: "sk-test", ...config });
    const { defaults, capabilities, config_fields } = coordinator.providers.openai!.getInfo();
    const needs_key = config_fields.find(({ id }) => id === "api_key")?.required;
    return { defaults, structured: capabilities.includes("structured_output"), needs_key };
  };
  assertEquals(await infoOf({}), {
    defaults: { model: "gpt-6.1-terra", context_window: 1_050_000, max_output_tokens: 32_000 },
    structured: true,
    needs_key: true,
  });
  assertEquals(await infoOf({ model: "gpt-4o-2024-08-06" }), {
    defaults: { model: "gpt-4o-2024-08-06", context_window: 128_000, max_output_tokens: 16_384 },
    structured: true,
    needs_key: true,
  });
  assertEquals(
    await infoOf({
      model: "llama",
      base_url: "http://localhost:8000/v1",
      context_window: 8192,
      max_output_tokens: 512,
    }),
    {
      defaults: { model: "llama", context_window: 8192, max_output_tokens: 512 },
      structured: false,
      needs_key: false,
    },
  );
});

Deno.test("listModels() reads the sizes that servers state", async () => {
  await using local = await mounted(() =>
    Response.json({
      data: [
        { id: "a", name: "A", context_length: 1000, top_provider: { max_completion_tokens: 100 } },
        { id: "b", max_model_len: 2000 },
        { id: "c", context_window: 3000, max_completion_tokens: 300 },
        { no_id: true },
      ],
    }), { max_output_tokens: 50 });
  assertEquals(
    (await local.provider.listModels()).map((model) => [
      model.id,
      model.display_name,
      model.context_window,
      model.max_output_tokens,
    ]),
    [["a", "A", 1000, 100], ["b", "b", 2000, 50], ["c", "c", 3000, 300]],
  );
});

/** Refusals of a parameter: the server's answer, and the name in the body. */
const REFUSALS: Record<string, [api: string, name: string, error: unknown]> = {
  "OpenAI's form": ["chat", "temperature", {
    error: {
      message: "Unsupported value: 'temperature' does not support 0.2 with this model.",
      param: "temperature",
      code: "unsupported_value",
    },
  }],
  "Groq's form": ["chat", "stream_options", {
    error: { message: "property 'stream_options' is unsupported" },
  }],
  "a form without an error object": ["chat", "reasoning_effort", {
    object: "error",
    message: "`reasoning_effort` is not supported by this model",
    code: 400,
  }],
  "an error that is a text": ["chat", "temperature", { error: "'temperature' is not supported" }],
  "a summary for verified organizations": ["responses", "reasoning", {
    error: {
      message: "Your organization must be verified to generate reasoning summaries.",
      param: "reasoning.summary",
      code: "unsupported_value",
    },
  }],
  "encrypted reasoning": ["responses", "include", {
    error: { message: "Encrypted content is not supported with this model.", param: "include" },
  }],
};

for (const [name, [api, parameter, error]] of Object.entries(REFUSALS)) {
  Deno.test(`a refused parameter is left out from then on: ${name}`, async () => {
    await using local = await mounted(({ body }) => {
      if (body[parameter] !== undefined) return Response.json(error, { status: 400 });
      if (api === "responses") return sse(streamOf([outputMessage("Hi")]));
      return sse(chatChunks([chunk({ content: "Hi" }, "stop")]));
    }, { api, model: api === "chat" ? "local" : "gpt-5" });
    const call = { temperature: 0.2, reasoning_effort: undefined as string | undefined };
    if (parameter === "reasoning_effort") call.reasoning_effort = "low";
    const request = JSON.parse(JSON.stringify(api === "chat" ? call : {}));
    const first = await local.stream("Hi", request);
    const second = await local.stream("Hi", request);
    assertEquals(first.answer.content, [{ type: "text", text: "Hi" }]);
    assertEquals(local.requests.map(({ body }) => body[parameter] !== undefined), [true, false, false]);
    assertEquals(first.answer.degradation, second.answer.degradation);
    const isReported = parameter === "temperature" || parameter === "reasoning_effort";
    assertEquals(
      first.answer.degradation?.reason,
      isReported ? "the server refused it for this model" : undefined,
    );
  });
}

Deno.test("a server that knows another name of the maximum of tokens gets it", async () => {
  await using local = await mounted(({ body }) =>
    body.max_tokens === undefined ? Response.json(completion({ content: "Hi" })) : Response.json({
      error: {
        message: "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
        param: "max_tokens",
        code: "unsupported_parameter",
      },
    }, { status: 400 })
  );
  await local.ask("Hi");
  assertEquals(local.requests.map(({ body }) => [body.max_tokens, body.max_completion_tokens]), [
    [4096, undefined],
    [undefined, 4096],
  ]);
});

/** Messages of servers about `max_tokens`, with the maximum that each states. */
const OUTPUT_LIMITS: readonly (readonly [message: string, limit: number])[] = [
  ["max_tokens is too large: 4096. This model supports at most 2048 completion tokens.", 2048],
  ["`max_tokens` must be less than or equal to `2048`, the maximum value for `max_tokens`", 2048],
  ["Invalid max_tokens value, the valid range of max_tokens is [1, 2048]", 2048],
  [
    "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 " +
    "tokens and your request has 50 input tokens (4096 > 4096 - 50).",
    4046,
  ],
];

Deno.test("a maximum of the answer that is too large for the server is lowered to what it states", async () => {
  for (const [message, limit] of OUTPUT_LIMITS) {
    await using local = await mounted(({ body }) =>
      Number(body.max_tokens) > limit
        ? Response.json({ error: { message, type: "invalid_request_error" } }, { status: 400 })
        : Response.json(completion({ content: "Hi" }))
    );
    await local.ask("Hi");
    assertEquals(local.requests.map(({ body }) => body.max_tokens), [4096, limit]);
  }
});

Deno.test("a request that leaves no room for an answer is too long", async () => {
  const message =
    "'max_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your " +
    "request has 4090 input tokens (4096 > 4096 - 4090).";
  await using local = await mounted(() => Response.json({ error: { message } }, { status: 400 }));
  const error = await local.ask("Hi").catch((error) => error);
  assertEquals([error.type, local.requests.length], ["ContextLengthError", 1]);
});

Deno.test("what a server refuses is known to the next attempt, and to calls at the same time", async () => {
  const error = { message: "Unsupported parameter", param: "temperature", code: "unsupported_parameter" };
  let limited = true;
  await using local = await mounted(({ body }) => {
    if (body.temperature !== undefined) return Response.json({ error }, { status: 400 });
    if (!limited) return Response.json(completion({ content: "Hi" }));
    limited = false;
    return Response.json({ error: { message: "Slow down" } }, {
      status: 429,
      headers: { "retry-after-ms": "1" },
    });
  }, { model: "local", temperature: 0, max_retries: 1 });
  await Promise.all([local.ask("Hi"), local.ask("Hi")]);
  assertEquals(local.requests.map(({ body }) => body.temperature ?? null).toSorted(), [
    0,
    0,
    null,
    null,
    null,
  ]);
});

Deno.test("a header that HTTP does not allow is an error of the configuration", async () => {
  const config = { headers: { "X Title": "Preamp" } };
  await using local = await mounted(() => Response.json(completion({ content: "Hi" })), config);
  const error = await local.ask("Hi").catch((error) => error);
  assertEquals([error.type, error.retryable, error.message], [
    "ConfigurationError",
    false,
    "Cannot send the request: a name or value in headers has characters that HTTP does not allow",
  ]);
});

Deno.test("a key with a character that no header takes is named as that, without the key", async () => {
  for (
    const [api_key, found] of [["sk-secret…123", "U+2026 at character 10"], [
      "sk\n1",
      "U+000A at character 3",
    ]]
  ) {
    const error = await mounted(() => new Response(), { api_key }).catch((error) => error);
    assertEquals([error.code, error.message], [
      "module_invalid",
      `Cannot read config.api_key: must be a key, but ${found} is in no key`,
    ]);
  }
});

Deno.test("a server that may not stream is asked for a whole answer", async () => {
  await using local = await mounted(({ body }) =>
    body.stream
      ? Response.json({
        error: {
          message: "Your organization must be verified to stream this model.",
          param: "stream",
          code: "unsupported_value",
        },
      }, { status: 400 })
      : Response.json(response([outputMessage("Hi")])), { api: "responses" });
  const { answer, deltas } = await local.stream("Hi");
  assertEquals([answer.content, deltas.map(({ delta }) => delta)], [[{ type: "text", text: "Hi" }], ["Hi"]]);
});

Deno.test("a refused response format is described in words", async () => {
  await using local = await mounted(({ body }) =>
    body.response_format === undefined
      ? Response.json(completion({ content: "{}" }))
      : Response.json({ error: { message: "This response_format type is unavailable now" } }, { status: 400 })
  );
  const schema = { type: "object", properties: {}, required: [] };
  const answer = await local.ask("Hi", { response_format: { type: "json_schema", schema } });
  assertEquals(local.requests.at(-1)?.body.messages, [
    {
      role: "system",
      content: "Answer with JSON alone: no other text, no code fence. It must match this JSON Schema:\n" +
        JSON.stringify(schema),
    },
    { role: "user", content: "Hi" },
  ]);
  assertEquals(answer.degradation?.actual, "instruction");
});

Deno.test("a parameter that must be there is not left out", async () => {
  await using local = await mounted(() =>
    Response.json({ error: { message: "Unsupported model", param: "model", code: "unsupported_value" } }, {
      status: 400,
    })
  );
  const error = await local.ask("Hi").catch((error) => error);
  assertEquals([error.type, local.requests.length], ["InvalidRequestError", 1]);
});

/** Returns the assistant message that a loop stores for an answer. */
function stored({ content, tool_calls }: JsonObject): Message {
  const calls = (tool_calls ?? []) as { id: string; name: string; arguments: JsonObject }[];
  return {
    role: "assistant",
    content: content as Message["content"],
    ...(calls.length > 0
      ? {
        tool_calls: calls.map(({ id, name, arguments: args }) => ({ id, name, tool: name, arguments: args })),
      }
      : {}),
  };
}

Deno.test("reasoning goes back with the next request; what the server cannot read is left out", async () => {
  const item = reasoning(["Hm"], "gAAA");
  let readable = true;
  await using local = await mounted(({ body }, count) => {
    const input = body.input as JsonObject[];
    if (!readable && input.some(({ type }) => type === "reasoning")) {
      const message = "The encrypted content gAAA could not be verified.";
      return Response.json({ error: { message, code: "invalid_encrypted_content" } }, { status: 400 });
    }
    return Response.json(
      response(count === 0 ? [item, functionCall("c", "look", "{}")] : [outputMessage("A dot")]),
    );
  }, { api: "responses", model: "gpt-5" });
  const tools = [{ name: "look", parameters: { type: "object" } }];
  const first = await local.ask("Hi", { tools });
  const history: Message[] = [
    { role: "user", content: "Hi" },
    stored(first),
    { role: "tool", tool_call_id: "c", name: "look", content: "a dot" },
  ];
  await local.ask(history, { tools });
  const call = { type: "function_call", call_id: "c", name: "look", arguments: "{}" };
  const output = { type: "function_call_output", call_id: "c", output: "a dot" };
  const { id, type, summary, encrypted_content } = item;
  assertEquals((local.requests.at(-1)!.body.input as JsonObject[]).slice(1), [
    { type, id, summary, encrypted_content },
    call,
    output,
  ]);
  readable = false;
  await local.ask(history, { tools });
  assertEquals((local.requests.at(-1)!.body.input as JsonObject[]).slice(1), [call, output]);
});

Deno.test("a session that changes its provider continues without the other's thinking", async () => {
  await using local = await mounted(() => Response.json(response([outputMessage("Yes")])), {
    api: "responses",
  });
  await local.ask([
    { role: "user", content: "Look" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm", signature: "EqQB", provider: "anthropic" },
        { type: "redacted_thinking", data: "EmwK", provider: "anthropic" },
        { type: "text", text: "I look." },
        { type: "tool_call", id: "toolu_01", name: "look", input: {} },
      ],
      tool_calls: [{ id: "toolu_01", name: "look", tool: "look", arguments: {} }],
    },
    { role: "tool", tool_call_id: "toolu_01", name: "look", content: "a dot" },
    { role: "assistant", content: [{ type: "text", text: "A dot." }] },
    { role: "user", content: "Sure?" },
  ]);
  assertEquals(local.requests[0]?.body.input, [
    { role: "user", content: [{ type: "input_text", text: "Look" }] },
    { role: "assistant", content: "I look." },
    { type: "function_call", call_id: "toolu_01", name: "look", arguments: "{}" },
    { type: "function_call_output", call_id: "toolu_01", output: "a dot" },
    { role: "assistant", content: "A dot." },
    { role: "user", content: [{ type: "input_text", text: "Sure?" }] },
  ]);
});

Deno.test("the key is in no event, error or answer", async () => {
  const key = "sk-canary-1234567890";
  const echo = `Incorrect API key provided: ${key}. Header: Bearer ${key}`;
  await using local = await mounted(
    ({ body }) =>
      body.model === "good"
        ? Response.json(completion({ content: "Hi" }))
        : Response.json({ error: { message: echo, code: "server_error" } }, { status: 500 }),
    { api_key: key, raw: true, max_retries: 0 },
  );
  const answer = await local.ask("Hi", { model: "good" });
  const error = await local.ask("Hi", { model: "bad" }).catch((error) => error);
  assertEquals(error.type, "ProviderUnavailableError");
  const seen = JSON.stringify([local.coordinator.hooks.events, answer, { ...error, message: error.message }]);
  assert(!seen.includes(key), seen);
  assert(!Deno.inspect(error, { depth: 10 }).includes(key), Deno.inspect(error, { depth: 10 }));
});

Deno.test("an aborted call ends at once with an AbortError", async () => {
  for (const api of ["responses", "chat"]) {
    const abort = new AbortController();
    await using local = await mounted(() => {
      setTimeout(() => abort.abort(), 20);
      return new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode(": hi\n\n")),
        }),
        {
          headers: { "content-type": "text/event-stream" },
        },
      );
    }, { api });
    const request = { messages: [{ role: "user" as const, content: "Hi" }] };
    const error = await local.provider.complete(request, { signal: abort.signal, onDelta() {} }).catch((
      error,
    ) => error);
    assertEquals(error.type, "AbortError");
  }
});

Deno.test("a redirect is not followed: another address needs the plan's consent", async () => {
  await using other = fakeServer(() => Response.json(completion({ content: "Hi" })));
  const location = `${other.url}/v1/chat/completions`;
  await using local = await mounted(() => new Response(null, { status: 307, headers: { location } }), {
    headers: { "X-Secret": "s3cret" },
    max_retries: 2,
  });
  const error = await local.ask("Hi").catch((error) => error);
  assertEquals([error.type, error.message], [
    "InvalidRequestError",
    `Cannot send the request: ${local.url}/v1/chat/completions redirects to ${location}; ` +
    "set base_url to the address that answers",
  ]);
  assertEquals([local.requests.length, other.requests.length], [1, 0]);
});
