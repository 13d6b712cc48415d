/** Answers of the API of `provider-gemini`, field by field. */
import type { ContentBlock, JsonObject, LLMError, Message, ToolSpec } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { mount } from "../../modules/provider-gemini/mod.ts";
import { assertEquals } from "../assert.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { errorBody, event, response } from "./providers/gemini_wire.ts";

const USER: Message = { role: "user", content: "Hello" };

const TOOL: ToolSpec = {
  name: "lookup",
  description: "Looks up.",
  parameters: { type: "object", properties: { key: { $ref: "#/$defs/key" } }, $defs: { key: {} } },
};

/** Calls a provider whose server plays one response. */
async function complete(answer: () => Response, stream: boolean, tools: ToolSpec[] = [TOOL], message = USER) {
  await using server = fakeServer(answer);
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
  const deltas: unknown[] = [];
  const options = stream ? { onDelta: (delta: unknown) => void deltas.push(delta) } : {};
  const answered = await coordinator.providers.gemini!.complete({ messages: [message], tools }, options);
  const origin = `gemini@${new URL(server.url).host}`;
  return { answer: JSON.parse(JSON.stringify(answered)), deltas, origin, requests: server.requests };
}

function sse(chunks: readonly JsonObject[]): Response {
  return new Response(chunks.map(event).join(""), { headers: { "content-type": "text/event-stream" } });
}

async function failureOf(call: Promise<unknown>): Promise<LLMError> {
  return await call.then(() => Promise.reject(new Error("it succeeded")), (error) => error);
}

const CODE = { executableCode: { language: "PYTHON", code: "print(6 * 7)" } };

const OUTPUT = { codeExecutionResult: { outcome: "OUTCOME_OK", output: "42\n" } };

Deno.test("complete() reads every kind of part, streamed and whole", async () => {
  const usageMetadata = {
    promptTokenCount: 100,
    toolUsePromptTokenCount: 7,
    cachedContentTokenCount: 60,
    candidatesTokenCount: 20,
    thoughtsTokenCount: 30,
    totalTokenCount: 157,
  };
  const chunks = [
    response([{ text: "Let me ", thought: true }]),
    response([{ text: "see.", thought: true, thoughtSignature: "c2lnMQ==" }]),
    response([CODE, OUTPUT]),
    response([{ text: "Found" }]),
    response([{ text: "." }, { text: "", thoughtSignature: "c2lnMw==" }]),
    response(
      [
        { functionCall: { id: "fc_1", name: "lookup", args: { key: "a" } }, thoughtSignature: "c2lnNA==" },
        { functionCall: { id: "fc_2", name: "lookup" } },
      ],
      "STOP",
      { usageMetadata },
    ),
  ];
  const streamed = await complete(() => sse(chunks), true);
  const parts = chunks.flatMap(({ candidates }) =>
    (candidates as { content: { parts: JsonObject[] } }[])[0]!.content.parts
  );
  const merged = [
    { text: "Let me see.", thought: true, thoughtSignature: "c2lnMQ==" },
    ...parts.slice(2, 4),
    { text: "Found.", thoughtSignature: "c2lnMw==" },
    ...parts.slice(-2),
  ];
  const whole = await complete(() => Response.json(response(merged, "STOP", { usageMetadata })), false);
  const expected = (provider: string) => ({
    content: [
      { type: "thinking", thinking: "Let me see.", thoughtSignature: "c2lnMQ==", provider },
      { type: "provider_tool_call", id: "ran", name: "code_execution", input: CODE.executableCode, provider },
      {
        type: "provider_tool_result",
        id: "ran",
        name: "code_execution",
        result: OUTPUT.codeExecutionResult,
        provider,
      },
      { type: "text", text: "Found.", thoughtSignature: "c2lnMw==", provider },
      {
        type: "tool_call",
        id: "fc_1",
        name: "lookup",
        input: { key: "a" },
        thoughtSignature: "c2lnNA==",
        provider,
      },
      { type: "tool_call", id: "fc_2", name: "lookup", input: {} },
    ],
    tool_calls: [
      { id: "fc_1", name: "lookup", arguments: { key: "a" } },
      { id: "fc_2", name: "lookup", arguments: {} },
    ],
    finish_reason: "tool_calls",
    model: "gemini-3.8-flash",
    usage: {
      input_tokens: 107,
      output_tokens: 50,
      reasoning_tokens: 30,
      cache_read_tokens: 60,
      total_tokens: 157,
      cost_usd: "0.00022725",
    },
    metadata: { response_id: "resp_1" },
  });
  for (const { answer, origin } of [streamed, whole]) {
    const [, call, result] = answer.content;
    assertEquals(call.id, result.id);
    call.id = result.id = "ran"; // it has none in the API
    assertEquals(answer, expected(origin));
  }
  const delta = (block_index: number, block_type: string, text: string, more = {}) => ({
    block_index,
    block_type,
    delta: text,
    ...more,
  });
  assertEquals(streamed.deltas, [
    delta(0, "thinking", "Let me "),
    delta(0, "thinking", "see."),
    delta(3, "text", "Found"),
    delta(3, "text", "."),
    delta(4, "tool_call", "", { id: "fc_1", name: "lookup" }),
    delta(4, "tool_call", '{"key":"a"}'),
    delta(5, "tool_call", "", { id: "fc_2", name: "lookup" }),
    delta(5, "tool_call", "{}"),
  ]);
});

Deno.test("complete() sends an answer's own parts back, in order and unchanged", async () => {
  const parts = [
    { text: "Let me see.", thought: true, thoughtSignature: "c2lnMQ==" },
    CODE,
    OUTPUT,
    { text: "Found.", thoughtSignature: "c2lnMw==" },
    { functionCall: { name: "lookup", args: { key: "a" }, id: "fc_1" }, thoughtSignature: "c2lnNA==" },
  ];
  await using server = fakeServer((_request, count) =>
    Response.json(response(count === 0 ? parts : [{ text: "Done." }], "STOP"))
  );
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url });
  const provider = coordinator.providers.gemini!;
  const { content } = await provider.complete({ messages: [USER], tools: [TOOL] });
  const stored: Message = { role: "assistant", content };
  const result: Message = { role: "tool", tool_call_id: "fc_1", name: "lookup", content: "found" };
  await provider.complete({ messages: [USER, stored, result], tools: [TOOL] });
  assertEquals(server.requests[1]!.body.contents, [
    { role: "user", parts: [{ text: "Hello" }] },
    { role: "model", parts },
    {
      role: "user",
      parts: [{
        functionResponse: { id: "fc_1", name: "lookup", response: { name: "lookup", content: "found" } },
      }],
    },
  ]);
});

Deno.test("complete() gives calls without an id one of their own", async () => {
  const call = { functionCall: { name: "lookup", args: {} } };
  const { answer } = await complete(() => Response.json(response([call, call], "STOP")), false);
  const ids: string[] = answer.tool_calls.map(({ id }: { id: string }) => id);
  assertEquals([new Set(ids).size, ids.every((id) => /^[\w-]+$/.test(id))], [2, true]);
  assertEquals(answer.content.map(({ id }: ContentBlock) => id), ids);
});

Deno.test("complete() reports that another model answered", async () => {
  const answers: [modelVersion: string, actual: string | undefined][] = [
    ["gemini-3.8-flash", undefined],
    ["gemini-3.8-flash-001", undefined],
    ["gemini-4-argon", "gemini-4-argon"],
  ];
  for (const [modelVersion, actual] of answers) {
    const body = response([{ text: "x" }], "STOP", { modelVersion });
    const { answer } = await complete(() => Response.json(body), false);
    assertEquals([answer.model, answer.degradation?.actual], [modelVersion, actual]);
  }
});

Deno.test("complete() reports that another model answered besides what the request left out", async () => {
  const gif = { type: "image", source: { type: "base64", media_type: "image/gif", data: "AAAA" } };
  const body = response([{ text: "x" }], "STOP", { modelVersion: "gemini-4-argon" });
  const message: Message = { role: "user", content: [gif] };
  const { answer } = await complete(() => Response.json(body), false, [TOOL], message);
  assertEquals(answer.degradation.actual, "a note in its place; gemini-4-argon");
});

const REASONS: readonly [reason: string, parts: JsonObject[], expected: string][] = [
  ["STOP", [{ text: "x" }], "stop"],
  ["STOP", [], "stop"],
  ["MAX_TOKENS", [{ text: "x" }], "length"],
  ["MAX_TOKENS", [{ text: "x", thought: true }], "length"],
  ["CONTINUATION", [{ text: "x" }], "length"],
  ["SAFETY", [{ text: "x" }], "content_filter"],
  ["RECITATION", [{ text: "x" }], "content_filter"],
  ["SOMETHING_NEW", [{ text: "x" }], "something_new"],
  ["SAFETY", [], "ContentFilterError"],
  ["PROHIBITED_CONTENT", [{ text: "x", thought: true }], "ContentFilterError"],
  ["MALFORMED_FUNCTION_CALL", [], "StreamError"],
  ["OTHER", [{ text: "x", thought: true }], "StreamError"],
];

for (const [reason, parts, expected] of REASONS) {
  Deno.test(`complete() reads finishReason ${reason} with ${JSON.stringify(parts)}`, async () => {
    const ended = await complete(() => Response.json(response(parts, reason)), false)
      .then(({ answer }) => answer.finish_reason, (error) => error.type);
    assertEquals(ended, expected);
  });
}

Deno.test("complete() refuses nothing silently: a blocked request is a ContentFilterError", async () => {
  const blocked = { promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata: {} };
  for (const stream of [true, false]) {
    const answer = () => stream ? sse([blocked]) : Response.json(blocked);
    const error = await failureOf(complete(answer, stream));
    assertEquals([error.type, error.message, error.retryable], [
      "ContentFilterError",
      "Cannot get an answer: the API blocked it (PROHIBITED_CONTENT)",
      false,
    ]);
  }
});

Deno.test("complete() makes a call that the model can correct of one that the API could not read", async () => {
  const finishMessage = "Malformed function call: print(default_api.lookup(key='a)";
  const chunk = response([{ text: "hm", thought: true }], "MALFORMED_FUNCTION_CALL");
  Object.assign((chunk.candidates as JsonObject[])[0]!, { finishMessage });
  const call_tool = { ...TOOL, name: "call" };
  const { answer } = await complete(() => sse([chunk]), true, [call_tool, TOOL]);
  const [call] = answer.tool_calls;
  assertEquals(answer.finish_reason, "tool_calls");
  assertEquals([call.name, call.arguments], ["lookup", {}]);
  const other = await failureOf(complete(() => sse([chunk]), true, []));
  assertEquals(other.type, "StreamError");
});

const RETRY = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "23s" };

const PER_DAY = {
  "@type": "type.googleapis.com/google.rpc.QuotaFailure",
  violations: [{ quotaId: "GenerateRequestsPerDayPerProjectPerModel-FreeTier", quotaValue: "50" }],
};

const PER_MINUTE = {
  "@type": "type.googleapis.com/google.rpc.QuotaFailure",
  violations: [{ quotaId: "GenerateContentInputTokensPerModelPerMinute-FreeTier" }],
};

const QUOTA = "You exceeded your current quota, please check your plan and billing details.";

const ERRORS: readonly [body: JsonObject, expected: JsonObject][] = [
  [
    errorBody(
      400,
      "INVALID_ARGUMENT",
      "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
    ),
    { type: "ContextLengthError", retryable: false, limit_tokens: 1_048_576, requested_tokens: 1_200_293 },
  ],
  [errorBody(400, "INVALID_ARGUMENT", 'Unknown name "x"'), { type: "InvalidRequestError", retryable: false }],
  [
    errorBody(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    { type: "AuthenticationError", retryable: false },
  ],
  [
    errorBody(400, "INVALID_ARGUMENT", "Bad.", [{ reason: "API_KEY_INVALID" }]),
    { type: "AuthenticationError", retryable: false },
  ],
  [errorBody(401, "UNAUTHENTICATED", "no"), { type: "AuthenticationError", retryable: false }],
  [errorBody(403, "PERMISSION_DENIED", "no"), { type: "AccessDeniedError", retryable: false }],
  [errorBody(404, "NOT_FOUND", "models/x is not found"), { type: "NotFoundError", retryable: false }],
  [
    errorBody(429, "RESOURCE_EXHAUSTED", QUOTA, [PER_MINUTE, RETRY]),
    { type: "RateLimitError", retryable: true, retry_after: 23 },
  ],
  [
    errorBody(429, "RESOURCE_EXHAUSTED", `${QUOTA} Please retry in 8.5s.`),
    { type: "RateLimitError", retryable: true, retry_after: 8.5 },
  ],
  [
    errorBody(429, "RESOURCE_EXHAUSTED", QUOTA, [PER_DAY, RETRY]),
    { type: "QuotaExceededError", retryable: false, retry_after: 23 },
  ],
  [errorBody(429, "RESOURCE_EXHAUSTED", QUOTA), { type: "QuotaExceededError", retryable: false }],
  [
    errorBody(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    { type: "RateLimitError", retryable: true },
  ],
  [errorBody(500, "INTERNAL", "oops"), { type: "ProviderUnavailableError", retryable: true }],
  [
    errorBody(503, "UNAVAILABLE", "The model is overloaded."),
    { type: "ProviderUnavailableError", retryable: true },
  ],
];

for (const [body, expected] of ERRORS) {
  const { code, message } = body.error as { code: number; message: string };
  Deno.test(`complete() reads error ${code}: ${JSON.stringify(body.error)}`, async () => {
    const forms: (() => Response)[] = [
      () => Response.json(body, { status: code }),
      () => Response.json([body], { status: code }), // a list, as the API sends without alt=sse
      () => new Response(JSON.stringify(body, null, 2), { status: code }), // not marked as JSON
    ];
    for (const form of forms) {
      const { type, retryable, retry_after, limit_tokens, requested_tokens, ...error } = await failureOf(
        complete(form, false),
      );
      const facts = { retry_after: retry_after ?? undefined, limit_tokens, requested_tokens };
      const stated = Object.entries(facts).filter(([, value]) => value !== undefined);
      assertEquals({ type, retryable, ...Object.fromEntries(stated) }, expected);
      assertEquals([error.provider, error.status_code], ["gemini", code]);
    }
    const streamed = await failureOf(complete(() => sse([body]), true));
    assertEquals([streamed.type, streamed.message], [expected.type, message]);
  });
}
