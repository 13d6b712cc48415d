/** Requests of `provider-gemini`, field by field. */
import type { JsonObject, Message, ToolSpec } from "preamp";
import { type CallSettings, toConversation, type WireRequest } from "preamp/provider";
import type { Content } from "../../modules/provider-gemini/client_types.ts";
import { toRequest } from "../../modules/provider-gemini/request.ts";
import { assertEquals } from "../assert.ts";

const USER: Message = { role: "user", content: "Hello" };

const TOOL: ToolSpec = {
  name: "lookup",
  description: "Looks up.",
  parameters: { type: "object", properties: { key: { $ref: "#/$defs/key" } }, $defs: { key: {} } },
};

const SEARCH: ToolSpec = { name: "search", parameters: { type: "object" }, googleSearch: {} };

const DECLARATION = {
  name: "lookup",
  description: "Looks up.",
  parametersJsonSchema: { type: "object", properties: { key: {} } },
};

const THOUGHTS = { thinkingConfig: { includeThoughts: true } };

function request(
  fields: Partial<CallSettings> = {},
  messages: Message[] = [USER],
  settings = { include_thoughts: true },
): WireRequest {
  const { conversation } = toConversation(messages, "gemini");
  const call = { model: "gemini-3.8-flash", conversation, tools: [], max_output_tokens: 8000, stream: false };
  const { context: _, ...wire } = toRequest({ ...call, ...fields }, settings);
  return wire;
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
    degradation: undefined,
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

Deno.test("toRequest() sends schemas without references, and no choice without tools", () => {
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

Deno.test("toRequest() asks for no JSON beside a call that is required, which the API refuses together", () => {
  const fields = { response_format: { type: "json" as const }, tools: [TOOL], tool_choice: "required" };
  const { body, degradation } = request(fields);
  assertEquals((body.config as JsonObject).responseMimeType, undefined);
  assertEquals(degradation, {
    requested: "response_format json",
    actual: "text",
    reason: "gemini-3.8-flash does not combine a required call with a response format",
  });
  assertEquals(configOf({ ...fields, tool_choice: "auto" }).responseMimeType, "application/json");
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

Deno.test("toRequest() sends a note in the place of images that the API refuses, and texts as plain texts", () => {
  const gif = { type: "image", source: { type: "base64", media_type: "image/gif", data: "AAAA" } };
  const yaml = { type: "file", file: { filename: "a.yaml", file_data: "data:text/yaml;base64,AAAA" } };
  const { body, degradation } = request({}, [
    { role: "user", content: [gif, yaml] },
    { role: "assistant", content: [{ type: "tool_call", id: "call_1", name: "draw", input: {} }] },
    { role: "tool", tool_call_id: "call_1", name: "draw", content: [{ type: "text", text: "see" }, gif] },
  ]);
  const note = "[The image image/gif cannot be shown to this model.]";
  const [question, , results] = body.contents as Content[];
  assertEquals(question!.parts, [{ text: note }, { inlineData: { mimeType: "text/plain", data: "AAAA" } }]);
  assertEquals(results!.parts[0]!.functionResponse, {
    id: "call_1",
    name: "draw",
    response: { output: `see\n\n${note}` },
  });
  assertEquals(degradation, {
    requested: "image image/gif",
    actual: "a note in its place",
    reason: "the API takes PNG, JPEG, WebP, HEIC and HEIF only",
  });
});

Deno.test("toRequest() sends a note for an image that the API refuses, also for a URL and for a file", () => {
  const { body } = request({}, [{
    role: "user",
    content: [
      { type: "image_url", image_url: { url: "https://example.com/a.gif?size=2" } },
      { type: "image", source: { type: "url", url: "https://example.com/a", media_type: "image/gif" } },
      { type: "file", file: { filename: "a.gif", file_data: "data:image/gif;base64,AAAA" } },
      { type: "file", file: { filename: "a.png", file_data: "data:image/png;base64,AAAA" } },
    ],
  }]);
  assertEquals((body.contents as Content[])[0]!.parts, [
    { text: "[The image image/gif cannot be shown to this model.]" },
    { text: "[The image image/gif cannot be shown to this model.]" },
    { text: "[The image a.gif cannot be shown to this model.]" },
    { inlineData: { mimeType: "image/png", data: "AAAA" } },
  ]);
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

Deno.test("toRequest() declares a function whose schema has no type as one of an object", () => {
  const parametersJsonSchema = { type: "object", properties: { key: {} } };
  const tools: ToolSpec[] = [{ name: "lookup", parameters: { properties: { key: {} } } }];
  assertEquals(configOf({ tools }).tools, [{
    functionDeclarations: [{ name: "lookup", parametersJsonSchema }],
  }]);
});
