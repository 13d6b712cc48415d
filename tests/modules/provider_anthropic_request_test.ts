/** Requests of `provider-anthropic`, field by field. */
import type { ContentBlock, JsonObject, Message, ToolSpec } from "preamp";
import type { CallSettings } from "preamp/provider";
import { createBackend } from "../../modules/ai-sdk/anthropic.ts";
import { assertEquals } from "../assert.ts";
import { ANTHROPIC } from "./providers/anthropic_wire.ts";
import { callOf, type SentRequest, sentRequest, SETTINGS } from "./providers/sent_request.ts";

const USER: Message = { role: "user", content: "Hello" };

const TOOL: ToolSpec = {
  name: "lookup",
  description: "Looks up.",
  parameters: { type: "object", properties: {} },
};

function request(fields: Partial<CallSettings>, messages: Message[] = [USER]): Promise<SentRequest> {
  const settings = { model: "claude-sonnet-5-5", max_output_tokens: 8000, ...fields };
  return sentRequest(createBackend(SETTINGS), callOf(settings, messages, "anthropic"), ANTHROPIC);
}

/** Resolves to the body without the parts that all requests have. */
async function bodyOf(fields: Partial<CallSettings>, messages?: Message[]): Promise<JsonObject> {
  const { model: _, messages: __, max_tokens: ___, ...rest } = (await request(fields, messages)).body;
  return rest;
}

async function messagesOf(messages: Message[]): Promise<unknown> {
  return (await request({}, messages)).body.messages;
}

Deno.test("a request sends parameters in the API's form", async () => {
  const fields = { stop: ["END", " "], temperature: 0.5, top_p: 0.9, model: "claude-sonnet-4-5" };
  assertEquals((await request(fields)).body, {
    model: "claude-sonnet-4-5",
    max_tokens: 8000,
    messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
    stop_sequences: ["END"],
    temperature: 0.5,
  });
});

const SUMMARIZED = { thinking: { type: "adaptive", display: "summarized" } };

const THINKING: readonly [fields: Partial<CallSettings>, expected: JsonObject][] = [
  [{}, SUMMARIZED], // it thinks by default, but leaves the text out, also that between calls
  [{ model: "claude-opus-4-8" }, {}],
  [{ model: "glm-5" }, {}],
  [{ thinking_budget: 0, model: "anthropic/claude-sonnet-5.5" }, { thinking: { type: "between_tools" } }],
  [{ thinking_budget: 0, model: "anthropic/claude-opus-5.5" }, {}],
  [{ temperature: 1 }, SUMMARIZED], // refused by newer models
  [{ reasoning_effort: "low" }, adaptive("low")],
  [{ reasoning_effort: "minimal" }, adaptive("low")],
  [{ reasoning_effort: "max", model: "claude-opus-5-5" }, adaptive("max")],
  [{ thinking_budget: 2000 }, SUMMARIZED],
  [{ thinking_budget: 0 }, { thinking: { type: "between_tools" } }], // it refuses "disabled"
  [{ reasoning_effort: "none" }, { thinking: { type: "between_tools" } }],
  [{ thinking_budget: 0, model: "claude-haiku-5-5" }, { thinking: { type: "disabled" } }],
  [{ thinking_budget: 0, model: "claude-sonnet-5" }, { thinking: { type: "disabled" } }],
  [{ thinking_budget: 0, reasoning_effort: "max", model: "claude-opus-5" }, {
    thinking: { type: "disabled" },
    output_config: { effort: "high" }, // without thinking it refuses more
  }],
  [{ thinking_budget: 0, model: "claude-fable-5-1" }, {}], // always thinks
  [{ thinking_budget: 0, model: "claude-opus-5-5" }, {}],
  [{ thinking_budget: 2000, model: "claude-opus-4-6" }, {
    thinking: { type: "enabled", budget_tokens: 2000 },
  }],
  [{ thinking_budget: 2000, model: "claude-haiku-4-5" }, {
    thinking: { type: "enabled", budget_tokens: 2000 },
  }],
  [{ thinking_budget: 100, model: "claude-haiku-4-5" }, {
    thinking: { type: "enabled", budget_tokens: 1024 },
  }],
  [{ thinking_budget: 90_000, model: "claude-haiku-4-5" }, {
    thinking: { type: "enabled", budget_tokens: 7999 },
  }],
  [{ thinking_budget: 2000, model: "claude-haiku-4-5", max_output_tokens: 500 }, {}],
  [{ reasoning_effort: "high", model: "claude-haiku-4-5" }, {}],
  [{ reasoning_effort: "high", model: "claude-opus-4-5" }, { output_config: { effort: "high" } }],
  [
    { thinking_budget: 2000, temperature: 0, model: "claude-haiku-4-5" },
    { thinking: { type: "enabled", budget_tokens: 2000 } },
  ],
  [{ reasoning_effort: "low", model: "claude-3-5-haiku-20241022" }, {}],
  [{ reasoning_effort: "low", model: "some-other-model" }, adaptive("low")],
];

function adaptive(effort: string): JsonObject {
  return { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort } };
}

for (const [fields, expected] of THINKING) {
  Deno.test(`a request thinking of ${JSON.stringify(fields)}`, async () =>
    assertEquals(await bodyOf(fields), expected));
}

const CHOICES: readonly [choice: string | JsonObject, expected: JsonObject][] = [
  ["auto", { type: "auto" }],
  ["none", { type: "none" }],
  ["required", { type: "any" }],
  ["lookup", { type: "tool", name: "lookup" }],
  [{ type: "any", disable_parallel_tool_use: true }, { type: "any", disable_parallel_tool_use: true }],
];

for (const [choice, expected] of CHOICES) {
  Deno.test(`a request tool_choice ${JSON.stringify(choice)}`, async () => {
    const fields = { tools: [TOOL], tool_choice: choice, model: "claude-haiku-5-5" };
    assertEquals((await bodyOf(fields)).tool_choice, expected);
  });
}

Deno.test("a request does not force a tool together with thinking, or without tools", async () => {
  const forced = { tools: [TOOL], tool_choice: "required", model: "claude-sonnet-5" };
  const of = ({ tool_choice, thinking }: JsonObject) => [tool_choice, (thinking as JsonObject)?.type];
  assertEquals(of(await bodyOf({ ...forced, reasoning_effort: "low" })), [{ type: "auto" }, "adaptive"]);
  assertEquals(of(await bodyOf(forced)), [{ type: "any" }, "disabled"]); // it thinks unless that is switched off
  assertEquals(of(await bodyOf({ ...forced, tools: [] })), [undefined, "adaptive"]);
  assertEquals(of(await bodyOf({ ...forced, model: "claude-opus-4-8" })), [{ type: "any" }, undefined]);
  for (const model of ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-2"]) {
    const always = { ...forced, tool_choice: "lookup", model };
    assertEquals(of(await bodyOf(always)), [{ type: "auto" }, "adaptive"]);
    assertEquals((await request(always)).degradation?.requested, "tool_choice lookup");
    assertEquals((await bodyOf({ ...always, thinking_budget: 0 })).tool_choice, { type: "auto" });
  }
});

Deno.test("a request does not force a tool together with thinking by an object of the API either", async () => {
  const of = ({ tool_choice, thinking }: JsonObject) => [tool_choice, (thinking as JsonObject)?.type];
  for (const tool_choice of [{ type: "any" }, { type: "tool", name: "lookup" }]) {
    const forced = { tools: [TOOL], tool_choice, model: "claude-sonnet-5" };
    assertEquals(of(await bodyOf(forced)), [tool_choice, "disabled"]);
    const always = {
      ...forced,
      tool_choice: { ...tool_choice, disable_parallel_tool_use: true },
      model: "claude-opus-5-5",
    };
    assertEquals(of(await bodyOf(always)), [{ disable_parallel_tool_use: true, type: "auto" }, "adaptive"]);
    assertEquals(
      (await request(always)).degradation?.requested,
      `tool_choice ${JSON.stringify(always.tool_choice)}`,
    );
  }
  const free = { tools: [TOOL], tool_choice: { type: "auto", disable_parallel_tool_use: true } };
  assertEquals(of(await bodyOf({ ...free, model: "claude-opus-5-5" })), [free.tool_choice, "adaptive"]);
});

Deno.test("a request sends native tools as they are, and schemas that the API accepts", async () => {
  const search = { type: "web_search_20260318", max_uses: 3 };
  const tools: ToolSpec[] = [
    { name: "web_search", description: "Ours.", parameters: { type: "object" }, ...search },
    { name: "either", parameters: { anyOf: [{ required: ["a"] }], properties: { a: {} } } },
  ];
  assertEquals((await bodyOf({ tools })).tools, [
    { name: "web_search", ...search },
    { name: "either", input_schema: { type: "object", properties: { a: {} }, required: ["a"] } },
  ]);
});

Deno.test("a request uses structured outputs, and reports what it cannot do", async () => {
  const schema = { type: "object", properties: { n: { type: "integer", minimum: 1 } }, required: ["n"] };
  const format = { type: "json_schema" as const, schema };
  const { output_config } = await bodyOf({ response_format: format }) as {
    output_config: { format: JsonObject };
  };
  assertEquals(output_config.format.type, "json_schema");
  const sent = output_config.format.schema as JsonObject;
  assertEquals([sent.additionalProperties, sent.required], [false, ["n"]]);
  const { degradation, ...old } = await request({
    response_format: format,
    model: "claude-3-5-haiku-20241022",
  });
  assertEquals(old.body.output_config, undefined);
  assertEquals(degradation, {
    requested: "response_format json_schema",
    actual: "response_format text",
    reason: "claude-3-5-haiku-20241022 has no structured outputs",
  });
  assertEquals(
    (await request({ response_format: { type: "json" } })).degradation?.reason,
    "the API has no JSON mode without a schema",
  );
  assertEquals((await request({ response_format: { type: "text" } })).degradation, undefined);
});

Deno.test("a request sends images and files", async () => {
  const content = [
    { type: "text", text: "Look:" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
    { type: "image_url", image_url: { url: "https://example.com/a.png" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
    { type: "document", source: { type: "text", data: "plain ä" }, title: "notes" },
    { type: "document", source: { type: "file", file_id: "file_1" } },
  ];
  assertEquals(await messagesOf([{ role: "user", content }]), [{
    role: "user",
    content: [
      { type: "text", text: "Look:" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
      { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
      {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
        title: "a.pdf",
      },
      { type: "text", text: '<file name="notes">\nplain ä\n</file>' },
      { type: "document", source: { type: "file", file_id: "file_1" } },
    ],
  }]);
});

Deno.test("a request sends a note in the place of media that the API refuses", async () => {
  const zip = { type: "file", filename: "a.zip", media_type: "application/zip", data: "UEsDBA==" };
  const svg = { type: "image", media_type: "image/svg+xml", data: "PHN2Zz4=" };
  const pdf = { type: "file", media_type: "application/octet-stream", data: "JVBERi0x" };
  const jpg = { type: "image", media_type: "image/jpg", data: "/9j/" };
  const png = { type: "image", media_type: "Image/PNG; q=1", data: "iVBO" };
  const { body, degradation } = await request({}, [{
    role: "user",
    content: [zip, svg, pdf, jpg, png] as ContentBlock[],
  }]);
  assertEquals((body.messages as { content: unknown }[])[0]!.content, [
    { type: "text", text: "[The file a.zip cannot be shown to this model.]" },
    { type: "text", text: "[The image image/svg+xml cannot be shown to this model.]" },
    { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0x" } },
    { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "/9j/" } },
    { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBO" } },
  ]);
  assertEquals(degradation?.requested, "file a.zip; image image/svg+xml");
});

Deno.test("a request keeps four cache breakpoints: that of the system prompt and the last ones", async () => {
  const metadata = { cache_control: { type: "ephemeral" } };
  const messages: Message[] = [
    { role: "system", content: "Be brief.", metadata },
    ...Array.from({ length: 6 }, (_, index): Message => ({
      role: index % 2 === 0 ? "user" : "assistant",
      content: `text ${index}`,
      metadata,
    })),
    { role: "user", content: "end" },
  ];
  const { system, messages: sent } = (await request({}, messages)).body as {
    system: JsonObject[];
    messages: JsonObject[];
  };
  const marked = (blocks: unknown) =>
    (blocks as JsonObject[]).map((block) => block.cache_control !== undefined);
  assertEquals(marked(system), [true]);
  assertEquals(sent.map(({ content }) => marked(content)), [
    [false],
    [false],
    [false],
    [true],
    [true],
    [true],
    [false],
  ]);
});

const THINKING_BLOCK = { type: "thinking", thinking: "Hm.", signature: "s" };

function own(block: JsonObject): ContentBlock {
  return { ...block, provider: "anthropic" } as unknown as ContentBlock;
}

Deno.test("a request sends no thinking at the end of an answer, which the API refuses", async () => {
  const redacted = { type: "redacted_thinking", data: "opaque" };
  const text = { type: "text" as const, text: "Half" };
  assertEquals(
    await messagesOf([
      USER,
      { role: "assistant", content: [own({ ...THINKING_BLOCK, signature: "" })] },
      USER,
      { role: "assistant", content: [own(THINKING_BLOCK), text, own(THINKING_BLOCK), own(redacted)] },
      USER,
    ]),
    [
      { role: "user", content: [{ type: "text", text: "Hello" }, { type: "text", text: "Hello" }] },
      { role: "assistant", content: [THINKING_BLOCK, text] },
      { role: "user", content: [{ type: "text", text: "Hello" }] },
    ],
  );
});

Deno.test("a request has no thinking budget in a turn whose first calls have no thinking before them", async () => {
  const call = (id: string) => ({ type: "tool_call" as const, id, name: "lookup", input: {} });
  const result = (tool_call_id: string): Message => ({ role: "tool", tool_call_id, content: "found" });
  const thinkingAfter = async (...messages: Message[]) => {
    const { body, degradation } = await request(
      { thinking_budget: 2000, model: "claude-haiku-4-5", tools: [TOOL] },
      [USER, ...messages],
    );
    return [body.thinking, degradation?.reason];
  };
  const enabled = [{ type: "enabled", budget_tokens: 2000 }, undefined];
  const foreign: Message[] = [{ role: "assistant", content: [call("a")] }, result("a")];
  const thought: Message = { role: "assistant", content: [own(THINKING_BLOCK), call("b")] };
  assertEquals(await thinkingAfter(...foreign), [undefined, "the turn began without thinking"]);
  assertEquals((await thinkingAfter(...foreign, thought, result("b")))[0], undefined);
  assertEquals(await thinkingAfter(...foreign, { role: "assistant", content: "Done." }, USER), enabled);
  assertEquals(await thinkingAfter(thought, result("b"), ...foreign), enabled);
});

Deno.test("a request sends no calls of the API's tools that were cut off before their results", async () => {
  const search = (id: string) => ({ type: "provider_tool_call", id, name: "web_search", input: {} });
  const found = { type: "provider_tool_result", id: "a", name: "web_search", result: [] };
  const sent = { type: "server_tool_use", id: "a", name: "web_search", input: {} };
  const answer = (...blocks: JsonObject[]): Message => ({ role: "assistant", content: blocks.map(own) });
  const blocksOf = async (messages: Message[]) =>
    ((await messagesOf(messages)) as { role: string; content: JsonObject[] }[])
      .filter(({ role }) => role === "assistant").map(({ content }) => content);
  assertEquals(await blocksOf([USER, answer(search("a"), found, THINKING_BLOCK, search("b")), USER]), [[
    sent,
    { type: "web_search_tool_result", tool_use_id: "a", content: [] },
  ]]);
  assertEquals(await blocksOf([USER, answer(search("b")), USER]), []);
  const call: ContentBlock = { type: "tool_call", id: "c", name: "lookup", input: {} };
  const [both] = await blocksOf([USER, { role: "assistant", content: [own(search("b")), call] }]);
  assertEquals(both?.map(({ type }) => type), ["server_tool_use", "tool_use"]);
});

Deno.test("a request sends results of the API's tools with their calls only, which may be in the answer before", async () => {
  const search = { type: "provider_tool_call", id: "a", name: "web_search", input: {} };
  const found = { type: "provider_tool_result", id: "a", name: "web_search", result: [] };
  const call: ContentBlock = { type: "tool_call", id: "c", name: "lookup", input: {} };
  const result: Message = { role: "tool", tool_call_id: "c", content: "found" };
  const done: ContentBlock = { type: "text", text: "Done." };
  const answer = (...content: ContentBlock[]): Message => ({ role: "assistant", content });
  const typesOf = async (...messages: Message[]) =>
    ((await messagesOf([USER, ...messages, USER])) as { role: string; content: JsonObject[] }[])
      .filter(({ role }) => role === "assistant").map(({ content }) => content.map(({ type }) => type));
  assertEquals(await typesOf(answer(own(search), call), result, answer(own(found), done)), [
    ["server_tool_use", "tool_use"],
    ["web_search_tool_result", "text"],
  ]);
  // another provider answered after the calls
  assertEquals(await typesOf(answer(own(search), call), result, answer(done)), [["tool_use"], ["text"]]);
  // the answer with the call was left out of the view
  assertEquals(await typesOf(answer(own(found), done)), [["text"]]);
});

Deno.test("a request marks no result with an image as failed, which the API refuses", async () => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } };
  const failed = async (content: ContentBlock[]) => {
    const call: ContentBlock = { type: "tool_call", id: "c", name: "lookup", input: {} };
    const messages = await messagesOf([
      USER,
      { role: "assistant", content: [call] },
      { role: "tool", tool_call_id: "c", content, is_error: true },
    ]) as { content: JsonObject[] }[];
    return messages[2]!.content[0]!.is_error;
  };
  assertEquals([await failed([image]), await failed([{ type: "text", text: "broken" }])], [undefined, true]);
});
