import { LLMError } from "../../src/sdk/llm_errors.ts";
import { type StreamDelta, textOf } from "../../src/sdk/messages.ts";
import { createTestCoordinator } from "../../src/testing/coordinator.ts";
import { FakeApproval, MockContextManager, MockTool, ScriptedOrchestrator } from "../../src/testing/mocks.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { ToolResult } from "../../src/sdk/tools.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";

const request = (content: string) => ({ messages: [{ role: "user" as const, content }] });

Deno.test("MockTool accepts its options and records its calls", async () => {
  const tool = new MockTool({ name: "test_tool", description: "Test tool", return_value: "mock result" });
  assertEquals([tool.call_count, tool.last_input], [0, null]);
  const input = { a: [1] };
  const result = await tool.execute(input) as ToolResult;
  input.a.push(2);
  assertEquals([result.success, result.output], [true, "mock result"]);
  assertEquals([tool.call_count, tool.last_input, tool.description], [1, { a: [1] }, "Test tool"]);
});

Deno.test("MockTool takes upstream's name and output", async () => {
  const tool = new MockTool("t", "out");
  assertEquals((await tool.execute({}) as ToolResult).output, "out");
  assertEquals([tool.name, tool.description, tool.input_schema], ["t", "Mock tool: t", {
    type: "object",
    properties: {},
  }]);
  assertEquals((await new MockTool().execute({}) as ToolResult).output, "Success");
  assertEquals((await new MockTool({ return_value: null }).execute({}) as ToolResult).output, null);
});

Deno.test("MockTool returns results as they are, throws, decides and waits", async () => {
  const failed = ToolResult({ success: false, error: { message: "no" } });
  assert(await new MockTool({ return_value: failed }).execute({}) === failed);
  await assertRejects(() => new MockTool({ error: new Error("bad") }).execute({}), Error, "bad");
  assertEquals(await new MockTool({ execute: ({ n }) => Number(n) + 1 }).execute({ n: 1 }), 2);
  const clock = new FakeClock();
  const slow = new MockTool({ delay_ms: 50, clock, return_value: "late" }).execute({}) as Promise<ToolResult>;
  await clock.advance(50);
  assertEquals((await slow).output, "late");
});

Deno.test("MockProvider plays its script and repeats the last step", async () => {
  const provider = new MockProvider(["one", { text: "two", usage: { input_tokens: 3, output_tokens: 4 } }]);
  const texts = [];
  for (const prompt of ["a", "b", "c"]) {
    texts.push(textOf((await provider.complete(request(prompt))).content));
  }
  assertEquals(texts, ["one", "two", "two"]);
  assertEquals(provider.requests.map(({ messages }) => messages[0]?.content), ["a", "b", "c"]);
  assertEquals((await provider.complete(request("d"))).usage?.total_tokens, 7);
  assertEquals(textOf((await new MockProvider().complete(request("x"))).content), "Mock response");
});

Deno.test("MockProvider scripts tool calls, with ids of its own in order", async () => {
  const provider = new MockProvider([{
    tool_calls: [{ name: "a" }, { name: "b", arguments: { x: 1 }, id: "mine" }, { name: "c" }],
  }]);
  const response = await provider.complete(request("x"));
  assertEquals(response.tool_calls?.map(({ id, name, arguments: given }) => [id, name, given]), [
    ["call_1", "a", {}],
    ["mine", "b", { x: 1 }],
    ["call_2", "c", {}],
  ]);
  assertEquals(response.finish_reason, "tool_calls");
  assertEquals(provider.parseToolCalls(response).map((call) => call.name), ["a", "b", "c"]);
  assertEquals(provider.parseToolCalls({ content: [] }), []);
});

Deno.test("MockProvider fails as scripted, and when the script is over", async () => {
  const provider = new MockProvider({
    responses: [
      { error: { type: "RateLimitError", message: "slow down", status_code: 429, retry_after: 1 } },
      { error: new Error("plain") },
    ],
    after: "error",
  });
  const error = await assertRejects(() => provider.complete(request("x")), LLMError, "slow down") as LLMError;
  assertEquals([error.type, error.status_code, error.retryable, error.retry_after, error.provider], [
    "RateLimitError",
    429,
    true,
    1,
    "mock",
  ]);
  await assertRejects(() => provider.complete(request("x")), Error, "plain");
  await assertRejects(
    () => provider.complete(request("x")),
    LLMError,
    "the script has 2 steps: received call 3",
  );
});

Deno.test("MockProvider streams its blocks in chunks that join to the answer", async () => {
  const deltas: StreamDelta[] = [];
  const provider = new MockProvider({
    responses: [{ thinking: "hmm", text: "ab\u{1f600}cd", tool_calls: [{ name: "f" }] }],
    chunk_chars: 2,
  });
  await provider.complete(request("x"), { onDelta: (delta) => deltas.push(delta) });
  assertEquals(deltas, [
    { block_index: 0, block_type: "thinking", delta: "hm" },
    { block_index: 0, block_type: "thinking", delta: "m" },
    { block_index: 1, block_type: "text", delta: "ab" },
    { block_index: 1, block_type: "text", delta: "\u{1f600}c" },
    { block_index: 1, block_type: "text", delta: "d" },
    { block_index: 2, block_type: "tool_call", delta: "{}", id: "call_1", name: "f" },
  ]);
});

Deno.test("MockProvider waits on its clock and stops when cancelled", async () => {
  const clock = new FakeClock();
  const provider = new MockProvider({ responses: [{ text: "late", delay_ms: 100 }], clock });
  const answer = provider.complete(request("x"));
  await clock.advance(100);
  assertEquals(textOf((await answer).content), "late");
  const stop = new AbortController();
  const cancelled = assertRejects(
    () => provider.complete(request("x"), { signal: stop.signal }),
    LLMError,
    "cancelled",
  );
  stop.abort();
  assertEquals((await cancelled as LLMError).type, "AbortError");
  await assertRejects(
    () => provider.complete(request("x"), { signal: AbortSignal.abort() }),
    LLMError,
    "cancelled",
  );
});

Deno.test("MockProvider decides per request when a step is a function", async () => {
  const provider = new MockProvider([({ messages }) => `You said ${textOf(messages[0]?.content)}`]);
  assertEquals(textOf((await provider.complete(request("hi"))).content), "You said hi");
});

Deno.test("MockContextManager copies in and out and records its requests", async () => {
  const given = { role: "user" as const, content: "a" };
  const context = new MockContextManager([given]);
  given.content = "changed";
  const out = await context.getMessages();
  out[0]!.content = "changed";
  out.push(given);
  assertEquals(await context.getMessages(), [{ role: "user", content: "a" }]);
  assertEquals(await context.getMessagesForRequest({ token_budget: 1 }), [{ role: "user", content: "a" }]);
  assertEquals(context.requests, [{ token_budget: 1 }]);
  await context.setMessages([{ role: "user", content: "b" }]);
  await context.addMessage({ role: "assistant", content: "c" });
  assertEquals(context.messages.map((message) => message.content), ["b", "c"]);
  await context.clear();
  assertEquals(context.messages, []);
});

Deno.test("ScriptedOrchestrator answers in order, then DONE, with and without a coordinator", async () => {
  const loop = new ScriptedOrchestrator(["one"]);
  const coordinator = createTestCoordinator();
  const { context, providers, tools, hooks } = coordinator;
  assertEquals(await loop.execute("a", context!, providers, tools, hooks, { coordinator }), "one");
  assertEquals(await loop.execute("b", context!, providers, tools, hooks), "DONE");
  assertEquals([loop.call_count, loop.prompts], [2, ["a", "b"]]);
  const stored = (await context!.getMessages()).map((message) => `${message.role}: ${message.content}`);
  assertEquals(stored, ["user: a", "assistant: one", "user: b", "assistant: DONE"]);
});

Deno.test("FakeApproval repeats its last answer and denies without any", async () => {
  const question = {
    prompt: "?",
    options: ["Allow", "Deny"],
    timeout: 1,
    default: "deny" as const,
    hook_name: "h",
  };
  const approval = new FakeApproval(["Allow", ({ prompt }) => `Not ${prompt}`]);
  const answers = [];
  for (let index = 0; index < 3; index++) answers.push(await approval.requestApproval(question));
  assertEquals(answers, ["Allow", "Not ?", "Not ?"]);
  assertEquals(await new FakeApproval().requestApproval(question), "Deny");
});
