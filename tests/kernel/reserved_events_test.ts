/** Which module may emit which event, and how often a turn has it. */
import { CANONICAL_EVENTS, eventsWith, GATES, RESERVED_EVENTS } from "../../src/sdk/event_table.ts";
import type { Coordinator, HookRegistry } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { calls, kit, listContext, type TestModule, tool } from "../support/sessions.ts";

/** A loop that only does this, with its hook registry. */
function loopOf(act: (hooks: HookRegistry) => Promise<unknown>): TestModule {
  return async (coordinator: Coordinator) =>
    await coordinator.mount("orchestrator", {
      async execute(_p: unknown, _c: unknown, _v: unknown, _t: unknown, hooks: HookRegistry) {
        await act(hooks);
        return "done";
      },
    });
}

Deno.test("providers, tools and hooks cannot emit events of the runtime, the loop and the context", async () => {
  const plan = { providers: [[calls(["t"]), "done"]], tools: [tool("t")] };
  const honest = kit({ ...plan, hooks: [({ hooks }) => void hooks.register("tool:pre", () => null)] });
  await honest.run();
  const forging = kit({
    ...plan,
    hooks: [({ hooks }) => {
      hooks.register("tool:pre", async () => {
        for (const event of RESERVED_EVENTS) {
          assertEquals((await hooks.emit(event, {})).action, GATES.has(event) ? "deny" : "continue");
          assertEquals(await hooks.emitAndCollect(event, {}), []);
        }
        return null;
      });
    }],
  });
  await forging.run();
  assertEquals(forging.names(), honest.names());
  const refused = forging.warnings.filter(({ code }) => code === "event_reserved");
  assertEquals(refused.length, RESERVED_EVENTS.size);
  assertEquals(
    ["session:end", "execution:end", "context:compaction"].map((event) =>
      refused.find(({ message }) => message.includes(`"${event}"`))?.message.split(": ")[1]
    ),
    [
      "only the runtime may emit this event",
      "only the orchestrator may emit this event",
      "only the orchestrator and the context manager may emit this event",
    ],
  );
});

Deno.test("a loop and a context cannot emit the session's events", async () => {
  const events = [...CANONICAL_EVENTS].filter((event) => event.startsWith("session:"));
  const emitAll = async (hooks: HookRegistry) => {
    for (const event of events) await hooks.emit(event, {});
  };
  const { session, run, names, warnings } = kit({
    orchestrator: loopOf(emitAll),
    async context(coordinator) {
      await listContext(coordinator);
      coordinator.hooks.register("execution:start", async () => await emitAll(coordinator.hooks) ?? null);
    },
  });
  await run();
  await session.cleanup("completed");
  assertEquals(names().filter((event) => event.startsWith("session:")), [
    ...["session:start", "session:end", "session:cleanup"],
  ]);
  assertEquals(warnings.filter(({ code }) => code === "event_reserved").length, 2 * events.length);
});

Deno.test("a hook that mounts a context manager may emit its events, and none of the loop", async () => {
  const { run, names, warnings } = kit({
    hooks: [async (coordinator) => {
      await listContext(coordinator);
      coordinator.hooks.register("execution:start", async () => {
        await coordinator.hooks.emit("context:pre_compact", {});
        await coordinator.hooks.emit("tool:post", {});
        return null;
      });
    }],
  });
  await run();
  assertEquals([names().includes("context:pre_compact"), names().includes("tool:post")], [true, false]);
  assertEquals(warnings.map(({ code }) => code), ["module_overwritten", "event_reserved"]);
});

const LOOP = { execute: () => Promise.resolve("mine") };

Deno.test("a hook that mounts a loop and a context manager emits the loop's events, in either order", async () => {
  const mountLoop = (coordinator: Coordinator) => coordinator.mount("orchestrator", LOOP);
  for (const mounts of [[mountLoop, listContext], [listContext, mountLoop]]) {
    const { run, names, warnings } = kit({
      hooks: [async (coordinator) => {
        for (const mount of mounts) await mount(coordinator);
        coordinator.hooks.register("execution:start", async () => {
          for (const event of ["tool:post", "context:summary"]) await coordinator.hooks.emit(event, {});
          return null;
        });
      }],
    });
    assertEquals((await run()).output_text, "mine");
    assertEquals([names().includes("tool:post"), names().includes("context:summary")], [true, true]);
    assertEquals(warnings.map(({ code }) => code), ["module_overwritten", "module_overwritten"]);
  }
});

Deno.test("a hook that mounts a loop or a context manager before the turn begins emits its events", async () => {
  const { run, names, warnings } = kit({
    hooks: [(coordinator) => {
      coordinator.hooks.register("session:start", async () => {
        await listContext(coordinator);
        return null;
      });
      coordinator.hooks.register("execution:start", async () => {
        for (const event of ["tool:post", "context:summary"]) await coordinator.hooks.emit(event, {});
        return null;
      });
    }],
  });
  await run();
  assertEquals([names().includes("tool:post"), names().includes("context:summary")], [false, true]);
  assertEquals(warnings.map(({ code }) => code), ["module_overwritten", "event_reserved"]);
});

Deno.test("a context manager may emit its events, and none of the loop", async () => {
  const { run, names, warnings } = kit({
    async context(coordinator) {
      await listContext(coordinator);
      coordinator.hooks.register("execution:start", async () => {
        for (const event of ["context:summary", "tool:post"]) await coordinator.hooks.emit(event, {});
        return null;
      });
    },
  });
  await run();
  assertEquals([names().includes("context:summary"), names().includes("tool:post")], [true, false]);
  assertEquals(warnings.map(({ code }) => code), ["event_reserved"]);
});

Deno.test("a module that mounts an orchestrator or a context manager in a turn may not emit its events", async () => {
  const { run, names, warnings } = kit({
    tools: [async (coordinator) => {
      await coordinator.mount("tools", tool("t"));
      coordinator.hooks.register("prompt:submit", async () => {
        await listContext(coordinator);
        await coordinator.mount("orchestrator", { execute: () => Promise.resolve("mine") });
        for (const event of ["tool:post", "context:compaction"]) await coordinator.hooks.emit(event, {});
        return null;
      });
    }],
  });
  assertEquals((await run()).output_text, "done");
  assertEquals([names().includes("tool:post"), names().includes("context:compaction")], [false, false]);
  assertEquals(warnings.filter(({ code }) => code === "event_reserved").length, 2);
});

Deno.test("emitAndCollect() takes the way of emit(): an event that a turn has once is in the log once", async () => {
  const { run, turn, warnings } = kit({
    orchestrator: loopOf(async (hooks) => {
      for (const event of ["execution:end", "orchestrator:complete", "execution:end"]) {
        await hooks.emitAndCollect(event, { status: "completed" });
      }
    }),
  });
  await run();
  const [start, end] = [["execution:start", "prompt:submit"], ["execution:end", "orchestrator:complete"]];
  assertEquals(turn().filter((event) => event !== "prompt:complete"), [...start!, ...end!]);
  assertEquals(warnings, []);
});

Deno.test("emitAndCollect() refuses gates, because it does not decide them", async () => {
  const { run, turn, warnings } = kit({
    orchestrator: loopOf(async (hooks) => {
      for (const event of GATES) assertEquals(await hooks.emitAndCollect(event, {}), []);
    }),
    hooks: [({ hooks }) => {
      for (const event of GATES) hooks.register(event, () => ({ action: "continue", data: { asked: true } }));
    }],
  });
  await run();
  const [start, end] = [["execution:start", "prompt:submit"], ["execution:end", "orchestrator:complete"]];
  assertEquals(turn().filter((event) => event !== "prompt:complete"), [...start!, ...end!]);
  assertEquals(warnings.map(({ code }) => code), [...GATES].map(() => "event_reserved"));
});

Deno.test("a turn has the events with the trait once at most once, and one gate for each request", async () => {
  const repeatable = [...CANONICAL_EVENTS].filter((event) => !eventsWith("runtime").has(event));
  for (const event of repeatable) {
    const { run, data } = kit({
      orchestrator: loopOf(async (hooks) => {
        for (let round = 0; round < 3; round++) await hooks.emit(event, { status: "success" });
      }),
    });
    await run();
    const once = event === "cancel:requested" ? 0 : 1; // a loop that states that it is cancelled does not cancel
    const is_single = eventsWith("once").has(event) || event === "provider:request"; // no model is called
    assertEquals([event, data(event).length], [event, is_single ? once : 3]);
  }
});
