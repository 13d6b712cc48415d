/** Replay and recovery of runs whose hooks ask, change fields and make calls of their own. */
import * as providerMock from "../../modules/provider-mock/mod.ts";
import type { Entry } from "../../src/kernel/host.ts";
import { toPlain } from "../../src/sdk/json.ts";
import type {
  ContextManager,
  Coordinator,
  HookResult,
  JsonObject,
  Provider,
  ToolCallContext,
} from "../../src/sdk/types.ts";
import { noopEmission } from "../../src/sdk/hook_chain.ts";
import { assert, assertEquals } from "../assert.ts";
import { replayed, service, type TestPlan } from "../support/runs.ts";
import { hook, type TestModule, tool } from "../support/sessions.ts";
import { killAndResume } from "./killed.ts";
import { builtin, mock, play, type Scenario } from "./play.ts";

const ASK: HookResult = { action: "ask_user", approval_prompt: "Sure?" };

/** A run with a call of two tools, one of which fails, and this hook. */
function withHook(module: TestModule): Scenario {
  return {
    plan: {
      providers: [
        mock(
          { tool_calls: [{ name: "works", arguments: { n: 1 } }, { name: "fails", arguments: {} }] },
          "done",
        ),
        { ...builtin(providerMock, { responses: ["an opinion"] }), instance_id: "judge" } as TestModule,
      ],
      tools: [tool("works"), tool("other"), tool("fails", () => Promise.reject(new RangeError("too far")))],
      hooks: [module],
      loop: { max_parallel_tools: 1 },
    },
    react: (entry, { decide }) => entry.event === "approval:required" ? decide(entry, "Allow") : undefined,
  };
}

/** Plays a scenario; ids of calls that modules make are no ids of the model's calls. */
function playOnce(scenario: Scenario) {
  const plans = { plan: scenario.plan };
  return play(scenario, service({ plans, ids: (prefix, count) => `${prefix}_own${count}` }));
}

const GATES = ["prompt:submit", "provider:request", "tool:pre"];

for (const event of [...GATES, "tool:post", "tool:error"]) {
  Deno.test(`replay() is equal: a question at ${event}`, async () => {
    const { service, run, entries } = await playOnce(withHook(hook(event, () => ASK)));
    assert(entries.some((entry) => entry.event === "approval:required"));
    assertEquals(await replayed(service, run.id), { equal: true });
  });
}

for (const gate of GATES) {
  Deno.test(`a question at ${gate} is asked once, also when its process is killed meanwhile`, async () => {
    const scenario = withHook(hook(gate, () => ASK));
    const asked = (entries: readonly Entry[]) =>
      entries.filter(({ event }) => event === "approval:required").map(({ data }) => data.action);
    const { entries } = await playOnce(scenario);
    const question = entries.findIndex(({ event }) => event === "approval:required");
    for (const last of [question + 1, question + 2, question + 3]) {
      const { next, run, entries: resumed } = await killAndResume(scenario, last);
      assertEquals([last, asked(resumed)], [last, asked(entries)]);
      assertEquals([last, await replayed(next, run.id)], [last, { equal: true }]);
    }
  });
}

const CHANGES: Readonly<Record<string, (data: JsonObject) => JsonObject>> = {
  "leaves fields out": ({ result, prompt, tool_input }) => ({ result, prompt, tool_input }),
  "changes facts": (data) => ({
    ...data,
    ...{ tool_call_id: "x", tool_name: "x", request_id: "x", provider: "x", inner: true, module_id: "x" },
    ...{
      usage: { input_tokens: 9_000, total_tokens: 9_000 },
      response: { content: [] },
      error: { msg: "x" },
    },
  }),
  "adds a field": (data) => ({ ...data, more: 1 }),
};

for (const [name, change] of Object.entries(CHANGES)) {
  Deno.test(`a hook that ${name} does not change the facts of an entry, and replay() is equal`, async () => {
    const events = ["prompt:submit", "provider:request", "provider:response", "tool:pre", "tool:post"];
    const whole = await playOnce(withHook(hook("tool:pre", () => null)));
    const { service, run, entries } = await playOnce(withHook(({ hooks }) => {
      for (const event of [...events, "tool:error", "content_block:end"]) {
        hooks.register(event, (_, data) => ({ action: "modify", data: change(data) }));
      }
    }));
    assertEquals([run.usage, run.tool_call_count], [whole.run.usage, whole.run.tool_call_count]);
    const facts = (all: typeof entries) =>
      all.map(({ event, data }) => [event, data.tool_call_id, data.provider, data.request_id, data.error]);
    assertEquals(facts(entries), facts(whole.entries));
    assertEquals(await replayed(service, run.id), { equal: true });
  });
}

const ACTS: Readonly<Record<string, (coordinator: Coordinator) => unknown>> = {
  "calls a tool": ({ tools }) => tools.other!.execute({ n: 1 }),
  "calls a model": ({ providers }) => providers.judge!.complete({ messages: [] }),
  "asks a person": (coordinator) =>
    coordinator.processHookResult(
      {
        ...noopEmission({}),
        action: "ask_user",
        approval: { prompt: "Well?", options: ["Allow"], timeout: 5, default: "deny", hook_name: "asks" },
      },
      "my:question",
    ),
};

for (const [name, act] of Object.entries(ACTS)) {
  for (
    const event of ["execution:start", "content_block:end", "provider:response", "tool:pre", "tool:post"]
  ) {
    Deno.test(`replay() is equal: a hook that ${name} at ${event}`, async () => {
      const { service, run, entries } = await playOnce(withHook((coordinator) => {
        let acted = false;
        coordinator.hooks.register(event, async () => {
          if (acted) return null;
          acted = true; // it may emit the event that it handles
          await act(coordinator);
          return null;
        });
      }));
      const own = entries.filter(({ data }) =>
        data.inner === true || data.action === "my:question" ||
        String(data.tool_call_id).startsWith("call_own")
      );
      assert(own.length > 0);
      assertEquals(await replayed(service, run.id), { equal: true });
    });
  }
}

for (const emits of [false, true]) {
  Deno.test(`replay() is equal: a loop runs a tool that no model requested, and ${emits ? "reports" : "does not report"} it`, async () => {
    const { service, run } = await playOnce({
      ...withHook(hook("tool:pre", () => ASK)),
      plan: {
        tools: [tool("works")],
        hooks: [hook("tool:pre", () => ASK)],
        async orchestrator(coordinator) {
          const { hooks, tools } = coordinator;
          await coordinator.mount("orchestrator", {
            async execute(_prompt: unknown, context: ContextManager, providers: Record<string, Provider>) {
              const call = { tool_name: "works", tool_call_id: "own_1", tool_input: { n: 1 } };
              if (emits) await coordinator.processHookResult(await hooks.emit("tool:pre", call), "tool:pre");
              const result = toPlain(
                await tools.works!.execute({ n: 1 }, { id: "own_1" } as ToolCallContext),
              );
              if (emits) await hooks.emit("tool:post", { ...call, result });
              await context.addMessage({ role: "user", content: JSON.stringify(result) });
              const { content } = await providers.mock!.complete({ messages: await context.getMessages() });
              await context.addMessage({ role: "assistant", content });
              return "done";
            },
          });
        },
      },
    });
    assertEquals([run.status, run.tool_call_count], ["completed", 1]);
    assertEquals(await replayed(service, run.id), { equal: true });
  });
}

Deno.test("replay() is equal: a hook delays the question about the first of two calls", async () => {
  const calls = [1, 2].map((n) => ({ name: "works", arguments: { n } }));
  const plan: TestPlan = {
    providers: [mock({ tool_calls: calls }, "done")],
    tools: [tool("works")],
    hooks: [({ hooks }) => {
      hooks.register("tool:pre", async (_, { tool_input }) => {
        if ((tool_input as { n: number }).n === 1) await hooks.emit("own:delay", {});
        return ASK;
      });
    }],
  };
  const { service, run, entries } = await playOnce({
    plan,
    react: (entry, { decide }) => entry.event === "approval:required" ? decide(entry, "Allow") : undefined,
  });
  const asked = entries.filter(({ event }) => event === "approval:required");
  assertEquals(asked.map(({ data }) => data.tool_input), [{ n: 2 }, { n: 1 }]);
  assertEquals(await replayed(service, run.id), { equal: true });
});
