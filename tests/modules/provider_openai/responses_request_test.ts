/** Requests of the Responses API, by whole value. */
import type { ContentBlock, Message } from "preamp";
import { assertEquals } from "../../assert.ts";
import { bodyOf, degradationOf, HISTORY, PIXEL, QUESTION, requestOf } from "./bodies.ts";

const BASE = {
  model: "gpt-6.1-terra",
  max_output_tokens: 1000,
  store: false,
  include: ["reasoning.encrypted_content"],
  reasoning: { summary: "auto" },
  prompt_cache_key: "ses_1",
};
const HI = [{ role: "user", content: [{ type: "input_text", text: "Hi" }] }];

Deno.test("a request converts a history with every kind of content", async () => {
  assertEquals(await bodyOf(HISTORY), {
    ...BASE,
    input: [
      { role: "developer", content: "Be brief.\n\nUse tools." },
      {
        role: "user",
        content: [
          { type: "input_text", text: "What is this?" },
          { type: "input_image", image_url: `data:image/png;base64,${PIXEL}` },
          { type: "input_image", image_url: "https://e.com/a.jpg" },
          { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERg==" },
        ],
      },
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "Own" }],
        encrypted_content: "gA",
      },
      { role: "assistant", content: "I look.", phase: "commentary" },
      { type: "function_call", call_id: "call_a", name: "look", arguments: '{"at":1}' },
      { type: "function_call", call_id: "call_b", name: "look", arguments: '{"at":2}' },
      {
        type: "function_call_output",
        call_id: "call_a",
        output: [
          { type: "input_text", text: "a picture" },
          { type: "input_image", image_url: `data:image/png;base64,${PIXEL}` },
        ],
      },
      { type: "function_call_output", call_id: "call_b", output: "a dot" },
      { role: "user", content: [{ type: "input_text", text: "<system>\nHurry.\n</system>" }] },
    ],
  });
});

Deno.test("a request leaves out reasoning that nothing follows", async () => {
  const item = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gA" };
  const thinking = { type: "thinking", thinking: "", item, provider: "openai" };
  const body = await bodyOf([...QUESTION, { role: "assistant", content: [thinking] }, {
    role: "user",
    content: "Hi",
  }]);
  assertEquals(body.input, [{ role: "user", content: [...HI[0]!.content, ...HI[0]!.content] }]);
});

Deno.test("a request sends function tools, native tools and the choice among them", async () => {
  const tools = [
    {
      name: "look",
      description: "Looks",
      parameters: { type: "object", properties: { at: { type: "integer" } }, required: ["at"] },
    },
    { name: "free", parameters: {} },
    {
      name: "search",
      description: "Searches",
      parameters: { type: "object" },
      type: "web_search",
      search_context_size: "low",
    },
  ];
  const look = {
    type: "function",
    name: "look",
    strict: false,
    description: "Looks",
    parameters: tools[0]!.parameters,
  };
  const sent = [
    look,
    { type: "function", name: "free", strict: false, parameters: { type: "object", properties: {} } },
    { type: "web_search", search_context_size: "low" },
  ];
  for (
    const [tool_choice, expected] of [
      ["auto", "auto"],
      ["none", "none"],
      ["any", "required"],
      ["look", { type: "function", name: "look" }],
      [{ type: "tool", name: "look" }, { type: "function", name: "look" }],
      [{ type: "function", function: { name: "look" } }, { type: "function", name: "look" }],
      ["search", { type: "web_search" }],
      [{ type: "any" }, "required"],
    ] as const
  ) {
    assertEquals(await bodyOf(QUESTION, { tools, tool_choice }), {
      ...BASE,
      include: ["web_search_call.action.sources", "reasoning.encrypted_content"],
      input: HI,
      tools: sent,
      tool_choice: expected,
    });
  }
  assertEquals(await bodyOf(QUESTION, { tool_choice: "auto" }), { ...BASE, input: HI });
  assertEquals(await bodyOf(QUESTION, { tools: [tools[0]!] }, { parallel_tool_calls: false }), {
    ...BASE,
    input: HI,
    tools: [look],
    parallel_tool_calls: false,
  });
});

Deno.test("a request offers the properties of alternatives at the top of a tool's schema", async () => {
  const parameters = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    allOf: [{ properties: { a: { type: "string" } }, required: ["a"] }],
    required: ["unknown"],
    anyOf: [{ properties: { b: { type: "string" } }, required: ["b"] }, {
      properties: { c: { type: "number" } },
    }],
  };
  assertEquals((await bodyOf(QUESTION, { tools: [{ name: "x", parameters }] })).tools, [{
    type: "function",
    name: "x",
    strict: false,
    parameters: {
      type: "object",
      properties: { a: { type: "string" }, b: { type: "string" }, c: { type: "number" } },
      required: ["a"],
    },
  }]);
});

Deno.test("a request sends sampling only to models that accept it", async () => {
  const call = { temperature: 0.2, top_p: 0.9 };
  const reason =
    "temperature is not supported for reasoning models; topP is not supported for reasoning models";
  for (
    const [model, effort, sent, expected] of [
      ["gpt-4.1", undefined, call, undefined],
      ["gpt-5-chat-latest", undefined, call, undefined],
      ["gpt-5.4", "none", call, undefined],
      ["gpt-5.4", undefined, {}, reason],
      ["gpt-5-mini", undefined, {}, reason],
      ["o3", "low", {}, reason],
    ] as const
  ) {
    const wire = await requestOf(QUESTION, {
      model,
      ...call,
      ...(effort ? { reasoning_effort: effort } : {}),
    });
    const { temperature, top_p } = wire.body;
    assertEquals({ ...(temperature ? { temperature } : {}), ...(top_p ? { top_p } : {}) }, sent);
    assertEquals(wire.degradation?.reason, expected);
  }
});

Deno.test("a request sends an effort to reasoning models, and asks for no reasoning of others", async () => {
  assertEquals((await bodyOf(QUESTION, { reasoning_effort: "high" })).reasoning, {
    effort: "high",
    summary: "auto",
  });
  assertEquals((await bodyOf(QUESTION, {}, { reasoning_summary: "none" })).reasoning, undefined);
  const { body, degradation } = await requestOf(QUESTION, { model: "gpt-4.1", reasoning_effort: "high" });
  assertEquals(body, {
    model: "gpt-4.1",
    max_output_tokens: 1000,
    store: false,
    prompt_cache_key: "ses_1",
    input: HI,
  });
  assertEquals(degradation, {
    requested: "reasoning_effort high",
    actual: "left out",
    reason: "gpt-4.1 does not reason",
  });
});

Deno.test("a request reports what the API does not have", async () => {
  assertEquals(await degradationOf(QUESTION, { stop: ["END"], thinking_budget: 2000 }), {
    requested: 'stop ["END"]; thinking_budget 2000',
    actual: "left out",
    reason: "the Responses API has no stop texts; use api: chat; " +
      "OpenAI's API has no budget for thinking; use reasoning_effort",
  });
});

Deno.test("a request asks for at least 16 tokens", async () => {
  const body = await bodyOf(QUESTION, { max_output_tokens: 5 });
  assertEquals(body, { ...BASE, input: HI, max_output_tokens: 16 });
});

Deno.test("a request marks the end of cached prefixes for models that have breakpoints", async () => {
  const cached = { cache_control: { type: "ephemeral" } };
  const messages = [
    { role: "system" as const, content: "Be brief.", metadata: cached },
    { role: "user" as const, content: "Look", metadata: cached },
    {
      role: "assistant" as const,
      content: "",
      tool_calls: [{ id: "c", name: "look", tool: "look", arguments: {} }],
    },
    { role: "tool" as const, tool_call_id: "c", content: "a dot", metadata: cached },
  ];
  const prompt_cache_breakpoint = { mode: "explicit" };
  const call = { type: "function_call", call_id: "c", name: "look", arguments: "{}" };
  assertEquals((await bodyOf(messages)).input, [
    { role: "developer", content: [{ type: "input_text", text: "Be brief.", prompt_cache_breakpoint }] },
    { role: "user", content: [{ type: "input_text", text: "Look", prompt_cache_breakpoint }] },
    call,
    {
      type: "function_call_output",
      call_id: "c",
      output: [{ type: "input_text", text: "a dot", prompt_cache_breakpoint }],
    },
  ]);
  for (const content of ["", " "]) {
    const nothing = (await bodyOf(messages.with(-1, { ...messages[3]!, content }))).input as {
      output?: unknown;
    }[];
    assertEquals(nothing.at(-1)!.output, content, "a part of text may not be empty");
  }
  const older = await bodyOf(messages, { model: "gpt-5.4" });
  assertEquals(older.input, [
    { role: "developer", content: "Be brief." },
    { role: "user", content: [{ type: "input_text", text: "Look" }] },
    call,
    { type: "function_call_output", call_id: "c", output: "a dot" },
  ]);
});

Deno.test("a request sends no key of the cache to another server", async () => {
  const body = await bodyOf(QUESTION, { model: "local" }, {
    api: "responses",
    base_url: "http://localhost:1234/v1",
  });
  assertEquals(body, {
    model: "local",
    input: HI,
    max_output_tokens: 1000,
    store: false,
  });
  const eu = await bodyOf(QUESTION, {}, { base_url: "https://eu.api.openai.com/v1" });
  assertEquals(eu, { ...BASE, input: HI });
});

Deno.test("an image that OpenAI does not read becomes a note, with both APIs; other servers get it", async () => {
  const svg = { type: "image", media_type: "image/svg+xml", data: "PHN2Zz4=" };
  const messages: Message[] = [{ role: "user", content: [svg] as unknown as ContentBlock[] }];
  const text = "[The image image/svg+xml cannot be shown to this model.]";
  assertEquals((await bodyOf(messages)).input, [{ role: "user", content: [{ type: "input_text", text }] }]);
  const { body, degradation } = await requestOf(messages, {}, { api: "chat" });
  assertEquals((body.messages as unknown[])[0], { role: "user", content: text });
  assertEquals(degradation?.requested, "image image/svg+xml");
  const other = await requestOf(messages, {}, { base_url: "http://127.0.0.1:1/v1" });
  assertEquals([other.degradation, JSON.stringify(other.body).includes("PHN2Zz4=")], [undefined, true]);
});
