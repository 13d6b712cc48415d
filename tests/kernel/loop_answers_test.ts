/** Answers of providers in a turn: choice, limits, streams and failures. */
import { LLMError } from "../../src/sdk/llm_errors.ts";
import { assertToolPairs } from "../../src/testing/assertions.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { JsonObject } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { calls, hook, kit, type TestModule, tool } from "../support/sessions.ts";
import { brief, CALL, END, START, TEXT } from "../support/turn_events.ts";

Deno.test("the provider of lowest priority answers; unset is 100, ties go to the first", async () => {
  const asked = async (priorities: (number | undefined)[], loop: JsonObject = {}) => {
    const providers = priorities.map((priority, index) =>
      new MockProvider({
        name: `p${index}`,
        response: `p${index}`,
        ...(priority === undefined ? {} : { priority }),
      })
    );
    return (await kit({ providers, loop }).run()).output_text;
  };
  assertEquals(await asked([5, 1, undefined]), "p1");
  assertEquals(await asked([undefined, 101, 100]), "p0");
  assertEquals(await asked([7, 7]), "p0");
  assertEquals(await asked([7, 8], { default_provider: "p1" }), "p1");
  assertEquals(await asked([7, 8], { default_provider: "gone" }), "p0");
});

Deno.test("without a provider the turn fails with a clear message", async () => {
  const leave: TestModule = {
    mount: async (coordinator) => await coordinator.mount("tools", tool("t")),
    onSessionReady: (coordinator) => coordinator.unmount("providers", "mock"),
  };
  const { run, data, turn } = kit({ tools: [leave] });
  const outcome = await run();
  assertEquals([outcome.status, outcome.stop_reason], ["failed", "error"]);
  assertEquals(outcome.error, {
    code: "internal",
    message: "No provider available: the plan must mount one",
  });
  assertEquals(data("orchestrator:complete")[0]?.status, "error");
  assertEquals(turn(), [...START, "execution:end", "orchestrator:complete"]);
});

Deno.test("at its own limit the loop makes one more call without tools, and its text ends the turn", async () => {
  const provider = new MockProvider({
    responses: [calls(["t"]), calls(["t"]), "all I have"],
  });
  const { run, turn, data, messages } = kit({
    loop: { max_iterations: 2 },
    providers: [provider],
    tools: [tool("t")],
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.stop_reason, outcome.output_text], [
    "incomplete",
    "limit:max_iterations",
    "all I have",
  ]);
  const round = [...CALL, "tool:pre", "tool:post", "context:message"];
  assertEquals(turn(), [...START, ...round, ...round, ...TEXT, ...END]);
  assertEquals(data("provider:request").at(-1), { provider: "mock", iteration: 3, max_reached: true });
  const last = provider.requests.at(-1)!;
  assertEquals(last.tools, undefined);
  assertMatch(String(last.messages.at(-1)?.content), /^<system-reminder source="orchestrator-loop-limit">/);
  assertEquals(messages().filter((message) => String(message.content).includes("system-reminder")), []);
  assertEquals(data("orchestrator:complete")[0]?.status, "incomplete");
});

Deno.test("a last call that requests tools although it has none leaves a valid history", async () => {
  const { run, messages } = kit({
    loop: { max_iterations: 1 },
    providers: [[calls(["t"])]],
    tools: [tool("t")],
  });
  assertEquals((await run()).stop_reason, "limit:max_iterations");
  assertToolPairs(messages());
});

Deno.test("without room for the last call below the run's limit, the turn ends with its text and emits no further request", async () => {
  for (const [limit, own] of [[1, undefined], [1, 5], [2, 2]] as const) {
    const provider = new MockProvider({
      responses: [1, 2, 3].map((n) => ({ text: `step ${n}`, tool_calls: [{ name: "t", arguments: {} }] })),
    });
    const { run, turn, data, messages } = kit({
      limits: { max_iterations: limit },
      ...(own === undefined ? {} : { loop: { max_iterations: own } }),
      providers: [provider],
      tools: [tool("t")],
    });
    const outcome = await run();
    assertEquals([outcome.status, outcome.stop_reason, outcome.output_text, outcome.error], [
      "incomplete",
      "limit:max_iterations",
      `step ${limit}`,
      null,
    ]);
    assertEquals([provider.call_count, data("provider:request").length], [limit, limit]);
    assertEquals(turn().slice(-3), ["prompt:complete", "execution:end", "orchestrator:complete"]);
    assertToolPairs(messages());
  }
});

Deno.test("a limit of one model call is enough for an answer", async () => {
  const provider = new MockProvider({ response: "at once" });
  const outcome = await kit({ limits: { max_iterations: 1 }, providers: [provider] }).run();
  assertEquals([outcome.status, outcome.output_text, provider.call_count], ["completed", "at once", 1]);
});

Deno.test("an answer at the last allowed iteration needs no further call", async () => {
  const provider = new MockProvider({ response: "at once" });
  const outcome = await kit({ loop: { max_iterations: 1 }, providers: [provider] }).run();
  assertEquals([outcome.status, provider.call_count], ["completed", 1]);
});

Deno.test("empty answers end the turn after two retries", async () => {
  const provider = new MockProvider({ responses: [{}] });
  const { run, data } = kit({ providers: [provider] });
  const outcome = await run();
  assertEquals([outcome.status, outcome.stop_reason, provider.call_count], [
    "incomplete",
    "empty_response",
    3,
  ]);
  assertEquals(data("orchestrator:complete")[0]?.status, "incomplete");
});

Deno.test("a provider that fails permanently ends the run with the type of the error", async () => {
  const failures: [Error, string, JsonObject][] = [
    [new LLMError("AuthenticationError", "bad key", { status_code: 401 }), "provider_auth", {
      provider: "mock",
      error: { type: "AuthenticationError", msg: "bad key" },
      retryable: false,
      status_code: 401,
    }],
    [new LLMError("RateLimitError", "slow down", { status_code: 429 }), "provider_rate_limited", {
      provider: "mock",
      error: { type: "RateLimitError", msg: "slow down" },
      retryable: true,
      status_code: 429,
    }],
    [new TypeError("x is undefined"), "provider_bad_response", {
      provider: "mock",
      error: { type: "TypeError", msg: "x is undefined" },
      retryable: false,
      status_code: null,
    }],
  ];
  for (const [error, code, reported] of failures) {
    const { run, turn, data, messages } = kit({ providers: [[{ error }]], loop: { max_retries: 0 } });
    const outcome = await run();
    assertEquals([outcome.status, outcome.stop_reason, outcome.error], ["failed", "error", {
      code,
      message: error.message + ("status_code" in error ? ` (HTTP ${error.status_code})` : ""),
    }]);
    assertEquals(turn(), [
      ...START,
      "provider:request",
      "provider:error",
      "execution:end",
      "orchestrator:complete",
    ]);
    assertEquals(data("provider:error"), [reported]);
    assertEquals(data("execution:end"), [{ response: "", status: "error" }]);
    assertEquals(data("orchestrator:complete")[0], {
      orchestrator: "loop-streaming",
      turn_count: 0,
      status: "error",
    });
    assertEquals(brief(messages()), [["user", "hello"]]);
  }
});

Deno.test("the deltas of a streamed answer have one request id and a growing sequence, and join to the text", async () => {
  const provider = new MockProvider({
    responses: [{ thinking: "let me see", text: "six times seven is forty-two" }],
    chunk_chars: 7,
  });
  const { run, data } = kit({ providers: [provider] });
  await run();
  const starts = data("content_block:start");
  assertEquals(starts, [
    { request_id: "req_1", block_index: 0, block_type: "thinking" },
    { request_id: "req_1", block_index: 1, block_type: "text" },
  ]);
  const deltas = data("content_block:delta").filter((delta) => delta.block_index === 1);
  assertEquals(deltas.map((delta) => delta.sequence), [1, 2, 3, 4]);
  assertEquals(deltas.map((delta) => delta.delta).join(""), "six times seven is forty-two");
  assertEquals(new Set(data("content_block:delta").map((delta) => delta.request_id)), new Set(["req_1"]));
  assertEquals(data("content_block:end").map((end) => [end.block_index, end.total_blocks]), [[0, 2], [1, 2]]);
  assertEquals(data("llm:stream_aborted"), []);
});

Deno.test("llm:stream_aborted is emitted for a stream that breaks, not for one that never started", async () => {
  for (const partial of [true, false]) {
    const provider = new MockProvider();
    provider.complete = (_request, options) => {
      if (partial) options?.onDelta?.({ block_index: 0, block_type: "text", delta: "six ti" });
      return Promise.reject(new LLMError("StreamError", "cut off"));
    };
    const { run, data, turn } = kit({ providers: [provider], loop: { max_retries: 0 } });
    assertEquals((await run()).status, "failed");
    assertEquals(
      data("llm:stream_aborted"),
      partial ? [{ request_id: "req_1", error: { type: "StreamError", msg: "cut off" } }] : [],
    );
    const kept = partial ? ["context:message"] : [];
    const end = ["provider:error", ...kept, "execution:end", "orchestrator:complete"];
    assertEquals(turn().slice(-end.length), end);
  }
});

Deno.test("malformed deltas, and those after the end, are dropped", async () => {
  const provider = new MockProvider({ response: "hi" });
  const complete = provider.complete.bind(provider);
  let late: (() => void) | null = null;
  provider.complete = (request, options) => {
    const onDelta = options!.onDelta as (delta: unknown) => void;
    for (
      const nonsense of [null, "text", {}, { block_index: "0", block_type: "text", delta: "x" }, {
        block_index: 0,
        block_type: "text",
        delta: 5,
      }]
    ) {
      onDelta(nonsense);
    }
    late = () => onDelta({ block_index: 0, block_type: "text", delta: "late" });
    return complete(request, options);
  };
  const { run, data } = kit({ providers: [provider], hooks: [hook("provider:response", () => late!())] });
  assertEquals((await run()).status, "completed");
  assertEquals(data("content_block:delta").map((delta) => delta.delta), ["hi"]);
});

Deno.test("deltas that arrive faster than they are emitted are joined, and none is lost", async () => {
  const words = Array.from({ length: 2_000 }, (_, at) => `${at} `);
  const provider = new MockProvider({ response: words.join("") });
  const complete = provider.complete.bind(provider);
  provider.complete = (request, options) => {
    for (const delta of words) options!.onDelta!({ block_index: 0, block_type: "text", delta });
    return complete(request, {});
  };
  const { run, data } = kit({ providers: [provider] });
  assertEquals((await run()).output_text, words.join(""));
  const deltas = data("content_block:delta");
  assertEquals(deltas.map(({ delta }) => delta).join(""), words.join(""));
  assertEquals(deltas.map(({ sequence }) => sequence), deltas.map((_, index) => index + 1));
  assert(deltas.length < 300, String(deltas.length));
});

Deno.test("an answer that is not streamed has one delta for each text block", async () => {
  const provider = new MockProvider({ response: "hi there" });
  const complete = provider.complete.bind(provider);
  provider.complete = (request) => complete(request, {});
  const { run, turn, data } = kit({ providers: [provider] });
  await run();
  assertEquals(turn(), [...START, ...TEXT, ...END]);
  assertEquals(data("content_block:delta")[0]?.delta, "hi there");
});

Deno.test("a stored answer contains its calls in both spellings", async () => {
  const { run, messages } = kit({ providers: [[calls(["t", { a: 1 }]), "done"]], tools: [tool("t")] });
  await run();
  assertEquals(messages()[1], {
    role: "assistant",
    content: [{ type: "tool_call", id: "c1", name: "t", input: { a: 1 } }],
    tool_calls: [{ id: "c1", name: "t", tool: "t", arguments: { a: 1 } }],
  });
  assertEquals(messages()[2], { role: "tool", tool_call_id: "c1", name: "t", content: "ok" });
});

Deno.test("an answer with plain text is normalised to text, usage and calls", async () => {
  const provider = new MockProvider();
  provider.complete = () =>
    Promise.resolve({
      content: [{ type: "text", text: "plain" }],
      usage: { input_tokens: 10, output_tokens: 5 },
    }) as never;
  const { run, data } = kit({ providers: [provider] });
  assertEquals((await run()).output_text, "plain");
  assertEquals(data("provider:response")[0]?.usage, {
    input_tokens: 10,
    output_tokens: 5,
    total_tokens: 15,
    cost_usd: null,
  });
});

Deno.test("an answer that is truncated by the model's limit, or filtered, is incomplete", async () => {
  const outcomes: [string, string, string][] = [
    ["half an ans", "length", "max_output_tokens"],
    ["", "max_tokens", "max_output_tokens"],
    ["I may not", "content_filter", "content_filter"],
  ];
  for (const [text, finish_reason, stop_reason] of outcomes) {
    const { run } = kit({ providers: [[{ text, finish_reason }]] });
    const outcome = await run();
    assertEquals([outcome.status, outcome.stop_reason, outcome.output_text], [
      "incomplete",
      stop_reason,
      text,
    ]);
  }
  const filtered = await kit({ providers: [[{ error: { type: "ContentFilterError", message: "no" } }]] })
    .run();
  assertEquals([filtered.status, filtered.stop_reason], ["incomplete", "content_filter"]);
});
