/** Registration of handlers, their timeouts, and the defaults of their payload. */
import type { HookResult, JsonObject } from "../../../src/sdk/types.ts";
import { assert, assertEquals, assertThrows } from "../../assert.ts";
import { busyTime } from "../../support/busy_time.ts";
import { kit, tool } from "../../support/sessions.ts";
import { registry } from "./registry.ts";

Deno.test("register() returns a disposer of this registration only, whatever its name", async () => {
  const { hooks } = registry();
  const heard: string[] = [];
  const disposers = ["a", "b", "c"].map((event) =>
    hooks.register(event, (name) => void heard.push(name), 0, "same")
  );
  disposers[0]!();
  disposers[0]!();
  for (const event of ["a", "b", "c"]) await hooks.emit(event, {});
  assertEquals(heard, ["b", "c"]);
  {
    using _ = disposers[1]!;
  }
  await hooks.emit("b", {});
  assertEquals(heard, ["b", "c"]);
});

Deno.test("unregister() removes every handler of a name", async () => {
  const { hooks } = registry();
  let ran = 0;
  hooks.register("a", () => void ran++, 0, "same");
  hooks.register("b", () => void ran++, 0, "same");
  hooks.unregister("same");
  await hooks.emit("a", {});
  await hooks.emit("b", {});
  assertEquals(ran, 0);
});

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

Deno.test("register() during an emit takes effect at the next one", async () => {
  const { hooks } = registry();
  const order: string[] = [];
  let added = false;
  hooks.register("x", () => {
    order.push("a");
    if (!added) hooks.register("x", () => void order.push("b"));
    added = true;
  });
  await hooks.emit("x", {});
  await hooks.emit("x", {});
  assertEquals(order, ["a", "a", "b"]);
});

Deno.test("emitAndCollect() skips handlers that are slow, fail, observe or return no data", async () => {
  const { hooks, clock, entries, warnings } = registry();
  hooks.register("x", () => ({ action: "continue", data: { from: "first" } } as HookResult));
  hooks.register("x", async () => {
    await clock.after(2000);
    return { action: "continue", data: { from: "slow" } } as HookResult;
  }, { name: "slow" });
  hooks.register("x", () => null);
  hooks.register("*", () => ({ action: "modify", data: { from: "observer" } }));
  hooks.register("x", () => {
    throw new Error("broken");
  }, { name: "bad" });
  hooks.register("x", () => ({ action: "deny", data: { from: "last" } } as unknown as HookResult));
  const collected = hooks.emitAndCollect("x", { q: 1 }, 1);
  await clock.advance(1000);
  assertEquals(await collected, [{ from: "first" }, { from: "last" }]);
  assertEquals(entries, [{ event: "x", data: { q: 1 } }]);
  assertEquals(warnings, ['Hook "slow" failed on x: no answer within 1 s', 'Hook "bad" failed on x: broken']);
});

Deno.test("emit() stops waiting for a handler after its timeout: deny if it fails closed, else continue", async () => {
  for (const fail_closed of [true, false]) {
    const { hooks, clock } = registry();
    hooks.register("x", () => new Promise<null>(() => {}), { timeout_ms: 50, fail_closed, name: "hung" });
    const emitted = hooks.emit("x", {});
    await clock.advance(49);
    await clock.advance(1);
    const { action } = await emitted;
    assertEquals(action, fail_closed ? "deny" : "continue");
    assertEquals(clock.pending, 0);
  }
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
    const { hooks, clock } = registry({}, 0.5);
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
  const { hooks, clock, warnings } = registry({}, 0.5);
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

Deno.test("listHandlers() returns all handlers by event, or those of one event", () => {
  const { hooks } = registry();
  hooks.register("a", function named() {
    return null;
  });
  hooks.register("b", () => null, 5, "late");
  hooks.register("b", () => null, -5, "early");
  assertEquals(hooks.listHandlers(), { a: ["named"], b: ["early", "late"] });
  assertEquals(hooks.listHandlers("b"), { b: ["early", "late"] });
  assertEquals(hooks.listHandlers("x"), { x: [] });
  hooks.register("constructor", () => null, 0, "any");
  assertEquals(hooks.listHandlers("constructor"), { constructor: ["any"] });
});

Deno.test("listHandlers() takes time in proportion to the number of handlers", async () => {
  const { hooks } = registry();
  const size = 40_000;
  for (let i = 0; i < size; i++) hooks.register("a", () => null, 0, "same");
  const { value, busy_ms } = await busyTime(() => Promise.resolve(hooks.listHandlers()));
  assertEquals(value.a?.length, size);
  assert(busy_ms < 1_000, `it took ${busy_ms} ms`);
});

Deno.test("on() registers the handler, or returns a function that does", async () => {
  const { hooks } = registry();
  let ran = 0;
  hooks.on("x", () => void ran++);
  hooks.on("x")(() => void ran++);
  await hooks.emit("x", {});
  assertEquals(ran, 2);
});

Deno.test("register() refuses an invalid event or handler", () => {
  const { hooks } = registry();
  assertThrows(() => hooks.register("", () => null), TypeError, "event must be a non-empty string");
  assertThrows(() => hooks.register(7 as unknown as string, () => null), TypeError, "received 7");
  assertThrows(() => hooks.register("x", "f" as unknown as () => null), TypeError, "must be a function");
});

Deno.test("register() reads a priority that is not a number as 0", async () => {
  const { hooks } = registry();
  const order: string[] = [];
  hooks.register("x", () => void order.push("one"), { priority: 1 });
  hooks.register("x", () => void order.push("nan"), { priority: NaN });
  hooks.register("x", () => void order.push("minus"), { priority: -1 });
  await hooks.emit("x", {});
  assertEquals(order, ["minus", "nan", "one"]);
});

Deno.test("setDefaultFields() replaces the defaults", async () => {
  const { hooks } = registry();
  let seen: JsonObject = {};
  hooks.register("x", (_event, data) => void (seen = data));
  hooks.setDefaultFields({ team: "blue" });
  await hooks.emit("x", {});
  assertEquals(seen, { team: "blue", timestamp: "2026-01-01T00:00:00.000Z" });
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
