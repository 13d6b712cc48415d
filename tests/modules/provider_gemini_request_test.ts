/** Requests of `provider-gemini`, field by field. */
import type { JsonObject, Message, ToolSpec } from "preamp";
import type { CallSettings } from "preamp/provider";
import { createBackend } from "../../modules/ai-sdk/google.ts";
import { assertEquals } from "../assert.ts";
import { GEMINI } from "./providers/gemini_wire.ts";
import type { Content } from "./providers/request_rules.ts";
import { callOf, type SentRequest, sentRequest, SETTINGS } from "./providers/sent_request.ts";

/** Answers without the name of a model. */
const ANSWER = { whole: () => ({ ...GEMINI.whole({ text: ["Hello"] }), modelVersion: undefined }) };

const USER: Message = { role: "user", content: "Hello" };

const TOOL: ToolSpec = {
  name: "lookup",
  description: "Looks up.",
  parameters: {
    type: "object",
    properties: { key: { type: "string", maxItems: 3 } },
    required: ["key", "x"],
  },
};

const SEARCH: ToolSpec = { name: "search", parameters: { type: "object" }, googleSearch: {} };

const DECLARATION = {
  name: "lookup",
  description: "Looks up.",
  parametersJsonSchema: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
};

const THOUGHTS = { thinkingConfig: { includeThoughts: true } };

function request(
  fields: Partial<CallSettings> = {},
  messages: Message[] = [USER],
  config: JsonObject = {},
): Promise<SentRequest> {
  const settings = { model: "gemini-3.8-flash", max_output_tokens: 8000, ...fields };
  return sentRequest(createBackend({ ...SETTINGS, config }), callOf(settings, messages, "gemini"), ANSWER);
}

/** Resolves to a body without the contents; its `generationConfig` without the maximum is spread. */
async function configOf(
  fields: Partial<CallSettings>,
  messages?: Message[],
  config?: JsonObject,
): Promise<JsonObject> {
  const { generationConfig, contents: _, ...rest } = (await request(fields, messages, config)).body;
  const { maxOutputTokens: __, ...generation } = generationConfig as JsonObject;
  return { ...generation, ...rest };
}

async function contentsOf(messages: Message[], model = "gemini-3.8-flash"): Promise<unknown> {
  return (await request({ model }, messages)).body.contents;
}

Deno.test("a request sends parameters in the API's form", async () => {
  const fields = { stop: ["END"], temperature: 0.5, top_p: 0.9 };
  assertEquals(await configOf(fields, [{ role: "system", content: "Be brief." }, USER]), {
    systemInstruction: { parts: [{ text: "Be brief." }] },
    temperature: 0.5,
    topP: 0.9,
    stopSequences: ["END"],
    ...THOUGHTS,
  });
  assertEquals(await configOf({}, [USER], { include_thoughts: false }), {
    thinkingConfig: { includeThoughts: false },
  });
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
  [{ reasoning_effort: "low" }, level("low")],
  [{ reasoning_effort: "minimal" }, level("low"), "thinking level low"],
  [{ reasoning_effort: "none" }, level("low"), "thinking level low"],
  [{ reasoning_effort: "max" }, level("high"), "thinking level high"],
  [{ reasoning_effort: "unheard" }, level("high"), "thinking level high"],
  [{ thinking_budget: 5_000 }, level("medium"), "thinking level medium"],
  [{ reasoning_effort: "minimal", model: "gemini-3.6-flash" }, level("minimal")],
  [{ reasoning_effort: "minimal", model: "models/gemini-3.1-flash-lite" }, level("minimal")],
  [{ reasoning_effort: "high", model: "gemini-4-argon" }, level("high")],
  [{ reasoning_effort: "low", model: "gemini-flash-latest" }, level("low")],
  [{ reasoning_effort: "medium", model: "gemini-2.5-flash" }, budget(8_192)],
  [{ reasoning_effort: "none", model: "gemini-2.5-flash" }, budget(0)],
  [{ thinking_budget: 500, model: "gemini-2.5-flash" }, budget(500)],
  [{ model: "gemini-2.0-flash" }, undefined],
  [{ model: "gemma-4-31b-it", reasoning_effort: "low" }, undefined, "no thinking"],
  [{ model: "gemini-3.8-flash-tts", reasoning_effort: "none" }, undefined],
];

for (const [fields, expected, actual] of THINKING) {
  Deno.test(`a request thinking of ${JSON.stringify(fields)}`, async () => {
    const { body, degradation } = await request(fields);
    const { thinkingConfig } = body.generationConfig as JsonObject;
    assertEquals([thinkingConfig, degradation?.actual], [expected, actual]);
  });
}

const CHOICES: readonly [choice: string | JsonObject, expected: JsonObject][] = [
  ["auto", { functionCallingConfig: { mode: "AUTO" } }],
  ["none", { functionCallingConfig: { mode: "NONE" } }],
  ["required", { functionCallingConfig: { mode: "ANY" } }],
  ["lookup", { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["lookup"] } }],
  [{ type: "any" }, { functionCallingConfig: { mode: "ANY" } }],
];

for (const [choice, expected] of CHOICES) {
  Deno.test(`a request tool_choice ${JSON.stringify(choice)}`, async () => {
    assertEquals((await configOf({ tools: [TOOL], tool_choice: choice })).toolConfig, expected);
  });
}

Deno.test("a request sends schemas that the API accepts, and no choice without tools", async () => {
  assertEquals(await configOf({ tools: [TOOL] }), {
    tools: [{ functionDeclarations: [DECLARATION] }],
    ...THOUGHTS,
  });
  assertEquals(await configOf({ tool_choice: "required" }), THOUGHTS);
});

Deno.test("a request combines functions with tools of the server from Gemini 3 on", async () => {
  assertEquals(await configOf({ tools: [SEARCH] }), { tools: [{ googleSearch: {} }], ...THOUGHTS });
  assertEquals(await configOf({ tools: [SEARCH, TOOL] }), {
    tools: [{ googleSearch: {} }, { functionDeclarations: [DECLARATION] }],
    toolConfig: { functionCallingConfig: { mode: "VALIDATED" }, includeServerSideToolInvocations: true },
    ...THOUGHTS,
  });
  const early = await request({ tools: [SEARCH, TOOL], model: "gemini-2.5-flash" });
  assertEquals(early.degradation?.actual, "left out"); // one of the two
});

Deno.test("a request asks for JSON, and reports what it cannot do", async () => {
  const schema = { type: "object", properties: { n: { type: "integer" } } };
  const response_format = { type: "json_schema" as const, schema };
  const json = { responseMimeType: "application/json", responseJsonSchema: schema };
  assertEquals(await configOf({ response_format }), { ...json, ...THOUGHTS });
  assertEquals(await configOf({ response_format: { type: "json" } }), {
    responseMimeType: "application/json",
    ...THOUGHTS,
  });
  assertEquals((await configOf({ response_format, tools: [TOOL] })).responseJsonSchema, schema);
  const early = await request({
    response_format,
    tools: [TOOL],
    model: "gemini-2.5-flash",
    reasoning_effort: "low",
  });
  assertEquals((early.body.generationConfig as JsonObject).responseMimeType, undefined);
  assertEquals(early.degradation, {
    requested: "response_format json_schema",
    actual: "text",
    reason: "gemini-2.5-flash does not combine tools with a response format",
  });
});

Deno.test("a request asks for no JSON beside a call that is required, which the API refuses together", async () => {
  const fields = { response_format: { type: "json" as const }, tools: [TOOL], tool_choice: "required" };
  const { body, degradation } = await request(fields);
  assertEquals((body.generationConfig as JsonObject).responseMimeType, undefined);
  assertEquals(degradation, {
    requested: "response_format json",
    actual: "text",
    reason: "gemini-3.8-flash does not combine a required call with a response format",
  });
  assertEquals((await configOf({ ...fields, tool_choice: "auto" })).responseMimeType, "application/json");
});

Deno.test("a request sends images and files", async () => {
  const content = [
    { type: "text", text: "Look:" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
    { type: "image_url", image_url: { url: "https://example.com/a.webp?size=2" } },
    { type: "image_url", image_url: { url: "https://example.com/a" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
  ];
  assertEquals(await contentsOf([{ role: "user", content }]), [{
    role: "user",
    parts: [
      { text: "Look:" },
      { inlineData: { mimeType: "image/png", data: "AAAA" } },
      { fileData: { fileUri: "https://example.com/a.webp?size=2", mimeType: "image/webp" } },
      { fileData: { fileUri: "https://example.com/a", mimeType: "image/jpeg" } },
      { inlineData: { mimeType: "application/pdf", data: "JVBERi0=" } },
    ],
  }]);
});

Deno.test("a request sends a note in the place of images that the API refuses, and texts as plain texts", async () => {
  const gif = { type: "image", source: { type: "base64", media_type: "image/gif", data: "AAAA" } };
  const yaml = { type: "file", file: { filename: "a.yaml", file_data: "data:text/yaml;base64,YQ==" } };
  const { body, degradation } = await request({}, [
    { role: "user", content: [gif, yaml] },
    { role: "assistant", content: [{ type: "tool_call", id: "call_1", name: "draw", input: {} }] },
    { role: "tool", tool_call_id: "call_1", name: "draw", content: [{ type: "text", text: "see" }, gif] },
  ]);
  const note = "[The image image/gif cannot be shown to this model.]";
  const [question, , results] = body.contents as Content[];
  assertEquals(question!.parts, [{ text: `${note}\n\n<file name="a.yaml">\na\n</file>` }]);
  assertEquals(results!.parts[0]!.functionResponse, {
    id: "call_1",
    name: "draw",
    response: { name: "draw", content: `see\n${note}` },
  });
  assertEquals(degradation, {
    requested: "image image/gif",
    actual: "a note in its place",
    reason: "the API does not take image/gif",
  });
});

Deno.test("a request sends a note for an image that the API refuses, also for a URL and for a file", async () => {
  const { body } = await request({}, [{
    role: "user",
    content: [
      { type: "image_url", image_url: { url: "https://example.com/a.gif?size=2" } },
      { type: "image", source: { type: "url", url: "https://example.com/a", media_type: "image/gif" } },
      { type: "file", file: { filename: "a.gif", file_data: "data:image/gif;base64,AAAA" } },
      { type: "file", file: { filename: "a.png", file_data: "data:image/png;base64,AAAA" } },
    ],
  }]);
  assertEquals((body.contents as Content[])[0]!.parts, [
    {
      text: ["image https://example.com/a.gif?size=2", "image https://example.com/a", "file a.gif"]
        .map((what) => `[The ${what} cannot be shown to this model.]`).join("\n\n"),
    },
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

Deno.test("a request signs the first call of another provider, and answers calls by id", async () => {
  const call = (id: string, key: string) => ({ functionCall: { id, name: "lookup", args: { key } } });
  const failed = {
    functionResponse: { id: "call_2", name: "lookup", response: { name: "lookup", error: "no such key" } },
  };
  const image = { inlineData: { mimeType: "image/png", data: "AAAA" } };
  const found = { id: "call_1", name: "lookup", response: { name: "lookup", content: "see" } };
  assertEquals(await contentsOf([USER, CALLED, ...RESULTS]), [
    { role: "user", parts: [{ text: "Hello" }] },
    {
      role: "model",
      parts: [
        { ...call("call_1", "a"), thoughtSignature: "skip_thought_signature_validator" },
        { ...call("call_2", "b"), thoughtSignature: "skip_thought_signature_validator" },
      ],
    },
    { role: "user", parts: [{ functionResponse: { ...found, parts: [image] } }, failed] },
  ]);
  assertEquals(await contentsOf([USER, CALLED, ...RESULTS], "gemini-2.5-flash"), [
    { role: "user", parts: [{ text: "Hello" }] },
    { role: "model", parts: [call("call_1", "a"), call("call_2", "b")] },
    {
      role: "user",
      parts: [
        { functionResponse: found },
        image,
        { text: "Tool executed successfully and returned this image as a response" },
        failed,
      ],
    },
  ]);
});

Deno.test("a request declares a function whose schema has no type as one of an object", async () => {
  const parametersJsonSchema = { type: "object", properties: { key: {} } };
  const tools: ToolSpec[] = [{ name: "lookup", parameters: { properties: { key: {} } } }];
  assertEquals((await configOf({ tools })).tools, [{
    functionDeclarations: [{ name: "lookup", description: "", parametersJsonSchema }],
  }]);
});
