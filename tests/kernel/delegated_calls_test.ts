/** A provider that answers with another provider of the session: both are one call. */
import { LLMError } from "../../src/sdk/llm_errors.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { ChatRequest, CompleteOptions, Coordinator, Provider, Usage } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { kit, type TestModule } from "../support/sessions.ts";

const USAGE = { input_tokens: 100, output_tokens: 10, cost_usd: "0.25" };

/** Mounts `real`, and `front`, which answers with it; `complete` calls it. */
function frontOf(
  complete: (real: Provider, request: ChatRequest, options: CompleteOptions) => Promise<unknown>,
): TestModule[] {
  const real = new MockProvider({ name: "real", responses: [{ text: "hello", usage: USAGE }] });
  return [
    (coordinator) => coordinator.mount("providers", real),
    (coordinator: Coordinator) => {
      const front = new MockProvider({ name: "front", priority: 1 });
      front.complete = (request, options = {}) =>
        complete(coordinator.providers.real!, request, options) as ReturnType<Provider["complete"]>;
      return coordinator.mount("providers", front);
    },
  ];
}

Deno.test("a provider that passes the call on is counted and logged once, with the usage of the one that answered", async () => {
  const lies = { ...USAGE, input_tokens: 0, total_tokens: 0, cost_usd: "0" };
  const run = kit({
    providers: frontOf(async (real, request, options) => {
      const response = await real.complete(request, { ...options });
      return { ...response, usage: lies };
    }),
    limits: { max_iterations: 1 },
  });
  const outcome = await run.run();
  assertEquals([outcome.status, outcome.output_text], ["completed", "hello"]);
  assertEquals(run.data("provider:response").map(({ provider, inner, usage }) => [provider, inner, usage]), [
    ["front", undefined, { ...USAGE, total_tokens: 110 }],
  ]);
  assertEquals(run.data("content_block:delta").length, 1);
});

Deno.test("without the call's key, and after its end, calls of other providers count on their own", async () => {
  let kept: CompleteOptions = {};
  const run = kit({
    providers: frontOf(async (real, request, options) => {
      const { call: _, ...own } = options;
      kept = options;
      return await real.complete(request, own);
    }),
  });
  await run.run();
  assertEquals(run.data("provider:response").map(({ provider, inner }) => [provider, inner]), [
    ["real", true],
    ["front", undefined],
  ]);
  assertEquals(Object.keys(kept.call ?? { no: "key" }), []);

  const after = kit({
    providers: frontOf((real, request) => real.complete(request, kept)),
  });
  await after.run();
  assertEquals(after.data("provider:response").length, 2);
});

/** Mounts `first`, whose answer breaks off, `second`, and `front`, which falls back to it, or fails. */
function fallbackOf(second: MockProvider | null): TestModule[] {
  const first = new MockProvider({ name: "first" });
  first.complete = (_request, options) => {
    options?.onDelta?.({ block_index: 0, block_type: "text", delta: "word ".repeat(20) });
    return Promise.reject(new LLMError("StreamError", "It broke"));
  };
  return [
    (coordinator) => coordinator.mount("providers", first),
    ...(second ? [(coordinator: Coordinator) => coordinator.mount("providers", second)] : []),
    (coordinator: Coordinator) => {
      const front = new MockProvider({ name: "front", priority: 1 });
      front.complete = (request, options = {}) =>
        coordinator.providers.first!.complete(request, options).catch((error) => {
          if (second === null) throw error;
          return coordinator.providers.second!.complete(request, options);
        });
      return coordinator.mount("providers", front);
    },
  ];
}

Deno.test("after a provider that broke off, the one that answers instead is still one call with the outer one", async () => {
  const second = new MockProvider({ name: "second", responses: [{ text: "two", usage: USAGE }] });
  const { run, data, run_limits } = kit({ providers: fallbackOf(second), limits: { max_iterations: 1 } });
  const { status, output_text } = await run();
  assertEquals([status, output_text], ["completed", "two"]);
  assertEquals(data("provider:response").map(({ provider, inner, usage }) => [provider, inner, usage]), [
    ["front", undefined, { ...USAGE, total_tokens: 110 }],
  ]);
  const [part, ...more] = data("provider:error");
  assertEquals([part?.provider, part?.inner, more], ["first", true, []]);
  const { total_tokens, estimated } = part!.usage as Usage;
  assertEquals([run_limits.tokens_left, estimated], [1_000_000 - 110 - total_tokens, true]);
});

Deno.test("the part of an answer that a provider broke off counts once when the outer call fails for it", async () => {
  const { run, data, run_limits } = kit({ providers: fallbackOf(null), loop: { max_retries: 0 } });
  assertEquals((await run()).status, "failed");
  const [part, whole, ...more] = data("provider:error");
  assertEquals([part?.provider, part?.inner, more], ["first", true, []]);
  assertEquals([whole?.provider, whole?.usage], ["front", undefined]);
  assertEquals(run_limits.tokens_left, 1_000_000 - (part!.usage as Usage).total_tokens);
});

Deno.test("an outer provider that answers itself after one that broke off has its own usage", async () => {
  const own = new MockProvider({ name: "front", priority: 1, responses: [{ text: "mine", usage: USAGE }] });
  const answer = own.complete.bind(own);
  const [first] = fallbackOf(null);
  const { run, data } = kit({
    providers: [first!, (coordinator: Coordinator) => {
      own.complete = (request, options) =>
        coordinator.providers.first!.complete(request, options).catch(() => answer(request));
      return coordinator.mount("providers", own);
    }],
  });
  await run();
  const reported = [...data("provider:error"), ...data("provider:response")];
  assertEquals(reported.map(({ provider, inner }) => [provider, inner]), [
    ["first", true],
    ["front", undefined],
  ]);
  assertEquals(reported[1]!.usage, { ...USAGE, total_tokens: 110 });
});

Deno.test("a call that outlives the call it is a part of counts on its own", async () => {
  const ended = Promise.withResolvers<void>();
  const real = new MockProvider({ name: "real", responses: [{ text: "late", usage: USAGE }] });
  const answer = real.complete.bind(real);
  real.complete = (request) => ended.promise.then(() => answer(request));
  const late: Promise<unknown>[] = [];
  const own = [{ tool_calls: [{ name: "wait", arguments: {} }], usage: USAGE }, {
    text: "two",
    usage: USAGE,
  }];
  const { run, data, run_limits } = kit({
    providers: [
      (coordinator) => coordinator.mount("providers", real),
      (coordinator: Coordinator) => {
        const front = new MockProvider({ name: "front", priority: 1, responses: own });
        const answerItself = front.complete.bind(front);
        front.complete = (request, options) => {
          if (late.length === 0) late.push(coordinator.providers.real!.complete(request, options));
          return answerItself(request);
        };
        return coordinator.mount("providers", front);
      },
    ],
    tools: [{
      name: "wait",
      description: "Waits for the other call",
      execute: async () => {
        ended.resolve();
        await late[0];
        return { success: true, output: "" };
      },
    }],
  });
  assertEquals((await run()).output_text, "two");
  assertEquals(data("provider:response").map(({ provider, inner }) => [provider, inner]), [
    ["front", undefined],
    ["real", true],
    ["front", undefined],
  ]);
  assertEquals(run_limits.tokens_left, 1_000_000 - 3 * 110);
});
