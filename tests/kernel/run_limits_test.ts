import { RunLimitGuard } from "../../src/kernel/run_limits.ts";
import { assertToolPairs } from "../../src/testing/assertions.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { HookRegistry, JsonObject, RunLimits, Usage } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch, assertThrows } from "../assert.ts";
import { calls, hook, kit, tool, until } from "../support/sessions.ts";

const LIMITS: RunLimits = {
  max_iterations: 2,
  max_tool_calls: 2,
  max_total_tokens: 10_000,
  max_cost_usd: "0.10",
  max_duration_s: 60,
};

function createLimits(limits: Partial<RunLimits> = {}, cost_limit_is_set = false) {
  const clock = new FakeClock();
  return {
    clock,
    made: new RunLimitGuard({
      limits: { ...LIMITS, ...limits },
      cost_limit_is_set,
      clock,
    }),
  };
}

const usage = (total_tokens: number, cost_usd: string | null = "0"): Usage => ({
  input_tokens: total_tokens,
  output_tokens: 0,
  total_tokens,
  cost_usd,
});

function limitOf(run: () => unknown): unknown {
  const error = assertThrows(run) as unknown as { code: string; facts: JsonObject };
  assertEquals(error.code, "limit_reached");
  return error.facts.limit;
}

Deno.test("reserveCall() counts answered and pending calls, not failed ones", () => {
  const { made } = createLimits();
  const first = made.reserveCall(10, 10);
  made.reserveCall(10, 10).settle(null);
  made.reserveCall(10, 10).settle(usage(20));
  assertEquals(limitOf(() => made.reserveCall(10, 10)), "max_iterations");
  first.settle(null);
  first.settle(usage(20));
  made.reserveCall(10, 10).settle(usage(20));
  assertEquals(limitOf(() => made.reserveCall(10, 10)), "max_iterations");
});

Deno.test("reserveCall() lowers the output to the tokens that are left, and throws below 256", () => {
  const { made } = createLimits({ max_iterations: 100 });
  assertEquals(made.reserveCall(4_000, 4_096).max_output_tokens, 4_096);
  assertEquals(made.reserveCall(1_000, 4_096).max_output_tokens, 904);
  assertEquals(limitOf(() => made.reserveCall(10, 4_096)), "max_total_tokens");
  const { made: tight } = createLimits({ max_total_tokens: 300 });
  assertEquals(limitOf(() => tight.reserveCall(45, 4_096)), "max_total_tokens");
  assertEquals(tight.reserveCall(44, 4_096).max_output_tokens, 256);
  const { made: small } = createLimits({ max_total_tokens: 300 });
  assertEquals(small.reserveCall(200, 100).max_output_tokens, 100);
});

Deno.test("settle() counts the usage of a call", () => {
  const { made } = createLimits({ max_iterations: 100 });
  made.reserveCall(4_000, 5_000).settle(usage(100));
  assertEquals(made.reserveCall(4_000, 5_000).max_output_tokens, 5_000);
});

Deno.test("reserveCall() throws at exactly max_cost_usd", () => {
  const { made } = createLimits({ max_iterations: 100 });
  made.reserveCall(1, 1).settle(usage(2, "0.0999999999"));
  made.reserveCall(1, 1).settle(usage(2, "0.0000000001"));
  assertEquals(limitOf(() => made.reserveCall(1, 1)), "max_cost_usd");
});

Deno.test("a call without a price ends the run only when max_cost_usd was set", () => {
  const { made } = createLimits({}, true);
  const error = assertThrows(() => made.reserveCall(1, 1).settle(usage(2, null)));
  assertMatch(error.message, /config\.prices/);
  const { made: lenient } = createLimits();
  lenient.reserveCall(1, 1).settle(usage(2, null));
});

Deno.test("the clock of a run runs while a session works and no approval is pending", async () => {
  const { made, clock } = createLimits();
  made.start();
  await clock.advance(30_000);
  await made.paused(() => clock.advance(1_000_000));
  made.start(); // a sub-agent
  await made.paused(() => made.paused(() => clock.advance(1_000_000)));
  made.stop();
  await clock.advance(29_999);
  assertEquals(made.signal.aborted, false);
  await clock.advance(1);
  assertEquals(made.signal.aborted, true);
  assertEquals(limitOf(() => made.countToolCall()), "max_duration_s");
  made.stop();
  assertEquals(clock.pending, 0);
});

Deno.test("stop() stops the clock, and a pending approval that ends later does not start it", async () => {
  const { made, clock } = createLimits();
  made.start();
  const waiting = made.paused(() => clock.after(10));
  made.stop();
  await clock.advance(10);
  await waiting;
  assertEquals(clock.pending, 0);
  await clock.advance(1_000_000);
  assertEquals(made.signal.aborted, false);
});

Deno.test("a module cannot change the limits", () => {
  const { made } = createLimits();
  assertThrows(() => (made.limits as { max_tool_calls: number }).max_tool_calls = 9, TypeError);
});

Deno.test("max_tool_calls refuses the next call, adds a result for it, and ends the run", async () => {
  const provider = new MockProvider({ responses: [calls(["t"], ["t"], ["t"]), "never"] });
  let ran = 0;
  const { run, turn, data, messages } = kit({
    loop: { max_parallel_tools: 1 },
    limits: { max_tool_calls: 2 },
    providers: [provider],
    tools: [tool("t", () => ++ran)],
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.stop_reason, outcome.error], [
    "incomplete",
    "limit:max_tool_calls",
    null,
  ]);
  assertEquals([ran, provider.call_count], [2, 1]);
  assertEquals(turn().slice(turn().indexOf("tool:pre")), [
    ...["tool:pre", "tool:post", "tool:pre", "tool:post", "tool:pre", "tool:error"],
    ...["context:message", "context:message", "context:message", "execution:end", "orchestrator:complete"],
  ]);
  assertEquals((data("tool:error")[0]?.error as JsonObject).type, "limit_reached");
  assertEquals(data("execution:end")[0]?.status, "completed");
  assertEquals(data("orchestrator:complete")[0]?.status, "incomplete");
  assertMatch(String(messages().at(-1)?.content), /reached its limit max_tool_calls/);
  assertToolPairs(messages());
});

Deno.test("the run's limits on model calls end it as incomplete, with a valid history", async () => {
  const cases: [Partial<RunLimits>, string][] = [
    [{ max_iterations: 1 }, "limit:max_iterations"],
    [{ max_total_tokens: 400 }, "limit:max_total_tokens"],
    [{ max_cost_usd: "0.001" }, "limit:max_cost_usd"],
  ];
  for (const [limits, stop_reason] of cases) {
    const step = {
      ...calls(["t"]) as JsonObject,
      usage: { input_tokens: 100, output_tokens: 100, cost_usd: "0.001" },
    };
    const { run, data, messages } = kit({
      limits,
      loop: { max_iterations: 50 },
      providers: [[step, "never"]],
      tools: [tool("t")],
    });
    const outcome = await run();
    assertEquals([outcome.status, outcome.stop_reason], ["incomplete", stop_reason]);
    assertEquals(data("provider:response").length, 1);
    assertEquals(data("provider:error"), []);
    assertEquals(data("orchestrator:complete")[0]?.status, "incomplete");
    assertToolPairs(messages());
  }
});

Deno.test("the loop leaves room for its last call below the run's limit", async () => {
  const { run } = kit({ limits: { max_iterations: 3 }, providers: [[calls(["t"])]], tools: [tool("t")] });
  assertEquals((await run()).stop_reason, "limit:max_iterations");
});

Deno.test("an answer without a price under a set max_cost_usd is logged and is the last one", async () => {
  const { run, data } = kit({ cost_limit_is_set: true, providers: [["an answer"]] });
  const outcome = await run();
  assertEquals([outcome.status, outcome.stop_reason], ["incomplete", "limit:max_cost_usd"]);
  assertEquals(data("provider:response").map((entry) => entry.usage), [
    { input_tokens: 10, output_tokens: 5, total_tokens: 15, cost_usd: null },
  ]);
});

Deno.test("max_duration_s ends a model call and a tool", async () => {
  for (const what of ["provider", "tool"]) {
    const { run, clock, data, messages } = kit({
      limits: { max_duration_s: 1 },
      providers: [what === "provider" ? [{ text: "late", delay_ms: 10_000 }] : [calls(["t"]), "never"]],
      tools: [tool("t", async () => await clock.after(10_000))],
    });
    const done = run();
    await until(() => clock.pending > 1);
    await clock.advance(1_000);
    const outcome = await done;
    assertEquals([outcome.status, outcome.stop_reason], ["incomplete", "limit:max_duration_s"]);
    assertEquals(data("orchestrator:complete")[0]?.status, "incomplete");
    assertToolPairs(messages());
  }
});

Deno.test("a loop that ignores its abort signal is abandoned after ten seconds", async () => {
  for (const why of ["time", "cancel"]) {
    const { run, session, clock, data, turn } = kit({
      limits: { max_duration_s: 1 },
      orchestrator: async (coordinator) =>
        await coordinator.mount("orchestrator", {
          execute: (_p: unknown, _c: unknown, _v: unknown, _t: unknown, _h: unknown) =>
            new Promise<string>(() => {}),
        }),
    });
    const done = run();
    await until(() => clock.pending > 0);
    if (why === "cancel") await session.cancel("immediate");
    else await clock.advance(1_000);
    await clock.advance(9_999);
    assertEquals(data("orchestrator:complete"), []);
    await clock.advance(1);
    const outcome = await done;
    assertEquals(
      [outcome.status, outcome.stop_reason],
      why === "time" ? ["incomplete", "limit:max_duration_s"] : ["cancelled", "cancelled"],
    );
    assertEquals(turn().filter((event) => event !== "cancel:requested"), [
      "execution:start",
      "prompt:submit",
      ...(why === "cancel" ? ["cancel:completed"] : []),
      "execution:end",
      "orchestrator:complete",
    ]);
    assertEquals(clock.pending, 0);
  }
});

Deno.test("events of an abandoned loop after the end of its turn are dropped", async () => {
  const late = Promise.withResolvers<void>();
  const { run, session, clock, data, turn } = kit({
    orchestrator: async (coordinator) =>
      await coordinator.mount("orchestrator", {
        async execute(_p: unknown, _c: unknown, _v: unknown, _t: unknown, hooks: HookRegistry) {
          await late.promise;
          for (const event of ["cancel:completed", "execution:end", "orchestrator:complete"]) {
            await hooks.emit(event, { orchestrator: "late", status: "success" });
          }
          await hooks.emit("late:done", {});
          return "";
        },
      }),
  });
  const done = run();
  await until(() => clock.pending > 0);
  await session.cancel("immediate");
  await clock.advance(10_000);
  assertEquals((await done).status, "cancelled");
  late.resolve();
  await until(() => data("late:done").length === 1);
  assertEquals(turn().filter((event) => event !== "late:done"), [
    "execution:start",
    "prompt:submit",
    "cancel:requested",
    "cancel:completed",
    "execution:end",
    "orchestrator:complete",
  ]);
});

Deno.test("a tool that exceeds its timeout is aborted, and the turn continues", async () => {
  let reason: unknown;
  const { run, clock, data, messages } = kit({
    kernel: { tool_timeout_s: 2 },
    providers: [[calls(["t"]), "done"]],
    tools: [
      tool(
        "t",
        (_input, call) =>
          new Promise(() => call!.signal.addEventListener("abort", () => reason = call!.signal.reason)),
      ),
    ],
  });
  const done = run();
  await until(() => clock.pending > 1);
  await clock.advance(2_000);
  assertEquals((await done).status, "completed");
  assertEquals((reason as { code: string }).code, "tool_timeout");
  assertEquals(data("tool:error").map((one) => one.error), [
    { type: "tool_timeout", msg: 'Tool "t" timed out: no result within 2 s (tool_timeout_s)' },
  ]);
  assertToolPairs(messages());
  assertEquals(clock.pending, 0);
});

Deno.test("a tool without a timeout may run for any time", async () => {
  const { run, clock } = kit({
    kernel: { tool_timeout_s: 0 },
    limits: { max_duration_s: 10_000 },
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", async () => await clock.after(3_600_000))],
  });
  const done = run();
  await until(() => clock.pending > 1);
  await clock.advance(3_600_000);
  assertEquals((await done).status, "completed");
});

Deno.test("output and error of a tool are shortened to max_tool_result_bytes, with a marker", async () => {
  const big = "é".repeat(50_000);
  const outputs: [() => unknown, string][] = [
    [() => big, "output"],
    [() => ({ big }), "output"],
    [() => ({ success: false, error: { message: big, type: "Big" } }), "failure"],
    [() => Promise.reject(Object.assign(new Error(big), { name: "Big", code: "tool_crashed" })), "thrown"],
  ];
  for (const [execute, what] of outputs) {
    const { run, entries, messages, data } = kit({
      kernel: { max_tool_result_bytes: 1_000 },
      providers: [[calls(["t"]), "done"]],
      tools: [tool("t", execute)],
    });
    assertEquals((await run()).status, "completed");
    const text = String(messages()[2]?.content);
    assertMatch(text, /bytes cut: max_tool_result_bytes is 1000/);
    assert(new TextEncoder().encode(text).length < 1_200);
    assert(!text.includes("\ufffd"));
    const reported = entries.find((entry) => entry.event === "tool:post" || entry.event === "tool:error");
    assert(JSON.stringify(reported).length < 5_000, what);
    if (what === "thrown") assertEquals((data("tool:error")[0]?.error as JsonObject).type, "tool_crashed");
  }
});

Deno.test("output that fits is not changed", async () => {
  const { run, data } = kit({
    kernel: { max_tool_result_bytes: 1_000 },
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", () => ({ text: "é".repeat(400) }))],
  });
  await run();
  assertEquals((data("tool:post")[0]?.result as JsonObject).output, { text: "é".repeat(400) });
});

Deno.test("a hook's model call is counted and logged, and is not part of the loop's conversation", async () => {
  const provider = new MockProvider({ responses: [calls(["t"], ["t"]), "judge one", "judge two", "done"] });
  const { run, data, turn, messages } = kit({
    limits: { max_iterations: 4 },
    loop: { max_parallel_tools: 1, max_iterations: 3 },
    providers: [provider],
    tools: [tool("t")],
    hooks: [async (coordinator) => {
      coordinator.hooks.register("tool:pre", async () => {
        const verdict = await coordinator.providers.mock!.complete({
          messages: [{ role: "user", content: "safe?" }],
        });
        assertMatch(String(verdict.content[0]?.text), /^judge/);
        return null;
      });
      await Promise.resolve();
    }],
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.output_text], ["completed", "done"]);
  assertEquals(turn().filter((event) => event.startsWith("tool:") || event.startsWith("provider:")), [
    ...["provider:request", "provider:response"],
    ...["provider:response", "tool:pre", "tool:post", "provider:response", "tool:pre", "tool:post"],
    ...["provider:request", "provider:response"],
  ]);
  assertEquals(data("provider:response").map((entry) => entry.inner ?? false), [false, true, true, false]);
  assertEquals(data("orchestrator:complete")[0]?.turn_count, 2);
  assertToolPairs(messages());
});

Deno.test("a hook's model calls count for the same limit", async () => {
  const { run } = kit({
    limits: { max_iterations: 1 },
    providers: [["answer"]],
    hooks: [(coordinator) => {
      coordinator.hooks.register("prompt:submit", async () => {
        await coordinator.providers.mock!.complete({ messages: [] });
        return null;
      });
    }],
  });
  assertEquals((await run()).stop_reason, "limit:max_iterations");
});

Deno.test("models and tools cannot be called outside a turn", async () => {
  const failures: string[] = [];
  const { session } = kit({
    tools: [tool("t")],
    hooks: [async (coordinator) => {
      coordinator.hooks.register("x", () => null);
      await coordinator.providers.mock!.complete({ messages: [] }).catch((error) =>
        failures.push(error.message)
      );
      await Promise.resolve(coordinator.tools.t!.execute({})).catch((error) => failures.push(error.message));
    }],
  });
  await session.initialize();
  assertEquals(failures, [
    'Cannot call provider "mock": no turn is running',
    'Cannot execute tool "t": no turn is running',
  ]);
});

Deno.test("what a loop states of a mounted model is ignored; what it states of its own counts", async () => {
  const { run, data, run_limits } = kit({
    orchestrator: async (coordinator) =>
      await coordinator.mount("orchestrator", {
        async execute(
          _p: unknown,
          _c: unknown,
          providers: Record<string, MockProvider>,
          _t: unknown,
          hooks: typeof coordinator.hooks,
        ) {
          await providers.mock!.complete({ messages: [] });
          await hooks.emit("provider:response", {
            provider: "mock",
            usage: { input_tokens: 0, cost_usd: "0" },
            tool_calls: false,
          });
          await hooks.emit("provider:response", { provider: "other", usage: { input_tokens: 9e9 } });
          return "done";
        },
      }),
    providers: [["answer"]],
  });
  await run();
  assertEquals(data("provider:response").map(({ provider, usage }) => [provider, usage]), [
    ["mock", { input_tokens: 10, output_tokens: 5, total_tokens: 15, cost_usd: null }],
    ["other", { input_tokens: 9e9, output_tokens: 0, total_tokens: 9e9, cost_usd: null }],
  ]);
  assertEquals(run_limits.tokens_left, 0);
});

Deno.test("stopFor() ends the run like any other limit", async () => {
  const { run, run_limits: made } = kit({
    providers: [[calls(["t"]), "never"]],
    tools: [tool("t")],
    hooks: [hook("tool:post", () => void made.stopFor("max_log_entries", "the log is full"))],
  });
  assertEquals((await run()).stop_reason, "limit:max_log_entries");
});

Deno.test("a sub-agent's limits end with its parent's while it works, and are forgotten afterwards", () => {
  const clock = new FakeClock();
  const parent = new RunLimitGuard({ limits: LIMITS, clock });
  const [early, late] = [0, 1].map(() => new RunLimitGuard({ limits: LIMITS, clock, parent })) as [
    RunLimitGuard,
    RunLimitGuard,
  ];
  early.start();
  assertEquals(parent.ending.is_waited_for, true);
  early.stop();
  assertEquals(parent.ending.is_waited_for, false);
  parent.stopFor("max_log_bytes", "the log is full");
  late.start();
  assertEquals([early.over, late.over], [null, parent.over]);
});
