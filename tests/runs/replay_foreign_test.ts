/** Replay of runs whose context manager or orchestrator a hook mounted: the plan's own run in the replay. */
import * as contextSimple from "../../modules/context-simple/mod.ts";
import { mountLoop } from "../../src/sdk/loop/mount_loop.ts";
import { isObject } from "../../src/sdk/json.ts";
import type { Coordinator } from "../../src/sdk/types.ts";
import type { Change } from "../../src/store/store.ts";
import { MockContextManager } from "../../src/testing/mocks.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { someOf } from "../support/cases.ts";
import { immediate, replayed, service } from "../support/runs.ts";
import { type TestModule, tool } from "../support/sessions.ts";
import { killAndResume } from "./killed.ts";
import { builtin, mock, play, type Scenario } from "./play.ts";

const SCENARIO: Scenario = {
  plan: {
    context: builtin(contextSimple),
    providers: [mock({ tool_calls: [{ name: "long", arguments: {} }] }, "done")],
    tools: [tool("long", () => Promise.resolve("word ".repeat(900)))],
  },
};

Deno.test("replay() is equal: a hook mounts the context manager, which compacts and reports its usage", async () => {
  const { service, run, entries } = await play({
    plan: {
      ...SCENARIO.plan,
      hooks: [async (coordinator) => {
        await contextSimple.mount(coordinator, {});
        coordinator.hooks.register("provider:request", async () => {
          await coordinator.hooks.emit("context:compaction", { strategy_level: 2 });
          return null;
        });
        coordinator.registerCapability("context.status", () => ({ tokens: 7, budget: 8, level: 9 }));
      }],
    },
  });
  assert(entries.some(({ event }) => event === "context:compaction"));
  assertEquals(run.context, { tokens: 7, budget: 8, level: 9, compactions: 2 });
  assertEquals(await replayed(service, run.id), { equal: true });
});

Deno.test("replay() is equal: the plan's context manager would compact in place of the one of a hook", async () => {
  const small = { context_window: 4_000, max_output_tokens: 500 };
  const calls = Array.from({ length: 8 }, () => ({ tool_calls: [{ name: "long", arguments: {} }] }));
  const provider = mock(...calls, "done");
  assert("config" in provider);
  const plan = { ...SCENARIO.plan, providers: [{ ...provider, config: { ...provider.config, ...small } }] };
  const compacted = await play({ plan });
  assert(compacted.entries.some(({ event }) => event === "context:compaction"));
  const { service, run, entries } = await play({
    plan: {
      ...plan,
      hooks: [async (coordinator) => await coordinator.mount("context", new MockContextManager())],
    },
  });
  assert(!entries.some(({ event }) => event === "context:compaction"));
  assertEquals(await replayed(service, run.id), { equal: true });
});

Deno.test("a run whose orchestrator a hook mounted is not_replayable", async () => {
  const { service, run } = await play({
    plan: {
      ...SCENARIO.plan,
      hooks: [
        (coordinator) =>
          mountLoop(coordinator, {}, { orchestrator: "mine", steering: false, max_parallel_tools: 1 }),
      ],
    },
  });
  assertEquals(run.status, "completed");
  const error = await assertRejects(() => replayed(service, run.id), Error, "mounted its orchestrator");
  assertEquals((error as { code?: string }).code, "not_replayable");
});

/** A hook that mounts something when the session starts or continues. */
function atStart(mount: (coordinator: Coordinator) => unknown): TestModule {
  return (coordinator) => {
    for (const event of ["session:start", "session:resume"]) {
      coordinator.hooks.register(event, async () => {
        await mount(coordinator);
        return null;
      });
    }
  };
}

Deno.test("replay() is equal: a hook mounts the context manager when the session starts or continues", async () => {
  const { service, run, entries } = await play({
    plan: {
      ...SCENARIO.plan,
      providers: [mock({ tool_calls: [{ name: "long", arguments: {} }] }, "done", "again")],
      hooks: [atStart(async (coordinator) => {
        await contextSimple.mount(coordinator, {});
        coordinator.hooks.register("execution:start", async () => {
          await coordinator.hooks.emit("context:compaction", { strategy_level: 2 });
          return null;
        });
      })],
    },
    before: { prompt: "first" },
  });
  assert(entries.some(({ event }) => event === "context:compaction"));
  assertEquals(run.output_text, "again");
  assert(run.context.tokens > 800); // the history of the first run
  assertEquals(await replayed(service, run.id), { equal: true });
});

Deno.test("a run whose orchestrator a hook mounted when the session started is not_replayable", async () => {
  const { service, run } = await play({
    plan: {
      ...SCENARIO.plan,
      hooks: [
        atStart((coordinator) =>
          mountLoop(coordinator, {}, { orchestrator: "mine", steering: false, max_parallel_tools: 1 })
        ),
      ],
    },
  });
  assertEquals(run.status, "completed");
  await assertRejects(() => replayed(service, run.id), Error, "mounted its orchestrator");
});

Deno.test("replay() is equal: a hook mounts an orchestrator and a context manager when the session has ended", async () => {
  const { service, run } = await play({
    plan: {
      ...SCENARIO.plan,
      hooks: [(coordinator) => {
        coordinator.hooks.register("session:end", async () => {
          await mountLoop(coordinator, {}, { orchestrator: "mine", steering: false, max_parallel_tools: 1 });
          await contextSimple.mount(coordinator, {});
          return null;
        });
      }],
    },
  });
  assertEquals(await replayed(service, run.id), { equal: true });
});

Deno.test("replay() is equal: a hook without handlers mounts the provider", async () => {
  const { service, run } = await play({
    plan: {
      context: SCENARIO.plan.context!,
      providers: [() => ({ skipped: "none" })],
      hooks: [
        async (coordinator) =>
          await coordinator.mount("providers", new MockProvider({ name: "of-a-hook", responses: ["done"] })),
      ],
    },
  });
  assertEquals(run.output_text, "done");
  assertEquals(await replayed(service, run.id), { equal: true });
});

Deno.test("replay() knows what a hook mounted when the session started, wherever the process was killed since", async () => {
  /** A hook that mounts only at the start: after a crash, the plan's own modules serve. */
  const once = (mount: (coordinator: Coordinator) => unknown): TestModule => (coordinator) => {
    coordinator.hooks.register("session:start", async () => {
      await mount(coordinator);
      return null;
    });
  };
  const mountContext = (coordinator: Coordinator) => coordinator.mount("context", new MockContextManager());
  const mountOrchestrator = (coordinator: Coordinator) =>
    mountLoop(coordinator, {}, { orchestrator: "mine", steering: false, max_parallel_tools: 1 });
  for (const mount of [mountContext, mountOrchestrator]) {
    const scenario = { plan: { ...SCENARIO.plan, hooks: [once(mount)] } };
    const { entries } = await play(scenario);
    const stored = entries.find(({ event }) => event === "context:message")!.seq; // with all before it
    for (const last of someOf(entries.slice(stored - 1, -1).map(({ seq }) => seq), 8)) {
      const { next, run } = await killAndResume(scenario, last);
      if (mount === mountContext) assertEquals(await replayed(next, run.id), { equal: true }, String(last));
      else await assertRejects(() => replayed(next, run.id), Error, "mounted its orchestrator");
    }
  }
});

Deno.test("what a hook mounted is stored with the next entries when the store refuses the first ones", async () => {
  const describesForeign = (change: Change) =>
    "put" in change && isObject(change.put.value.surface) && change.put.value.surface.foreign !== undefined;
  const described: boolean[] = [];
  const mountContext = async (coordinator: Coordinator) => {
    await coordinator.mount("context", new MockContextManager());
    await coordinator.hooks.emit("context:mounted", {});
    await immediate(); // the log stores the entry, for which nothing waits
  };
  const { post } = service({
    plans: { plan: { ...SCENARIO.plan, hooks: [atStart(mountContext)] } },
    store: (memory) => {
      const commit = memory.commit.bind(memory);
      memory.commit = (changes, fence) => {
        const describes = changes.some(describesForeign);
        if (describes || described.length > 0) described.push(describes);
        if (described.length === 1) throw new Error("disk full");
        commit(changes, fence);
      };
      return memory;
    },
  });
  assertEquals((await (await post("plan")).settled("end")).status, "completed");
  assertEquals(described.slice(0, 3), [true, true, false]);
});
