/** Injections of hooks: limits, budgets, sanitising and storage. */
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { MockContextManager } from "../../src/testing/mocks.ts";
import type { ContextManager, Tool, ToolCallContext } from "../../src/sdk/types.ts";
import { assert, assertEquals } from "../assert.ts";
import { calls, contents, hook, kit, type KitOptions, type TestModule, tool } from "../support/sessions.ts";

Deno.test("an injection longer than the limit in code points is refused", async () => {
  for (const text of ["x".repeat(11), "🙂".repeat(11)]) {
    const { run, data, messages } = kit({
      session: { injection_size_limit: 10 },
      hooks: [hook("prompt:submit", () => ({ action: "inject_context", context_injection: text }))],
    });
    const outcome = await run();
    assertEquals([outcome.status, outcome.error?.message], [
      "denied",
      "Context injection exceeds 10 characters",
    ]);
    assertEquals(data("policy:violation"), [
      { kind: "injection_size", hook_name: "test-hook", limit: 10, actual: 11 },
    ]);
    assertEquals(messages(), []);
  }
  const fits = kit({
    session: { injection_size_limit: 10 },
    hooks: [hook("prompt:submit", () => ({ action: "inject_context", context_injection: "🙂".repeat(10) }))],
  });
  assertEquals((await fits.run()).status, "completed");
  assertEquals(fits.data("policy:violation"), []);
});

Deno.test("an injection over the budget is a warning, dropped or refused, as the plan states", async () => {
  const inject = hook(
    "prompt:submit",
    () => ({ action: "inject_context", context_injection: "x".repeat(40) }),
  );
  const modes = [["warn", 1, "completed"], ["drop", 0, "completed"], ["error", 0, "denied"]] as const;
  for (const [injection_budget_mode, stored, status] of modes) {
    const { run, data, messages } = kit({
      session: { injection_budget_per_turn: 2, injection_budget_mode },
      hooks: [inject],
    });
    assertEquals((await run()).status, status);
    assertEquals(data("policy:violation"), [
      { kind: "injection_budget", hook_name: "test-hook", limit: 2, actual: 10 },
    ]);
    assertEquals(messages().filter((message) => message.metadata?.source === "hook").length, stored);
  }
});

Deno.test("the injection budget is for one turn", async () => {
  const { run, data } = kit({
    session: { injection_budget_per_turn: 10 },
    hooks: [hook("prompt:submit", () => ({ action: "inject_context", context_injection: "x".repeat(40) }))],
  });
  await run();
  await run();
  assertEquals(data("policy:violation"), []);
});

Deno.test("without limits in the plan, injections over the documented limits only emit a warning, and with null none", async () => {
  const inject = hook(
    "prompt:submit",
    () => ({ action: "inject_context", context_injection: "x".repeat(50_000) }),
  );
  const violations = async (session: NonNullable<KitOptions["session"]>) => {
    const { run, data } = kit({ session, hooks: [inject] });
    assertEquals((await run()).status, "completed");
    return data("policy:violation").map((violation) => [violation.kind, violation.limit]);
  };
  assertEquals(await violations({}), [["injection_size", 10_240], ["injection_budget", 10_000]]);
  assertEquals(await violations({ injection_size_limit: null, injection_budget_per_turn: null }), []);
});

Deno.test("an injection is sanitised before it is measured, stored or emitted", async () => {
  for (const ephemeral of [false, true]) {
    const provider = new MockProvider();
    const { run } = kit({
      session: { injection_size_limit: 3 },
      providers: [provider],
      hooks: [
        hook(
          "prompt:submit",
          () => ({ action: "inject_context", context_injection: "a\u0000b\u009fc", ephemeral }),
        ),
      ],
    });
    assertEquals((await run()).status, "completed");
    const contents = provider.requests[0]!.messages.map((message) => message.content);
    assert(contents.includes("abc"), JSON.stringify(contents));
  }
});

Deno.test("a stored injection has its source in the metadata", async () => {
  const { run, messages } = kit({
    hooks: [hook("prompt:submit", () => ({
      action: "inject_context",
      context_injection: "be kind",
      context_injection_role: "user",
    }))],
  });
  await run();
  assertEquals(messages()[0], {
    role: "user",
    content: "be kind",
    metadata: {
      source: "hook",
      hook_name: "test-hook",
      event: "prompt:submit",
      timestamp: "2026-01-01T00:00:00.000Z",
    },
  });
});

Deno.test("an ephemeral injection counts for the budget", async () => {
  const { run, data, messages } = kit({
    session: { injection_budget_per_turn: 2 },
    hooks: [
      hook(
        "prompt:submit",
        () => ({ action: "inject_context", context_injection: "x".repeat(40), ephemeral: true }),
      ),
    ],
  });
  await run();
  assertEquals(data("policy:violation").length, 1);
  assertEquals(messages().length, 2);
});

/** A tool that mounts another context manager while its call runs, and then does `end`. */
const replacesContext = (end: () => string): TestModule => async (coordinator) => {
  await coordinator.mount(
    "tools",
    tool("replace", async () => {
      await coordinator.mount("context", new MockContextManager());
      return end();
    }),
  );
};
const injects = (event: string) =>
  hook(event, () => ({ action: "inject_context", context_injection: `from ${event}` }), { name: event });

Deno.test("injections during a call that mounts another context manager follow its result, and the model sees them", async () => {
  const provider = new MockProvider({ responses: [calls(["replace"]), "done"] });
  const { run, messages } = kit({
    providers: [provider],
    tools: [replacesContext(() => "ok")],
    hooks: [injects("tool:pre"), injects("tool:post")],
  });
  assertEquals((await run()).status, "completed");
  const history = [
    ["user", "hello"],
    ["assistant", "tool_call"],
    ["tool", "ok"],
    ["system", "from tool:pre"],
    ["system", "from tool:post"],
  ];
  assertEquals(contents(messages()), [...history, ["assistant", "done"]]);
  assertEquals(contents(provider.requests[1]!.messages), history);
});

Deno.test("a loop that fails after another context manager was mounted leaves no open call and no lost injection", async () => {
  const { run, messages } = kit({
    tools: [replacesContext(() => "ok")],
    hooks: [injects("tool:pre")],
    orchestrator: {
      async mount(coordinator) {
        await coordinator.mount("orchestrator", {
          async execute(
            _prompt: string,
            context: ContextManager,
            _providers: unknown,
            tools: Record<string, Tool>,
          ) {
            await context.addMessage({ role: "user", content: "hello" });
            const tool_calls = [{ id: "c1", name: "replace", tool: "replace", arguments: {} }];
            await context.addMessage({ role: "assistant", content: "", tool_calls });
            const emission = await coordinator.hooks.emit("tool:pre", {
              tool_name: "replace",
              tool_call_id: "c1",
              tool_input: {},
            });
            await coordinator.processHookResult(emission, "tool:pre");
            await tools.replace!.execute({}, { id: "c1" } as ToolCallContext);
            throw new Error("broken");
          },
        });
      },
    },
  });
  await run();
  assertEquals(contents(messages()), [
    ["user", "hello"],
    ["assistant", ""],
    ["tool", "ok"],
    ["system", "from tool:pre"],
  ]);
});
