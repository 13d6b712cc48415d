/** Requests of Chat Completions, by whole value: OpenAI's form, and that of other servers. */
import { assertEquals } from "../../assert.ts";
import type { Message } from "preamp";
import { bodyOf, HISTORY, PIXEL, QUESTION, requestOf } from "./bodies.ts";

const LOCAL = { base_url: "http://localhost:1234/v1", model: "local" };
const OWN = { api: "chat" };
const HI = [{ role: "user", content: "Hi" }];

Deno.test("a request converts a history with every kind of content", async () => {
  const call = (id: string, args: string) => ({
    id,
    type: "function",
    function: { name: "look", arguments: args },
  });
  assertEquals(await bodyOf(HISTORY, {}, OWN), {
    model: "gpt-6.1-terra",
    messages: [
      { role: "developer", content: "Be brief.\n\nUse tools." },
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
          { type: "image_url", image_url: { url: "https://e.com/a.jpg" } },
          { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERg==" } },
        ],
      },
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [call("call_a", '{"at":1}'), call("call_b", '{"at":2}')],
      },
      {
        role: "tool",
        tool_call_id: "call_a",
        content: "a picture\n\n(The images and files of this result follow.)",
      },
      { role: "tool", tool_call_id: "call_b", content: "a dot" },
      {
        role: "user",
        content: [
          { type: "text", text: "Images and files of the result of look (call_a):" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
          { type: "text", text: "<system>\nHurry.\n</system>" },
        ],
      },
    ],
    max_completion_tokens: 1000,
    prompt_cache_key: "ses_1",
    store: false,
  });
});

Deno.test("a request uses what every server knows: system, max_tokens, plain text", async () => {
  const messages: Message[] = [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: "Hi" }, { type: "text", text: "there" }] },
  ];
  const call = { temperature: 0.2, stop: ["a", "b", "c", "d", "e"], reasoning_effort: "low" };
  assertEquals((await requestOf(messages, { ...call }, LOCAL)).body, {
    model: "local",
    messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "Hi\n\nthere" }],
    max_tokens: 1000,
    temperature: 0.2,
    stop: ["a", "b", "c", "d", "e"],
    reasoning_effort: "low",
  });
});

Deno.test("a request sends at most four stop texts to OpenAI, and none to reasoning models", async () => {
  const four = await requestOf(QUESTION, { model: "gpt-4.1", stop: ["a", "b", "c", "d", "e"] }, OWN);
  assertEquals(four.body.stop, ["a", "b", "c", "d"]);
  assertEquals(four.degradation, {
    requested: 'stop ["e"]',
    actual: "left out",
    reason: "the API accepts at most 4 stop texts",
  });
  const none = await requestOf(QUESTION, { stop: ["a"] }, OWN);
  assertEquals([none.body.stop, none.degradation?.reason], [
    undefined,
    "gpt-6.1-terra does not accept stop texts",
  ]);
});

Deno.test("a request sends reasoning back as reasoning_content, also that of histories with other fields", async () => {
  const thinking = { type: "thinking", thinking: "Hm", field: "reasoning_content", provider: "openai" };
  const details = [{ type: "reasoning.text", text: "Hm", signature: "s" }];
  const turn = (id: string, block: object): Message[] => [
    {
      role: "assistant",
      content: [{ type: "thinking", ...block }, { type: "tool_call", id, name: "look", input: {} }],
      tool_calls: [{ id, name: "look", tool: "look", arguments: {} }],
    },
    { role: "tool", tool_call_id: id, content: "a dot" },
  ];
  const { messages } = await bodyOf(
    [
      ...QUESTION,
      ...turn("old", thinking),
      { role: "assistant", content: [thinking, { type: "text", text: "A dot." }] },
      ...QUESTION,
      { role: "assistant", content: [thinking, { type: "text", text: "Hi." }] },
      ...QUESTION,
      ...turn("new", { ...thinking, field: "reasoning", details }),
    ],
    {},
    { ...LOCAL, base_url: "https://openrouter.ai/api/v1" },
  );
  const call = (id: string) => ({ id, type: "function", function: { name: "look", arguments: "{}" } });
  const result = (tool_call_id: string) => ({ role: "tool", tool_call_id, content: "a dot" });
  assertEquals(messages, [
    ...HI,
    { role: "assistant", content: null, tool_calls: [call("old")], reasoning_content: "Hm" },
    result("old"),
    { role: "assistant", content: "A dot.", reasoning_content: "Hm" },
    ...HI,
    { role: "assistant", content: "Hi.", reasoning_content: "Hm" },
    ...HI,
    { role: "assistant", content: null, tool_calls: [call("new")], reasoning_content: "Hm" },
    result("new"),
  ]);
});

Deno.test("a request sends thought signatures back with their calls", async () => {
  const extra_content = { google: { thought_signature: "c2ln" } };
  const { messages } = await bodyOf(
    [
      ...QUESTION,
      {
        role: "assistant",
        content: [{ type: "tool_call", id: "c", name: "look", input: {}, extra_content, provider: "openai" }],
        tool_calls: [{ id: "c", name: "look", tool: "look", arguments: {} }],
      },
      { role: "tool", tool_call_id: "c", content: "a dot" },
    ],
    {},
    LOCAL,
  );
  assertEquals((messages as { tool_calls?: unknown }[])[1]?.tool_calls, [
    { id: "c", type: "function", function: { name: "look", arguments: "{}" }, extra_content },
  ]);
});

Deno.test("a request sends tools, the choice among them, and native tools as functions", async () => {
  const tools = [
    { name: "look", description: "Looks", parameters: { type: "object", properties: {} } },
    { name: "search", parameters: { type: "object" }, type: "web_search" },
  ];
  const { body, degradation } = await requestOf(QUESTION, { tools, tool_choice: "look" }, {
    ...LOCAL,
    parallel_tool_calls: false,
  });
  assertEquals(body, {
    model: "local",
    messages: HI,
    max_tokens: 1000,
    tools: [
      {
        type: "function",
        function: { name: "look", description: "Looks", parameters: { type: "object", properties: {} } },
      },
      { type: "function", function: { name: "search", parameters: { type: "object", properties: {} } } },
    ],
    tool_choice: { type: "function", function: { name: "look" } },
    parallel_tool_calls: false,
  });
  assertEquals(degradation, {
    requested: "tool search as web_search",
    actual: "a function",
    reason: "Chat Completions has no native tools; use api: responses",
  });
});

Deno.test("a request sends a note in the place of a file by its address, which the API does not take", async () => {
  const url = "https://e.com/a.pdf";
  const { body, degradation } = await requestOf(
    [{ role: "user", content: [{ type: "document", source: { type: "url", url } }] }],
    {},
    OWN,
  );
  assertEquals(body.messages, [{
    role: "user",
    content: `[The file ${url} cannot be shown to this model.]`,
  }]);
  assertEquals(degradation?.requested, `file ${url}`);
});

Deno.test("a request sends a file of text as text", async () => {
  const content = [
    { type: "document", source: { type: "text", data: "ünï" }, title: "a.txt" },
    { type: "file", file: { filename: "b.csv", file_data: "data:text/csv;base64,YSxi" } },
  ];
  const text = '<file name="a.txt">\nünï\n</file>';
  const table = '<file name="b.csv">\na,b\n</file>';
  assertEquals((await bodyOf([{ role: "user", content }], {}, LOCAL)).messages, [
    { role: "user", content: `${text}\n\n${table}` },
  ]);
  assertEquals((await bodyOf([{ role: "user", content }])).input, [
    { role: "user", content: [{ type: "input_text", text }, { type: "input_text", text: table }] },
  ]);
});

Deno.test("a request marks the end of cached prefixes", async () => {
  const cached = { cache_control: { type: "ephemeral" } };
  const prompt_cache_breakpoint = { mode: "explicit" };
  const { messages } = await bodyOf(
    [
      { role: "system", content: "Be brief.", metadata: cached },
      { role: "user", content: "Hi", metadata: cached },
    ],
    {},
    OWN,
  );
  assertEquals(messages, [
    { role: "developer", content: [{ type: "text", text: "Be brief.", prompt_cache_breakpoint }] },
    { role: "user", content: [{ type: "text", text: "Hi", prompt_cache_breakpoint }] },
  ]);
});

Deno.test("a request sends no message of an answer that ended while the model reasoned, and joins its questions", async () => {
  const thinking = { type: "thinking", thinking: "Hm", field: "reasoning_content", provider: "openai" };
  const cut: Message = { role: "assistant", content: [thinking] };
  const messages: Message[] = [
    ...QUESTION,
    cut,
    { role: "user", content: [{ type: "text", text: "Continue, please." }] },
    { role: "assistant", content: [thinking, { type: "tool_call", id: "a", name: "look", input: {} }] },
    { role: "tool", tool_call_id: "a", content: "a dot" },
    cut,
    { role: "user", content: "And?" },
  ];
  const sent = (await bodyOf(messages, {}, LOCAL)).messages as { role: string; content: unknown }[];
  assertEquals(sent.map(({ role, content }) => [role, content]), [
    ["user", "Hi\n\nContinue, please."],
    ["assistant", null],
    ["tool", "a dot"],
    ["user", "And?"],
  ]);
});
