/** Cancellation of a turn: gracefully, at once, and by a module. */
import { CancellationToken } from "../../src/sdk/cancellation.ts";
import { LLMError } from "../../src/sdk/llm_errors.ts";
import { assertToolPairs } from "../../src/testing/assertions.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { Coordinator, HookRegistry } from "../../src/sdk/types.ts";
import { textOf } from "../../src/sdk/messages.ts";
import { assert, assertEquals } from "../assert.ts";
import { calls, contents, hook, kit, spy, tool, until } from "../support/sessions.ts";

const CANCELLED_END = ["cancel:requested", "cancel:completed", "execution:end", "orchestrator:complete"];

Deno.test("an AbortError of a provider cancels the turn, with each cancel and end event once", async () => {
  const { run, turn, data } = kit({
    providers: [new MockProvider({ responses: [{ error: new LLMError("AbortError", "gone") }, "never"] })],
    loop: { fallback: true, max_retries: 2 },
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.stop_reason, outcome.error], ["cancelled", "cancelled", null]);
  assertEquals(turn().slice(-4), CANCELLED_END);
  assertEquals(turn().includes("provider:error"), false);
  assertEquals([data("cancel:requested"), data("cancel:completed")], [[{ state: "immediate" }], [{
    was_immediate: true,
  }]]);
  assertEquals(data("execution:end")[0]?.status, "cancelled");
  assertEquals(data("orchestrator:complete")[0]?.status, "cancelled");
});

Deno.test("the cancel events precede an end event with status cancelled of any loop", async () => {
  for (const mode of ["graceful", "immediate", null] as const) {
    const { run, turn, data, session } = kit({
      orchestrator: async (coordinator) =>
        await coordinator.mount("orchestrator", {
          async execute(_p: unknown, _c: unknown, _v: unknown, _t: unknown, hooks: HookRegistry) {
            if (mode !== null) await session.cancel(mode);
            await hooks.emit("execution:end", { response: "", status: "cancelled" });
            await hooks.emit("orchestrator:complete", {
              orchestrator: "x",
              turn_count: 0,
              status: "cancelled",
            });
            return "";
          },
        }),
    });
    assertEquals((await run()).status, "cancelled");
    assertEquals(turn(), ["execution:start", "prompt:submit", ...CANCELLED_END]);
    assertEquals(data("cancel:completed"), [{ was_immediate: mode !== "graceful" }]);
  }
});

Deno.test("a graceful cancel lets tools finish, stores their results and calls no model", async () => {
  const provider = new MockProvider({ responses: [calls(["t"]), "never"] });
  const { run, session, clock, turn, data, messages } = kit({
    providers: [provider],
    tools: [tool("t", async () => {
      await clock.after(10);
      return "finished";
    })],
  });
  const done = run();
  await until(() => clock.pending > 1);
  await session.cancel("graceful");
  await session.cancel("graceful");
  assertEquals(turn().at(-1), "cancel:requested");
  await clock.advance(10);
  const outcome = await done;
  assertEquals([outcome.status, outcome.stop_reason, outcome.error], ["cancelled", "cancelled", null]);
  assertEquals(turn().slice(turn().indexOf("tool:pre")), [
    ...["tool:pre", "cancel:requested", "tool:post", "context:message", "cancel:completed"],
    ...["execution:end", "orchestrator:complete"],
  ]);
  assertEquals(data("cancel:requested"), [{ state: "graceful" }]);
  assertEquals(data("cancel:completed"), [{ was_immediate: false }]);
  assertEquals(data("execution:end")[0]?.status, "cancelled");
  assertEquals(data("orchestrator:complete")[0]?.status, "cancelled");
  assertEquals(contents(messages()).at(-1), ["tool", "finished"]);
  assertEquals(provider.call_count, 1);
});

Deno.test("an immediate cancel adds one result for every call, and ends the turn", async () => {
  const signals: boolean[] = [];
  const { run, session, clock, data, messages, turn } = kit({
    loop: { max_parallel_tools: 2 },
    providers: [[calls(["fast"], ["slow"], ["waiting"]), "never"]],
    tools: [
      tool("fast", () => "real"),
      tool("slow", async (_input, call) => {
        await new Promise<void>((resolve) => call!.signal.addEventListener("abort", () => resolve()));
        signals.push(call!.signal.aborted);
      }),
      tool("waiting", async () => await clock.after(1_000_000)),
    ],
  });
  const done = run();
  await until(() => data("tool:pre").length === 3);
  await session.cancel("immediate");
  assertEquals((await done).status, "cancelled");
  assertEquals(signals, [true]);
  const cancelled = (name: string) =>
    `{"error":"Tool execution was cancelled by user","cancelled":true,"tool":"${name}"}`;
  assertEquals(contents(messages()).slice(2), [
    ["tool", "real"],
    ["tool", cancelled("slow")],
    ["tool", cancelled("waiting")],
    ["assistant", "The previous operation was cancelled. The results of completed tools are preserved."],
  ]);
  assertToolPairs(messages());
  assertEquals(data("cancel:completed"), [{ was_immediate: true }]);
  assertEquals(turn().filter((event) => event === "tool:error"), []);
});

Deno.test("an immediate cancel ends a model call at once", async () => {
  const { run, session, clock, data, turn } = kit({ providers: [[{ text: "late", delay_ms: 1000 }]] });
  const done = run();
  await until(() => clock.pending > 1);
  await session.cancel("immediate");
  assertEquals((await done).status, "cancelled");
  assertEquals(turn().slice(-4), [
    "cancel:requested",
    "cancel:completed",
    "execution:end",
    "orchestrator:complete",
  ]);
  assertEquals(data("provider:error"), []);
  assertEquals(clock.pending, 0);
});

Deno.test("a cancel during an approval denies the call and ends the turn", async () => {
  for (const mode of ["graceful", "immediate"] as const) {
    const { run, session, data, messages, clock } = kit({
      providers: [[calls(["t"]), "never"]],
      tools: [tool("t")],
      hooks: [hook("tool:pre", () => ({ action: "ask_user" }))],
      answers: ["never"],
    });
    const done = run();
    await until(() => data("approval:required").length === 1);
    await session.cancel(mode);
    assertEquals((await done).status, "cancelled");
    assertEquals(data("approval:denied").map(({ decision, reason }) => [decision, reason]), [[
      "deny",
      "cancelled",
    ]]);
    assertToolPairs(messages());
    assertEquals(clock.pending, 0);
  }
});

Deno.test("a cancellation token escalates and never goes back", () => {
  const token = new CancellationToken();
  assertEquals(
    [token.requestGraceful(), token.requestGraceful(), token.requestImmediate(), token.requestGraceful()],
    [true, false, true, false],
  );
  assertEquals([token.state, token.is_cancelled, token.signal.aborted], ["immediate", true, true]);
});

Deno.test("a cancelled turn does not cancel the next one", async () => {
  const { run, session, clock, data } = kit({
    providers: [[{ text: "late", delay_ms: 1000 }, "second", { text: "late", delay_ms: 1000 }]],
  });
  for (let round = 0; round < 2; round++) {
    const done = run();
    await until(() => clock.pending > 1);
    await session.cancel("immediate");
    assertEquals((await done).status, "cancelled");
    if (round === 0) assertEquals((await run()).output_text, "second");
  }
  assertEquals(data("cancel:requested").length, 2);
});

Deno.test("cancel events are emitted once, whatever the loop emits", async () => {
  const { session, run, names } = kit({
    orchestrator: async (coordinator) =>
      await coordinator.mount("orchestrator", {
        async execute(_p: unknown, _c: unknown, _v: unknown, _t: unknown, hooks: Coordinator["hooks"]) {
          coordinator.requestCancel();
          for (let round = 0; round < 2; round++) {
            await hooks.emit("cancel:requested", { orchestrator: "old", state: "graceful" });
            await hooks.emit("cancel:completed", { was_immediate: false });
            await hooks.emit("execution:end", { response: "", status: "cancelled" });
            await hooks.emit("orchestrator:complete", {
              orchestrator: "old",
              turn_count: 0,
              status: "cancelled",
            });
          }
          return "";
        },
      }),
  });
  assertEquals((await run()).status, "cancelled");
  await session.cleanup("cancelled");
  assertEquals(names().slice(names().indexOf("session:start")), [
    ...["session:start", "execution:start", "prompt:submit", "cancel:requested", "cancel:completed"],
    ...["execution:end", "orchestrator:complete", "session:end", "session:cleanup"],
  ]);
});

Deno.test("a turn that was cancelled before it began starts with execution:start, whatever the loop emits", async () => {
  const { session, run, names } = kit({
    orchestrator: async (coordinator) =>
      await coordinator.mount("orchestrator", {
        async execute(_p: unknown, _c: unknown, _v: unknown, _t: unknown, hooks: Coordinator["hooks"]) {
          await hooks.emit("cancel:completed", { was_immediate: false });
          return "";
        },
      }),
  });
  await session.initialize();
  await session.cancel("graceful");
  await run();
  assertEquals(names().slice(names().indexOf("cancel:requested")), [
    ...["cancel:requested", "session:start", "execution:start", "prompt:submit", "cancel:completed"],
    ...["execution:end", "orchestrator:complete"],
  ]);
});

Deno.test("a cancel callback that throws does not stop the others", async () => {
  const { module, coordinator } = spy();
  const { session, warnings } = kit({ tools: [module] });
  await session.initialize();
  const ran: number[] = [];
  coordinator().cancellation.onCancel(() => void ran.push(1));
  coordinator().cancellation.onCancel(() => {
    throw new Error("not me");
  });
  coordinator().cancellation.onCancel(() => void ran.push(3));
  await session.cancel("graceful");
  assertEquals(ran, [1, 3]);
  assertEquals(warnings, [{ code: "cancel_callback_failed", message: "not me" }]);
});

Deno.test("a graceful cancel in the last model call keeps its answer, and the turn ends cancelled", async () => {
  const ignoring = async (coordinator: Coordinator) =>
    await coordinator.mount("orchestrator", {
      async execute(
        _p: unknown,
        _c: unknown,
        { mock }: Coordinator["providers"],
        _t: unknown,
        hooks: HookRegistry,
      ) {
        const { content } = await mock!.complete({ messages: [{ role: "user", content: "go" }] });
        await hooks.emit("orchestrator:complete", { orchestrator: "x", turn_count: 1, status: "success" });
        return textOf(content);
      },
    });
  for (const orchestrator of [undefined, ignoring]) {
    const { run, session, clock, turn, data } = kit({
      providers: [[{ text: "whole", delay_ms: 1000 }]],
      ...(orchestrator ? { orchestrator } : {}),
    });
    const done = run();
    await until(() => clock.pending > 1);
    await session.cancel("graceful");
    await clock.advance(1000);
    const { status, stop_reason, output_text, error } = await done;
    assertEquals([status, stop_reason, output_text, error], ["cancelled", "cancelled", "whole", null]);
    assertEquals(data("cancel:completed"), [{ was_immediate: false }]);
    assertEquals(data("orchestrator:complete")[0]?.status, "cancelled");
    assert(turn().indexOf("cancel:completed") < turn().indexOf("orchestrator:complete"));
  }
});
