/** The number of handlers of a module, and their timeouts. */
import { assert, assertEquals } from "../assert.ts";
import { busyTime } from "../support/busy_time.ts";
import { kit, tool } from "../support/sessions.ts";
import { registry } from "./registry.ts";

Deno.test("a module that disposes of its handlers may register any number of them, also while it is mounted", async () => {
  const { session, data } = kit({
    kernel: { max_hooks: 4 },
    tools: [async (coordinator) => {
      for (let count = 0; count < 100; count++) coordinator.hooks.register("tool:pre", () => null)();
      await coordinator.mount("tools", tool("t"));
    }],
  });
  await session.initialize();
  assertEquals(data("module:skipped"), []);
});

Deno.test("emit() has a timeout of 30 s, which a handler may change with a valid number", async () => {
  for (const timeout_ms of [undefined, NaN, "soon" as unknown as number]) {
    const { hooks, clock } = registry();
    hooks.register(
      "tool:pre",
      () => new Promise<null>(() => {}),
      timeout_ms === undefined ? {} : { timeout_ms },
    );
    const emitted = hooks.emit("tool:pre", {});
    await clock.advance(29_999);
    assertEquals(clock.pending, 1);
    await clock.advance(1);
    assertEquals((await emitted).action, "deny");
  }
});

Deno.test("emit() uses a handler's timeout up to that of the server", async () => {
  for (const [timeout_ms, most] of [[undefined, 500], [20, 20], [9_000, 500], [0, 500]] as const) {
    const { hooks, clock } = registry({}, { hook_timeout_s: 0.5 });
    const options = timeout_ms === undefined ? {} : { timeout_ms };
    hooks.register("tool:pre", () => new Promise<null>(() => {}), options);
    const emitted = hooks.emit("tool:pre", {});
    await clock.advance(most - 1);
    assertEquals(clock.pending, 1);
    await clock.advance(1);
    assertEquals((await emitted).action, "deny");
  }
});

Deno.test("emitAndCollect() waits at most the server's timeout", async () => {
  const { hooks, clock, warnings } = registry({}, { hook_timeout_s: 0.5 });
  hooks.register("x", () => new Promise<null>(() => {}));
  const collected = hooks.emitAndCollect("x", {}, 60);
  await clock.advance(500);
  assertEquals([await collected, warnings.length], [[], 1]);
});

Deno.test("emit() leaves no timer after a handler that returned", async () => {
  const { hooks, clock } = registry();
  hooks.register("x", async () => {
    await clock.after(10);
    return null;
  });
  const emitted = hooks.emit("x", {});
  await clock.advance(10);
  await emitted;
  assertEquals(clock.pending, 0);
});

Deno.test("listHandlers() takes time in proportion to the number of handlers", async () => {
  const { hooks } = registry({}, { max_hooks: Infinity });
  const size = 40_000;
  for (let i = 0; i < size; i++) hooks.register("a", () => null, 0, "same");
  const { value, busy_ms } = await busyTime(() => Promise.resolve(hooks.listHandlers()));
  assertEquals(value.a?.length, size);
  assert(busy_ms < 1_000, `it took ${busy_ms} ms`);
});

Deno.test("the registry has snake_case methods and the names of events", async () => {
  const { hooks } = registry();
  const spelled = hooks as unknown as Record<string, (...args: unknown[]) => unknown>;
  assertEquals(await spelled.emit_and_collect!("x", {}), []);
  assertEquals(spelled.list_handlers!("x"), { x: [] });
  assertEquals([hooks.SESSION_START, hooks.TOOL_PRE, hooks.USER_NOTIFICATION], [
    "session:start",
    "tool:pre",
    "user:notification",
  ]);
});
