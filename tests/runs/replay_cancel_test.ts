/** Replay of runs that are cancelled where the log has no entry of it, or has it later. */
import { assert, assertEquals } from "../assert.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { Coordinator, Orchestrator } from "../../src/sdk/types.ts";
import { CALLER, replayed } from "../support/runs.ts";
import { type TestModule, tool } from "../support/sessions.ts";
import { killAndResume } from "./killed.ts";
import { mock, play, type Scenario } from "./play.ts";
import { slow } from "./scenarios.ts";

const calls = (...names: string[]) => ({ tool_calls: names.map((name) => ({ name, arguments: {} })) });

const TWICE: Readonly<Record<string, Scenario>> = {
  "cancelled twice during a model call": {
    plan: { providers: [mock({ delay_ms: 90_000, text: "never" })] },
    react: async ({ event }, { runs, run_id }) => {
      if (event !== "provider:request") return;
      await runs.cancel(CALLER, run_id, "graceful");
      await runs.cancel(CALLER, run_id, "immediate");
    },
  },
  "cancelled twice during tools": {
    plan: { providers: [mock(calls("slow", "slow"), "never")], tools: [slow("slow", 50_000)] },
    react: async ({ event }, { runs, run_id }) => {
      if (event !== "tool:pre") return;
      await runs.cancel(CALLER, run_id, "graceful");
      await runs.cancel(CALLER, run_id, "immediate");
    },
  },
  "cancelled twice during tools, one of which ends between": {
    plan: {
      providers: [mock(calls("slow", "quick"), "never")],
      tools: [slow("slow", 50_000), slow("quick", 50)],
    },
    react: async ({ event }, { runs, run_id }) => {
      if (event === "tool:pre") await runs.cancel(CALLER, run_id, "graceful");
      if (event === "tool:post") await runs.cancel(CALLER, run_id, "immediate");
    },
  },
  "steered and cancelled during its last answer": {
    plan: { providers: [mock({ delay_ms: 500, text: "the last" }, "never")] },
    react: async ({ event }, { runs, run_id }) => {
      if (event !== "provider:request") return;
      await runs.steer(CALLER, run_id, "too late");
      await runs.cancel(CALLER, run_id, "graceful");
    },
  },
};

for (const [name, scenario] of Object.entries(TWICE)) {
  Deno.test(`replay() is equal: a run that is ${name}`, async () => {
    const { service, run } = await play(scenario);
    assertEquals(await replayed(service, run.id), { equal: true });
  });

  Deno.test(`replay() is equal wherever its process is killed: a run that is ${name}`, async () => {
    const { entries } = await play(scenario);
    for (
      let last = entries.findIndex(({ event }) => event === "session:start");
      last < entries.length;
      last++
    ) {
      const { next, run } = await killAndResume(scenario, last);
      assertEquals([last, await replayed(next, run.id)], [last, { equal: true }]);
    }
  });
}

/** A hook whose handler of a cancellation takes 10 ms. */
function watches({ hooks, clock }: Coordinator): void {
  hooks.register("cancel:requested", async () => {
    await clock.after(10);
    return null;
  });
}

for (const mode of ["graceful", "immediate"] as const) {
  Deno.test(`cancel:requested precedes cancel:completed although its handlers are slow, and replay() is equal: ${mode}`, async () => {
    const { service, run, entries } = await play({
      plan: {
        providers: [mock(calls("slow", "quick"), "never")],
        tools: [mode === "graceful" ? tool("slow") : slow("slow", 50_000), tool("quick")],
        hooks: [watches],
      },
      react: ({ event }, { runs, run_id }) =>
        event === "tool:pre" ? runs.cancel(CALLER, run_id, mode) : undefined,
    });
    const at = (event: string) => entries.findIndex((entry) => entry.event === event);
    assert(0 < at("cancel:requested") && at("cancel:requested") < at("cancel:completed"));
    assertEquals(await replayed(service, run.id), { equal: true });
  });
}

Deno.test("replay() is equal: a hook cancels the turn at the first of two parallel calls", async () => {
  const { service, run, entries } = await play({
    plan: {
      providers: [mock(calls("first", "second"), "never")],
      tools: [tool("first"), tool("second")],
      hooks: [(coordinator) => {
        coordinator.hooks.register("tool:pre", () => coordinator.requestCancel(true));
      }],
    },
  });
  assertEquals([run.status, entries.filter(({ event }) => event === "tool:pre").length], ["cancelled", 1]);
  assertEquals(await replayed(service, run.id), { equal: true });
});

Deno.test("a run whose loop asks two models at once and aborts the slower one has an equal replay", async () => {
  const ASKED = { messages: [{ role: "user" as const, content: "hi" }] };
  const slower = new MockProvider({ name: "slower" });
  slower.complete = (_request, options) => {
    options?.onDelta?.({ block_index: 0, block_type: "text", delta: "word ".repeat(200) });
    return new Promise(() => {});
  };
  for (const reports of [false, true]) {
    const race: Orchestrator = {
      async execute(_prompt, _context, providers, _tools, hooks, options) {
        const controller = new AbortController();
        const { signal } = controller;
        const lost = providers.slower!.complete(ASKED, { signal, onDelta() {} }).catch(() => {});
        await options!.coordinator.clock.after(500);
        const { usage, content } = await providers.faster!.complete(ASKED);
        if (reports) {
          await hooks.emit("provider:response", { provider: "faster", usage, response: { content } });
        }
        controller.abort();
        await lost;
        return "done";
      },
    };
    const orchestrator: TestModule = {
      id: "race",
      module: { id: "race", type: "orchestrator" },
      mount: (coordinator) => coordinator.mount("orchestrator", race),
    };
    const faster = new MockProvider({ name: "faster", responses: ["quick"] });
    const { service: made, run, entries } = await play({
      plan: { providers: [slower, faster], orchestrator },
    });
    const failed = entries.filter(({ event }) => event === "provider:error");
    assertEquals([run.status, failed.map(({ data }) => data.provider)], ["completed", ["slower"]]);
    assertEquals([reports, await replayed(made, run.id)], [reports, { equal: true }]);
  }
});
