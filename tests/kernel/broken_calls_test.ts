/** Model calls that break off after a part of their answer: what counts for the run's limits. */
import { LLMError, type Orchestrator, type Provider, type RunLimits, type Usage } from "preamp";
import { MockProvider } from "preamp/testing";
import { assertEquals, assertRejects } from "../assert.ts";
import { calls, contents, kit, nextTurn, type TestModule, tool, until } from "../support/sessions.ts";

const PART = { input_tokens: 15_000, output_tokens: 0, total_tokens: 15_000, cost_usd: "0.01" };
const broken = () => ({ error: new LLMError("ProviderUnavailableError", "It broke", { usage: PART }) });

/** Runs a loop whose first provider breaks off and whose second one answers. */
async function runWithFallback(limits: Partial<RunLimits>) {
  const { run, data } = kit({
    limits,
    loop: { fallback: true, max_retries: 0 },
    providers: [
      new MockProvider({ name: "mock", responses: [broken()], priority: 1 }),
      new MockProvider({ name: "second", responses: ["done"], priority: 2 }),
    ],
  });
  const { status, stop_reason } = await run();
  assertEquals(data("provider:error").map(({ usage }) => usage), [PART]);
  return [status, stop_reason];
}

Deno.test("a call of the loop that breaks off counts with the usage in its provider:error", async () => {
  assertEquals((await runWithFallback({ max_total_tokens: 14_000 }))[1], "limit:max_total_tokens");
  assertEquals((await runWithFallback({ max_cost_usd: "0.01" }))[1], "limit:max_cost_usd");
  assertEquals((await runWithFallback({}))[0], "completed");
});

Deno.test("a call that breaks off counts with its provider:retry, or the one of a module with an inner provider:error", async () => {
  const request = { messages: [{ role: "user" as const, content: "safe?" }] };
  const by_hook = kit({
    limits: { max_total_tokens: 14_000 },
    providers: [new MockProvider({ responses: [calls(["t"]), broken(), "done"] })],
    tools: [tool("t")],
    hooks: [(coordinator) => {
      coordinator.hooks.register("tool:pre", async () => {
        const failure = await coordinator.providers.mock!.complete(request).catch((error) => error);
        assertEquals(failure.message, "It broke");
        return null;
      });
    }],
  });
  const by_retry = kit({
    limits: { max_total_tokens: 14_000 },
    loop: { max_retries: 1 },
    providers: [new MockProvider({ responses: [broken(), "done"] })],
  });
  for (
    const [{ run, of, entries, clock }, event] of [[by_hook, "provider:error"], [
      by_retry,
      "provider:retry",
    ]] as const
  ) {
    const running = run();
    await until(() => entries.some((entry) => entry.event === event));
    await clock.advance(60_000);
    assertEquals((await running).stop_reason, "limit:max_total_tokens");
    const data = of(event).map(({ data: { inner, usage } }) => [inner, usage]);
    assertEquals(data, [[event === "provider:error" ? true : undefined, PART]]);
  }
});

/** Streams one text and waits for its caller, who aborts the call. */
function endless(text: string): MockProvider {
  const provider = new MockProvider();
  provider.complete = (_request, { onDelta } = {}) => {
    onDelta?.({ block_index: 0, block_type: "text", delta: text });
    return new Promise(() => {});
  };
  return provider;
}

/** Makes a call and aborts it. */
async function abortCall(provider: Provider): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  const request = { messages: [{ role: "user" as const, content: "tell me" }] };
  const call = provider.complete(request, { signal, onDelta: () => {} });
  nextTurn().then(() => controller.abort());
  await assertRejects(() => call);
}

Deno.test("a call that its caller aborts counts with estimated tokens: of the loop, or of a tool", async () => {
  const text = "word ".repeat(2_500);
  const loop: Orchestrator = {
    async execute(_prompt, _context, { mock }) {
      for (let count = 0; count < 9; count++) await abortCall(mock!);
      return "done";
    },
  };
  const by_loop = kit({
    limits: { max_total_tokens: 7_000 },
    providers: [endless(text)],
    orchestrator: loop,
  });
  const by_tool = kit({
    limits: { max_total_tokens: 7_000 },
    providers: [[calls(["t"]), "done"], async (coordinator) => {
      await coordinator.mount("providers", Object.assign(endless(text), { name: "endless" }));
    }],
    tools: [async (coordinator) => {
      const work = tool("t", async () => {
        for (let count = 0; count < 9; count++) await abortCall(coordinator.providers.endless!);
        return "done";
      });
      await coordinator.mount("tools", work);
    }],
  });
  for (const { run, data } of [by_loop, by_tool]) {
    assertEquals((await run()).stop_reason, "limit:max_total_tokens");
    const tokens = data("provider:error").map(({ usage }) => (usage as Usage).total_tokens);
    assertEquals([tokens.length < 5, tokens.every((count) => count > 1_000)], [true, true]);
  }
});

Deno.test("a provider that passes a call on has one answer for it: further calls count on their own", async () => {
  const usage = { input_tokens: 100, output_tokens: 10, total_tokens: 110, cost_usd: "0.25" };
  const real = new MockProvider({
    name: "real",
    responses: [{ text: "one", usage }, { text: "two", usage }],
  });
  const { run, data } = kit({
    providers: [(coordinator) => coordinator.mount("providers", real), (coordinator) => {
      const front = new MockProvider({ name: "front", priority: 1 });
      front.complete = async (request, options) => {
        const answers = await Promise.all(
          [1, 2].map(() => coordinator.providers.real!.complete(request, options)),
        );
        return answers[0]!;
      };
      return coordinator.mount("providers", front);
    }],
  });
  await run();
  assertEquals(data("provider:response").map(({ provider, inner, usage }) => [provider, inner, usage]), [
    ["real", true, usage],
    ["front", undefined, usage],
  ]);
});

Deno.test("what arrived of a stream that a cancellation or the end of the time breaks off counts, estimated", async () => {
  for (const [end, stop_reason] of [["cancel", "cancelled"], ["time", "limit:max_duration_s"]]) {
    const provider = new MockProvider();
    provider.complete = (_request, options) => {
      const { onDelta, signal } = options!; // those of the loop
      onDelta!({ block_index: 0, block_type: "text", delta: "a part" });
      const failure = new LLMError("AbortError", "It was cancelled", { usage: PART });
      return new Promise((_, reject) => signal!.addEventListener("abort", () => reject(failure)));
    };
    const { run, data, session, clock, messages, run_limits } = kit({
      limits: { max_duration_s: 60 },
      providers: [provider],
    });
    const running = run();
    await until(() => data("content_block:delta").length > 0);
    await (end === "cancel" ? session.cancel("immediate") : clock.advance(60_000));
    const outcome = await running;
    assertEquals([outcome.stop_reason, outcome.output_text], [stop_reason, "a part"]);
    assertEquals(data("execution:end").map(({ response }) => response), ["a part"]);
    assertEquals(data("provider:error"), []);
    const [{ usage } = {}, ...more] = data("llm:stream_aborted");
    assertEquals(more, []);
    const { total_tokens, estimated } = usage as Usage;
    assertEquals([total_tokens > 0, estimated, run_limits.limits.max_total_tokens - run_limits.tokens_left], [
      true,
      true,
      total_tokens,
    ]);
    const note = end === "cancel" ? "[This answer was stopped here.]" : "[This answer broke off here.]";
    assertEquals(contents(messages()).slice(1), [["assistant", `a part,${note}`]]);
  }
});

Deno.test("the text of an answer that fails after its first word is kept, after the calls with their results", async () => {
  const provider = new MockProvider({
    responses: [{ tool_calls: [{ id: "c", name: "probe", arguments: {} }] }],
  });
  const first = provider.complete.bind(provider);
  let count = 0;
  provider.complete = (request, options) => {
    if (++count !== 2) return first(request, options);
    options!.onDelta!({ block_index: 0, block_type: "thinking", delta: "Hm" });
    options!.onDelta!({ block_index: 1, block_type: "text", delta: "It is " });
    options!.onDelta!({ block_index: 1, block_type: "text", delta: "quite" });
    return Promise.reject(new LLMError("StreamError", "It broke", { usage: PART }));
  };
  const { run, messages, data } = kit({ providers: [provider], tools: [tool("probe")] });
  const { status, output_text, output, error } = await run();
  assertEquals([status, output_text, error?.code], ["failed", "It is quite", "provider_bad_response"]);
  assertEquals(output, [{ type: "text", text: "It is quite" }]);
  assertEquals(data("provider:error").map(({ usage }) => usage), [PART]);
  assertEquals(messages().map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
  const kept = messages().at(-1)!;
  assertEquals(kept.metadata, { broken_off: true });
  assertEquals(contents([kept]), [["assistant", "It is quite,[This answer broke off here.]"]]);
});

Deno.test("the text of a second attempt that breaks off is kept", async () => {
  const provider = new MockProvider();
  let count = 0;
  provider.complete = (_request, options) => {
    if (++count === 2) options!.onDelta!({ block_index: 0, block_type: "text", delta: "It is" });
    return Promise.reject(new LLMError(count === 1 ? "ProviderUnavailableError" : "StreamError", "It broke"));
  };
  const { run, entries, clock, messages } = kit({ loop: { max_retries: 1 }, providers: [provider] });
  const running = run();
  await until(() => entries.some(({ event }) => event === "provider:retry"));
  await clock.advance(60_000);
  const { status, output_text } = await running;
  assertEquals([status, output_text, count], ["failed", "It is", 2]);
  assertEquals(contents(messages().slice(1)), [["assistant", "It is,[This answer broke off here.]"]]);
});

/** Mounts a loop. */
function loopOf(execute: Orchestrator["execute"]): TestModule {
  return async (coordinator) => await coordinator.mount("orchestrator", { execute });
}

const ASKED = { messages: [{ role: "user" as const, content: "tell me" }] };

Deno.test("a call that the end of the loop breaks off does not count: of the loop, or of a tool", async () => {
  const left = (provider: Provider) => void provider.complete(ASKED, { onDelta() {} }).catch(() => {});
  for (const caller of ["loop", "tool"]) {
    const { run, data, run_limits } = kit({
      providers: [endless("word ".repeat(2_000))],
      tools: [(coordinator) =>
        coordinator.mount(
          "tools",
          tool("t", () => Promise.resolve(left(coordinator.providers.mock!)).then(() => "ok")),
        )],
      orchestrator: loopOf(async (_prompt, _context, { mock }, tools) => {
        if (caller === "loop") left(mock!);
        else await tools.t!.execute({});
        await nextTurn();
        return "early";
      }),
    });
    assertEquals((await run()).status, "completed");
    await nextTurn();
    assertEquals([data("provider:error"), run_limits.tokens_left], [[], 1_000_000]);
  }
});

Deno.test("a call that its caller aborts counts for max_iterations", async () => {
  let count = 0;
  const { run } = kit({
    limits: { max_iterations: 3 },
    providers: [endless("a part")],
    orchestrator: loopOf(async (_prompt, _context, { mock }) => {
      for (; count < 9; count++) await abortCall(mock!);
      return "done";
    }),
  });
  assertEquals([(await run()).stop_reason, count], ["limit:max_iterations", 9]);
});

Deno.test("a loop that ends with the error of a signal that was aborted before its call is cancelled", async () => {
  const { run } = kit({
    orchestrator: loopOf(async (_prompt, _context, { mock }) => {
      await mock!.complete(ASKED, { signal: AbortSignal.abort() });
      return "done";
    }),
  });
  assertEquals((await run()).status, "cancelled");
});

Deno.test("a call of a hook that fails does not become the error of the run", async () => {
  const { run } = kit({
    loop: { max_retries: 0 },
    providers: [new MockProvider({ responses: [{ error: new LLMError("RateLimitError", "Too many") }] })],
    hooks: [(coordinator) => {
      coordinator.hooks.register("provider:error", async () => {
        await coordinator.providers.mock!.complete(ASKED, { signal: AbortSignal.abort() }).catch(() => {});
        return { action: "continue" };
      }, { name: "asks" });
    }],
  });
  assertEquals((await run()).error?.code, "provider_rate_limited");
});
