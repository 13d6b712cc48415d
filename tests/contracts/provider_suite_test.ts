import { MockProvider, type ProviderSuiteOptions, testProvider } from "preamp/testing";
import type { ChatRequest, CompleteOptions, Module, Provider } from "preamp";
import { assert, assertEquals } from "../assert.ts";
import { failures } from "./broken_kit.ts";

const check = (create: () => Provider | Module, options: ProviderSuiteOptions = {}) =>
  failures((name, test) => testProvider(name, create, { deadline_ms: 200, ...options, test }));
const provider = (fields: object): Provider => Object.assign(new MockProvider(["Hello."]), fields);

const asking: ChatRequest = {
  messages: [{ role: "user", content: "x" }],
  tools: [{ name: "f", parameters: {} }],
};
const failing: ChatRequest = { messages: [{ role: "user", content: "fail" }] };
const whole = () =>
  new MockProvider([
    (request: ChatRequest) =>
      request.tools
        ? { tool_calls: [{ name: "f" }] }
        : request.messages[0]?.content === "fail"
        ? { error: { type: "RateLimitError" as const, message: "slow down" } }
        : "Hello.",
  ]);

Deno.test("testProvider() passes a good provider", async () => {
  const { failed, ran } = await check(whole, { tool_request: asking, failing_request: failing });
  assertEquals(failed, []);
  assertEquals(ran, 13);
});

Deno.test("testProvider() passes Amplifier's mock provider, in snake_case", async () => {
  const ported = {
    name: "mock",
    get_info: () => ({
      id: "mock",
      display_name: "Mock Provider",
      capabilities: ["streaming"],
      defaults: { context_window: 100000, max_output_tokens: 4096 },
    }),
    list_models: () =>
      Promise.resolve([{
        id: "mock-model",
        display_name: "Mock Model",
        context_window: 100000,
        max_output_tokens: 4096,
      }]),
    complete: (_: ChatRequest, options: CompleteOptions = {}) =>
      options.signal?.aborted ? Promise.reject(options.signal.reason) : Promise.resolve({
        content: [{ type: "text", text: "Mock response" }],
        usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
      }),
    parse_tool_calls: () => [],
  };
  assertEquals((await check(() => ported as unknown as Provider)).failed, []);
});

Deno.test("testProvider() fails everything when nothing is mounted", async () => {
  const { failed, ran } = await check(() => ({ mount: () => null }));
  assertEquals(failed.length, ran);
});

const info = { id: "x", display_name: "X", capabilities: ["tools"], defaults: {} };
const answer = (fields: object) => ({
  complete: () => Promise.resolve({ content: [{ type: "text", text: "Hi" }], ...fields }),
});

const broken: [string, object, string, ProviderSuiteOptions?][] = [
  [
    "getInfo as a promise",
    { getInfo: () => Promise.resolve(info) },
    "getInfo() returns id, display_name and whole-number defaults",
  ],
  [
    "no display_name",
    { getInfo: () => ({ ...info, display_name: "" }) },
    "getInfo() returns id, display_name and whole-number defaults",
  ],
  [
    "a window that is text",
    { getInfo: () => ({ ...info, defaults: { context_window: "100k" } }) },
    "getInfo() returns id, display_name and whole-number defaults",
  ],
  [
    "models that are no list",
    { listModels: () => Promise.resolve({}) },
    "listModels() resolves to models with ids",
  ],
  ["a model without an id", {
    listModels: () => Promise.resolve([{ context_window: 1, max_output_tokens: 1 }]),
  }, "listModels() resolves to models with ids"],
  ["no list of calls", { parseToolCalls: () => null }, "parseToolCalls() finds none in a response of text"],
  [
    "calls out of nothing",
    { parseToolCalls: () => [{ id: "a", name: "b", arguments: {} }] },
    "parseToolCalls() finds none in a response of text",
  ],
  [
    "calls that are not found",
    { parseToolCalls: () => [] },
    "parseToolCalls() finds the calls of a response",
  ],
  ["an empty response", answer({ content: [] }), "complete() resolves to a response"],
  [
    "half a token",
    answer({ usage: { input_tokens: 0.5, output_tokens: 1 } }),
    "complete() resolves to a response",
  ],
  [
    "a cost that is a number",
    answer({ usage: { input_tokens: 1, output_tokens: 1, cost_usd: 0.1 } }),
    "complete() resolves to a response",
  ],
  ["no response", { complete: () => Promise.resolve(null) }, "complete() resolves to a response"],
  ["a changed request", {
    complete: (
      request: ChatRequest,
    ) => (request.messages.push({ role: "user", content: "!" }), answer({}).complete()),
  }, "complete() does not change its request"],
  ["deltas that differ", {
    complete: (
      _: ChatRequest,
      options?: CompleteOptions,
    ) => (options?.onDelta?.({ block_index: 0, block_type: "text", delta: "Ho" }), answer({}).complete()),
  }, "complete() streams exactly what it resolves to"],
  [
    "an answer after the cancellation",
    answer({}),
    "complete() rejects when it was cancelled before it began",
  ],
  ["no tool call when asked for one", {}, "complete() asks for a tool", { tool_request: asking }],
  [
    "a call of a tool not offered",
    answer({ tool_calls: [{ id: "a", name: "g", arguments: {} }] }),
    "complete() asks for a tool",
    { tool_request: asking },
  ],
  [
    "a failure without a type",
    { complete: () => Promise.reject(new Error("bad")) },
    "complete() fails with an LLMError",
    { failing_request: failing },
  ],
  [
    "an answer that never comes",
    { complete: () => new Promise(() => {}) },
    "complete() resolves to a response",
  ],
];

for (const [what, fields, title, options] of broken) {
  Deno.test(`testProvider() fails "${title}" for ${what}`, async () => {
    const { failed } = await check(() => provider(fields), options);
    assert(failed.includes(title), `failed: ${failed.join(", ") || "nothing"}`);
    assert(!failed.includes("mount() mounts a provider"));
  });
}

Deno.test('testProvider() fails "name is not empty" for an empty name', async () => {
  const create = (): Module => ({
    mount: (coordinator) => coordinator.mount("providers", provider({ name: "" }), "x"),
  });
  assert((await check(create)).failed.includes("name is not empty"));
});
