/** Errors of OpenAI and of servers with its API, as the provider rejects with them. */
import { assertEquals, assertMatch } from "../../assert.ts";
import type { JsonObject, LLMError } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { mount } from "../../../modules/provider-openai/mod.ts";
import { mounted } from "./kit.ts";
import { chatChunks, chunk, outputMessage, response, responseEvents, sse } from "./wire.ts";

/** Resolves to the failure of a call that is answered with `reply`. */
async function failureOf(reply: () => Response, config: JsonObject = {}, stream = false): Promise<LLMError> {
  await using server = await mounted(reply, config);
  const call = stream ? server.stream("Hi") : server.ask("Hi");
  return await call.then(() => Promise.reject(new Error("the call must fail")), (error) => error);
}

interface Expected {
  type: string;
  message?: RegExp;
  retryable?: boolean;
  retry_after?: number;
  limit_tokens?: number;
  requested_tokens?: number;
}

/** Status, error object (or whole body), and headers of an answer, and the error that it becomes. */
const ANSWERS: Record<
  string,
  [status: number, body: unknown, expected: Expected, headers?: Record<string, string>]
> = {
  "a wrong key": [
    401,
    {
      error: {
        message: "Incorrect API key provided",
        type: "invalid_request_error",
        code: "invalid_api_key",
      },
    },
    { type: "AuthenticationError", message: /^Incorrect API key provided$/, retryable: false },
  ],
  "a forbidden country": [
    403,
    { error: { message: "Country not supported", code: "unsupported_country_region_territory" } },
    { type: "AccessDeniedError", retryable: false },
  ],
  "an unknown model": [
    404,
    {
      error: {
        message: "The model `gpt-9` does not exist",
        type: "invalid_request_error",
        code: "model_not_found",
      },
    },
    { type: "NotFoundError", message: /^The model `gpt-9` does not exist$/ },
  ],
  "a wrong path": [
    404,
    "404 page not found",
    {
      type: "InvalidRequestError",
      message: /^404 page not found; check base_url: most servers need a path such as \/v1$/,
    },
  ],
  "a rate limit": [
    429,
    { error: { message: "Rate limit reached. Please try again in 20s.", code: "rate_limit_exceeded" } },
    { type: "RateLimitError", retryable: true, retry_after: 20 },
    { "retry-after": "20" },
  ],
  "a rate limit in milliseconds": [
    429,
    { error: { message: "Rate limit reached", code: "rate_limit_exceeded" } },
    { type: "RateLimitError", retryable: true, retry_after: 1.5 },
    { "retry-after-ms": "1500", "retry-after": "2" },
  ],
  "a used-up quota": [
    429,
    {
      error: {
        message: "You exceeded your current quota",
        type: "insufficient_quota",
        code: "insufficient_quota",
      },
    },
    { type: "QuotaExceededError", retryable: false },
  ],
  "no credits": [402, { error: { message: "Insufficient credits", code: 402 } }, {
    type: "QuotaExceededError",
  }],
  "a request of more tokens than a minute's limit": [
    429,
    {
      error: {
        message:
          "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 45000.",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    },
    { type: "ContextLengthError", retryable: false, limit_tokens: 30000, requested_tokens: 45000 },
  ],
  "a request that is too long": [
    400,
    {
      error: {
        message:
          "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. " +
          "Please reduce the length of the messages.",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      },
    },
    { type: "ContextLengthError", retryable: false, limit_tokens: 8192, requested_tokens: 9001 },
  ],
  "a request that is too long with its answer": [
    400,
    {
      error: {
        message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens " +
          "(4000 in the messages, 1000 in the completion).",
        code: "context_length_exceeded",
      },
    },
    { type: "ContextLengthError", limit_tokens: 3096, requested_tokens: 4000 },
  ],
  "a request that is too long, without numbers": [
    400,
    {
      error: {
        message:
          "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code: "context_length_exceeded",
      },
    },
    { type: "ContextLengthError", retryable: false },
  ],
  "a request that is too long for llama.cpp": [
    400,
    {
      error: {
        code: 400,
        message: "the request exceeds the available context size, try increasing it",
        type: "exceed_context_size_error",
        n_prompt_tokens: 9001,
        n_ctx: 8192,
      },
    },
    { type: "ContextLengthError", limit_tokens: 8192, requested_tokens: 9001 },
  ],
  "a request that is too long for vLLM, which states no error object": [
    400,
    {
      object: "error",
      message:
        "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.",
      type: "BadRequestError",
      code: 400,
    },
    { type: "ContextLengthError", limit_tokens: 4096, requested_tokens: 5000 },
  ],
  "a filtered prompt": [
    400,
    { error: { message: "The response was filtered", code: "content_filter" } },
    { type: "ContentFilterError", retryable: false },
  ],
  "a flagged prompt": [
    400,
    {
      error: {
        message: "Invalid prompt: flagged as potentially violating our usage policy",
        code: "invalid_prompt",
      },
    },
    { type: "ContentFilterError" },
  ],
  "a wrong request": [
    400,
    {
      error: { message: "Invalid type for 'messages'", type: "invalid_request_error", code: "invalid_type" },
    },
    { type: "InvalidRequestError", retryable: false },
  ],
  "a wrong request to FastAPI": [
    422,
    { detail: [{ loc: ["body", "model"], msg: "Field required" }] },
    { type: "InvalidRequestError", message: /Field required/ },
  ],
  "an error that is a text": [400, { error: "model is not loaded" }, {
    type: "InvalidRequestError",
    message: /^model is not loaded$/,
  }],
  "a conflict": [409, { error: { message: "Conflict" } }, {
    type: "ProviderUnavailableError",
    retryable: true,
  }],
  "a server error": [
    500,
    { error: { message: "The server had an error", type: "server_error" } },
    { type: "ProviderUnavailableError", retryable: true },
  ],
  "a server error that must not be retried": [
    500,
    { error: { message: "The server had an error", type: "server_error" } },
    { type: "ProviderUnavailableError", retryable: false },
    { "x-should-retry": "false" },
  ],
  "a page of a proxy": [
    502,
    `<html>${"x".repeat(5000)}</html>`,
    { type: "ProviderUnavailableError", message: /^.{0,310}$/ },
  ],
  "a code that is a word of all objects": [
    400,
    { error: { message: "Bad", code: "constructor", type: "toString" } },
    { type: "InvalidRequestError", message: /^Bad$/ },
  ],
  "an error of the vendor behind OpenRouter": [
    400,
    { error: { message: "Provider returned error", code: 400, metadata: { raw: "schema is invalid" } } },
    { type: "InvalidRequestError", message: /^Provider returned error: schema is invalid$/ },
  ],
};

for (const [name, [status, body, expected, headers]] of Object.entries(ANSWERS)) {
  Deno.test(`${name} is a ${expected.type}`, async () => {
    for (const config of [{}, { api: "responses" }]) {
      const error = await failureOf(
        () =>
          typeof body === "string"
            ? new Response(body, { status, headers: { ...headers, "content-type": "text/html" } })
            : Response.json(body, { status, ...(headers ? { headers } : {}) }),
        config,
      );
      const { message = /./, ...facts } = expected;
      const { type, status_code, retryable, retry_after, limit_tokens, requested_tokens } = error;
      const received = { type, retryable, retry_after, limit_tokens, requested_tokens };
      assertEquals(status_code, status);
      assertMatch(error.message, message);
      for (const [field, value] of Object.entries(facts)) {
        assertEquals([field, received[field as keyof typeof received]], [field, value]);
      }
    }
  });
}

Deno.test("an error with status 200 is an error", async () => {
  const openrouter = { error: { message: "Rate limited upstream", code: 429 } };
  const upstream = await failureOf(() => Response.json(openrouter));
  assertEquals([upstream.type, upstream.message], ["RateLimitError", "Rate limited upstream"]);
  const failed = response([], { status: "failed", error: { code: "server_error", message: "It broke" } });
  const whole = await failureOf(() => Response.json(failed), { api: "responses" });
  assertEquals([whole.type, whole.message, whole.retryable], ["ProviderUnavailableError", "It broke", true]);
});

Deno.test("an error within a stream is an error", async () => {
  const failed = response([], {
    status: "failed",
    error: { code: "rate_limit_exceeded", message: "Slow down" },
  });
  for (
    const [events, type] of [
      [[{ type: "response.failed", response: failed }], "RateLimitError"],
      [
        [{ type: "error", code: "context_length_exceeded", message: "Too long", param: null }],
        "ContextLengthError",
      ],
      [[{ type: "error", error: { type: "server_error", message: "It broke" } }], "ProviderUnavailableError"],
      [[{ type: "response.created", response: response([]) }], "StreamError"],
    ] as const
  ) {
    assertEquals((await failureOf(() => sse(responseEvents(events)), { api: "responses" }, true)).type, type);
  }
  const unnamed = `data: ${JSON.stringify({ type: "error", code: "server_error", message: "It broke" })}\n\n`;
  const error = await failureOf(() => sse(unnamed), { api: "responses" }, true);
  assertEquals([error.type, error.message], ["ProviderUnavailableError", "It broke"]);
  for (const reason of ["insufficient_system_resource", "network_error"]) {
    const chat = await failureOf(
      () => sse(chatChunks([chunk({ content: "Hel" }), chunk({}, reason)])),
      {},
      true,
    );
    assertEquals(chat.type, "ProviderUnavailableError");
  }
});

Deno.test("an error with status 200 may be a text alone", async () => {
  for (const config of [{}, { api: "responses" }]) {
    const replies = [() => Response.json({ error: "It broke" }), () => sse('data: {"error":"It broke"}\n\n')];
    for (const [index, reply] of replies.entries()) {
      const error = await failureOf(reply, config, index === 1);
      assertEquals([error.type, error.message], ["ProviderUnavailableError", "It broke"]);
    }
  }
});

Deno.test("an answer of another kind of server says what to check", async () => {
  for (const config of [{}, { api: "responses" }]) {
    for (const reply of [() => new Response("Welcome"), () => Response.json({ ok: true })]) {
      const error = await failureOf(reply, config);
      assertEquals(error.type, "InvalidRequestError");
      assertMatch(error.message, /^Cannot read the answer: .*; check base_url$/);
    }
  }
});

Deno.test("a server that is not there is a NetworkError that names its address", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const base_url = `http://127.0.0.1:${listener.addr.port}/v1`;
  listener.close();
  const error = await failureOf(() => Response.json(outputMessage("")), { base_url });
  assertEquals([error.type, error.retryable], ["NetworkError", true]);
  assertMatch(error.message, /^Cannot reach the API: nothing listens at .*127\.0\.0\.1/);
});

Deno.test({
  name: "a server that the process may not connect to is an error of the configuration",
  permissions: { net: false, read: true, env: true },
  fn: async () => {
    const coordinator = new TestCoordinator();
    await mount(coordinator, { base_url: "http://127.0.0.1:59999/v1" });
    const request = { messages: [{ role: "user" as const, content: "Hi" }] };
    const error: LLMError = await coordinator.providers.openai!.complete(request).catch((error) => error);
    assertEquals([error.type, error.retryable], ["ConfigurationError", false]);
    assertMatch(error.message, /^Cannot reach the API: Requires net access to "127\.0\.0\.1:59999"/);
  },
});
