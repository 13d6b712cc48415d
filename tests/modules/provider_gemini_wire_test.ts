/** Requests and answers of `provider-gemini`, field by field. */
import type { ContentBlock, JsonObject, LLMError, Message, ToolSpec } from "preamp";
import { type CallSettings, toConversation, type WireRequest } from "preamp/provider";
import { TestCoordinator } from "preamp/testing";
import { mount } from "../../modules/provider-gemini/mod.ts";
import { toRequest } from "../../modules/provider-gemini/request.ts";
import { assertEquals } from "../assert.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { errorBody, event, response } from "./providers/gemini_wire.ts";

const USER: Message = { role: "user", content: "Hello" };
const TOOL: ToolSpec = {
  name: "lookup",
  description: "Looks up.",
  parameters: { type: "object", properties: { key: { $ref: "#/$defs/key" } }, $defs: { key: {} } },
};
const SEARCH: ToolSpec = { name: "search", parameters: { type: "object" }, googleSearch: {} };
const DECLARATION = { name: "lookup", description: "Looks up.", parametersJsonSchema: TOOL.parameters };
const THOUGHTS = { thinkingConfig: { includeThoughts: true } };

function request(
  fields: Partial<CallSettings> = {},
  messages: Message[] = [USER],
  settings = { include_thoughts: true },
): WireRequest {
  const { conversation } = toConversation(messages, "gemini");
  const call = { model: "gemini-3.8-flash", conversation, tools: [], max_output_tokens: 8000, stream: false };
  return toRequest({ ...call, ...fields }, settings);
}

function configOf(fields: Partial<CallSettings>, messages?: Message[]): JsonObject {
  const { maxOutputTokens: _, ...config } = request(fields, messages).body.config as JsonObject;
  return config;
}

function contentsOf(messages: Message[], model = "gemini-3.8-flash"): unknown {
  return request({ model }, messages).body.contents;
}

Deno.test("toRequest() sends parameters in the API's form", () => {
  const fields = { stop: ["END"], temperature: 0.5, top_p: 0.9 };
  assertEquals(request(fields, [{ role: "system", content: "Be brief." }, USER]), {
    body: {
      model: "gemini-3.8-flash",
      contents: [{ role: "user", parts: [{ text: "Hello" }] }],
      config: {
        systemInstruction: { parts: [{ text: "Be brief." }] },
        maxOutputTokens: 8000,
        temperature: 0.5,
        topP: 0.9,
        stopSequences: ["END"],
        ...THOUGHTS,
      },
    },
  });
  assertEquals(request({}, [USER], { include_thoughts: false }).body.config, { maxOutputTokens: 8000 });
});

function level(thinkingLevel: string): JsonObject {
  return { includeThoughts: true, thinkingLevel };
}

function budget(thinkingBudget: number): JsonObject {
  return { includeThoughts: true, thinkingBudget };
}

const THINKING: readonly [
  fields: Partial<CallSettings>,
  expected: JsonObject | undefined,
  actual?: string,
][] = [
  [{}, { includeThoughts: true }],
  [{ reasoning_effort: "low" }, level("LOW")],
  [{ reasoning_effort: "minimal" }, level("LOW"), "thinking level low"],
  [{ reasoning_effort: "none" }, level("LOW"), "thinking level low"],
  [{ reasoning_effort: "max" }, level("HIGH"), "thinking level high"],
  [{ reasoning_effort: "unheard" }, level("HIGH"), "thinking level high"],
  [{ thinking_budget: 5_000 }, level("MEDIUM"), "thinking level medium"],
  [{ reasoning_effort: "minimal", model: "gemini-3.6-flash" }, level("MINIMAL")],
  [{ reasoning_effort: "minimal", model: "models/gemini-3.1-flash-lite" }, level("MINIMAL")],
  [{ reasoning_effort: "high", model: "gemini-4-argon" }, level("HIGH")],
  [{ reasoning_effort: "low", model: "gemini-flash-latest" }, level("LOW")],
  [{ reasoning_effort: "medium", model: "gemini-2.5-flash" }, budget(8_192)],
  [{ reasoning_effort: "none", model: "gemini-2.5-flash" }, budget(0)],
  [{ thinking_budget: 500, model: "gemini-2.5-flash" }, budget(500)],
  [{ model: "gemini-2.0-flash" }, undefined],
  [{ model: "gemma-4-31b-it", reasoning_effort: "low" }, undefined, "no thinking"],
  [{ model: "gemini-3.8-flash-tts", reasoning_effort: "none" }, undefined],
];

for (const [fields, expected, actual] of THINKING) {
  Deno.test(`toRequest() thinking of ${JSON.stringify(fields)}`, () => {
    const { body, degradation } = request(fields);
    assertEquals([(body.config as JsonObject).thinkingConfig, degradation?.actual], [expected, actual]);
  });
}

const CHOICES: readonly [choice: string | JsonObject, expected: JsonObject][] = [
  ["auto", { functionCallingConfig: { mode: "AUTO" } }],
  ["none", { functionCallingConfig: { mode: "NONE" } }],
  ["required", { functionCallingConfig: { mode: "ANY" } }],
  ["lookup", { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["lookup"] } }],
  [{ functionCallingConfig: { mode: "VALIDATED" } }, { functionCallingConfig: { mode: "VALIDATED" } }],
];

for (const [choice, expected] of CHOICES) {
  Deno.test(`toRequest() tool_choice ${JSON.stringify(choice)}`, () => {
    assertEquals(configOf({ tools: [TOOL], tool_choice: choice }).toolConfig, expected);
  });
}

Deno.test("toRequest() sends schemas as they are, and no choice without tools", () => {
  assertEquals(configOf({ tools: [TOOL] }), {
    tools: [{ functionDeclarations: [DECLARATION] }],
    ...THOUGHTS,
  });
  assertEquals(configOf({ tool_choice: "required" }), THOUGHTS);
});

Deno.test("toRequest() combines functions with tools of the server from Gemini 3 on", () => {
  assertEquals(configOf({ tools: [SEARCH] }), { tools: [{ googleSearch: {} }], ...THOUGHTS });
  assertEquals(configOf({ tools: [SEARCH, TOOL] }), {
    tools: [{ googleSearch: {}, functionDeclarations: [DECLARATION] }],
    toolConfig: { includeServerSideToolInvocations: true },
    ...THOUGHTS,
  });
  const early = request({ tools: [SEARCH, TOOL], model: "gemini-2.5-flash" });
  assertEquals((early.body.config as JsonObject).tools, [{ functionDeclarations: [DECLARATION] }]);
  assertEquals(early.degradation, {
    requested: "googleSearch together with functions",
    actual: "functions only",
    reason: "gemini-2.5-flash does not combine tools of the server with functions",
  });
});

Deno.test("toRequest() asks for JSON, and reports what it cannot do", () => {
  const schema = { type: "object", properties: { n: { type: "integer" } } };
  const response_format = { type: "json_schema" as const, schema };
  const json = { responseMimeType: "application/json", responseJsonSchema: schema };
  assertEquals(configOf({ response_format }), { ...json, ...THOUGHTS });
  assertEquals(configOf({ response_format: { type: "json" } }), {
    responseMimeType: "application/json",
    ...THOUGHTS,
  });
  assertEquals(configOf({ response_format, tools: [TOOL] }).responseJsonSchema, schema);
  const early = request({
    response_format,
    tools: [TOOL, SEARCH],
    model: "gemini-2.5-flash",
    reasoning_effort: "low",
  });
  assertEquals((early.body.config as JsonObject).responseMimeType, undefined);
  assertEquals(early.degradation, {
    requested: "googleSearch together with functions; response_format json_schema",
    actual: "functions only; text",
    reason: "gemini-2.5-flash does not combine tools of the server with functions; " +
      "gemini-2.5-flash does not combine tools with a response format",
  });
});

Deno.test("toRequest() sends images and files", () => {
  const content = [
    { type: "text", text: "Look:" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
    { type: "image_url", image_url: { url: "https://example.com/a.webp?size=2" } },
    { type: "image_url", image_url: { url: "https://example.com/a" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
    {
      type: "document",
      source: { type: "file", file_id: "https://generativelanguage.googleapis.com/v1beta/files/a" },
    },
  ];
  assertEquals(contentsOf([{ role: "user", content }]), [{
    role: "user",
    parts: [
      { text: "Look:" },
      { inlineData: { mimeType: "image/png", data: "AAAA" } },
      { fileData: { fileUri: "https://example.com/a.webp?size=2", mimeType: "image/webp" } },
      { fileData: { fileUri: "https://example.com/a" } },
      { inlineData: { mimeType: "application/pdf", data: "JVBERi0=" } },
      { fileData: { fileUri: "https://generativelanguage.googleapis.com/v1beta/files/a" } },
    ],
  }]);
});

const CALLED: Message = {
  role: "assistant",
  content: [
    { type: "tool_call", id: "call_1", name: "lookup", input: { key: "a" } },
    { type: "tool_call", id: "call_2", name: "lookup", input: { key: "b" } },
  ],
};
const IMAGE = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
const RESULTS: Message[] = [
  { role: "tool", tool_call_id: "call_1", name: "lookup", content: [{ type: "text", text: "see" }, IMAGE] },
  { role: "tool", tool_call_id: "call_2", name: "lookup", content: "no such key", is_error: true },
];

Deno.test("toRequest() signs the first call of another provider, and answers calls by id", () => {
  const call = (id: string, key: string) => ({ functionCall: { id, name: "lookup", args: { key } } });
  const failed = { functionResponse: { id: "call_2", name: "lookup", response: { error: "no such key" } } };
  const image = { inlineData: { mimeType: "image/png", data: "AAAA" } };
  const found = { id: "call_1", name: "lookup", response: { output: "see" } };
  assertEquals(contentsOf([USER, CALLED, ...RESULTS]), [
    { role: "user", parts: [{ text: "Hello" }] },
    {
      role: "model",
      parts: [
        { ...call("call_1", "a"), thoughtSignature: "skip_thought_signature_validator" },
        call("call_2", "b"),
      ],
    },
    { role: "user", parts: [{ functionResponse: { ...found, parts: [image] } }, failed] },
  ]);
  assertEquals(contentsOf([USER, CALLED, ...RESULTS], "gemini-2.5-flash"), [
    { role: "user", parts: [{ text: "Hello" }] },
    { role: "model", parts: [call("call_1", "a"), call("call_2", "b")] },
    { role: "user", parts: [{ functionResponse: found }, image, failed] },
  ]);
});

/** Calls a provider whose server plays one response. */
async function complete(answer: () => Response, stream: boolean, tools: ToolSpec[] = [TOOL]) {
  await using server = fakeServer(answer);
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
  const deltas: unknown[] = [];
  const options = stream ? { onDelta: (delta: unknown) => void deltas.push(delta) } : {};
  const answered = await coordinator.providers.gemini!.complete({ messages: [USER], tools }, options);
  const origin = `gemini@${new URL(server.url).host}`;
  return { answer: JSON.parse(JSON.stringify(answered)), deltas, origin, requests: server.requests };
}

function sse(chunks: readonly JsonObject[]): Response {
  return new Response(chunks.map(event).join(""), { headers: { "content-type": "text/event-stream" } });
}

async function failureOf(call: Promise<unknown>): Promise<LLMError> {
  return await call.then(() => Promise.reject(new Error("it succeeded")), (error) => error);
}

const CODE = { executableCode: { language: "PYTHON", code: "print(6 * 7)" }, thoughtSignature: "c2lnMg==" };
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
      { type: "thinking", thinking: "Let me see.", signature: "c2lnMQ==", provider },
      { type: "gemini_part", part: CODE, provider },
      { type: "gemini_part", part: OUTPUT, provider },
      { type: "text", text: "Found.", thought_signature: "c2lnMw==", provider },
      {
        type: "tool_call",
        id: "fc_1",
        name: "lookup",
        input: { key: "a" },
        thought_signature: "c2lnNA==",
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
      cost_usd: null,
    },
    metadata: { response_id: "resp_1" },
  });
  assertEquals(streamed.answer, expected(streamed.origin));
  assertEquals(whole.answer, expected(whole.origin));
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
    delta(4, "tool_call", '{"key":"a"}', { id: "fc_1", name: "lookup" }),
    delta(5, "tool_call", "{}", { id: "fc_2", name: "lookup" }),
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
      parts: [{ functionResponse: { id: "fc_1", name: "lookup", response: { output: "found" } } }],
    },
  ]);
});

Deno.test("complete() gives calls without an id one of their own", async () => {
  const call = { functionCall: { name: "lookup", args: {} } };
  const { answer } = await complete(() => Response.json(response([call, call], "STOP")), false);
  const ids: string[] = answer.tool_calls.map(({ id }: { id: string }) => id);
  assertEquals([new Set(ids).size, ids.every((id) => /^call_[\w-]{36}$/.test(id))], [2, true]);
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
      "Gemini refused the request: PROHIBITED_CONTENT",
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
