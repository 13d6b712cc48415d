/** The behaviour of handlers in a complete registry. */
import { EventRecorder } from "../../src/sdk/testing/hooks.ts";
import { FakeClock } from "../../src/sdk/testing/clocks.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals, assertMatch, assertThrows } from "../assert.ts";

Deno.test("emit() runs lower priorities first, equal ones in order of registration", async () => {
  const hooks = new EventRecorder();
  const order: string[] = [];
  for (const [name, priority] of [["ten", 10], ["minus", -5], ["first", 0], ["second", 0]] as const) {
    hooks.register("e", () => void order.push(name), priority);
  }
  await hooks.emit("e");
  assertEquals(order, ["minus", "first", "second", "ten"]);
});

Deno.test("emit() passes the defaults and a new timestamp to handlers", async () => {
  const hooks = new EventRecorder(new FakeClock(0));
  hooks.setDefaultFields({ session_id: "s" });
  let seen: JsonObject = {};
  hooks.register("e", (_, data) => void (seen = data));
  await hooks.emit("e", { timestamp: "x" });
  assertEquals(seen, { session_id: "s", timestamp: "1970-01-01T00:00:00.000Z" });
});

Deno.test("emit() lets the event's own fields win over the defaults", async () => {
  const hooks = new EventRecorder();
  hooks.setDefaultFields({ session_id: "s", parent_id: null });
  hooks.setDefaultFields({ session_id: "s" });
  let seen: JsonObject = {};
  hooks.register("e", (_, data) => void (seen = data));
  await hooks.emit("e", { session_id: "y" });
  assertEquals([seen.session_id, "parent_id" in seen], ["y", false]);
});

Deno.test("emit() without a handler returns the same data", async () => {
  const data = { x: 1 };
  const emission = await new EventRecorder().emit("e", data);
  assert(emission.data === data);
  assertEquals([emission.action, emission.data], ["continue", { x: 1 }]);
});

Deno.test("a disposer removes its own registration only, and may be called twice", async () => {
  const hooks = new EventRecorder();
  const heard: string[] = [];
  const [first] = ["a", "b", "c"].map((event) =>
    hooks.register(event, (name) => void heard.push(name), 0, "same")
  );
  first!();
  first!();
  for (const event of ["a", "b", "c"]) await hooks.emit(event);
  assertEquals(heard, ["b", "c"]);
  {
    using _ = hooks.register("d", (name) => void heard.push(name));
  }
  await hooks.emit("d");
  assertEquals(heard, ["b", "c"]);
  hooks.unregister("same");
  await hooks.emit("b");
  assertEquals(heard, ["b", "c"]);
});

Deno.test("a handler registered during an emit runs from the next one on", async () => {
  const hooks = new EventRecorder();
  let late = 0;
  hooks.register("e", () => void hooks.register("e", () => void late++, 0, "late"));
  await hooks.emit("e");
  assertEquals(late, 0);
  await hooks.emit("e");
  assertEquals(late, 1);
});

Deno.test("emitAndCollect() skips the slow and the broken, keeps the others in order", async () => {
  const clock = new FakeClock();
  const hooks = new EventRecorder(clock);
  hooks.register("e", () => ({ action: "continue", data: { from: "a" } }));
  hooks.register("e", async () => {
    await clock.after(2000);
    return { data: { from: "slow" } };
  });
  hooks.register("e", () => {
    throw new Error("bad");
  });
  hooks.register("e", () => ({ action: "deny" as const, data: { from: "b" } }));
  const collected = hooks.emitAndCollect("e", { x: 1 }, 1);
  await clock.advance(1000);
  assertEquals(await collected, [{ from: "a" }, { from: "b" }]);
  assertEquals(hooks.failures.map((failure) => failure.event), ["e", "e"]);
  await clock.advance(2000);
});

Deno.test("emit() ends a handler that hangs, as its registration says", async () => {
  for (const [fail_closed, action] of [[true, "deny"], [false, "continue"]] as const) {
    const clock = new FakeClock();
    const hooks = new EventRecorder(clock);
    hooks.register("e", () => new Promise<null>(() => {}), { timeout_ms: 50, fail_closed, name: "hung" });
    const emitted = hooks.emit("e");
    await clock.advance(50);
    assertEquals((await emitted).action, action);
    assertEquals(hooks.failures.map((failure) => failure.handler), ["hung"]);
  }
});

Deno.test("emit() denies at a gate when a handler throws, unless it registered with fail_closed: false", async () => {
  const bad = () => {
    throw new Error("bad");
  };
  for (const event of ["prompt:submit", "provider:request", "tool:pre"]) {
    const hooks = new EventRecorder();
    const dispose = hooks.register(event, bad, 0, "guard");
    const emission = await hooks.emit(event);
    assertEquals([emission.action, emission.reason], ["deny", 'Hook "guard" failed: bad']);
    dispose();
    hooks.register(event, bad, { fail_closed: false });
    assertEquals((await hooks.emit(event)).action, "continue");
  }
});

Deno.test("listHandlers() names handlers by event, or of one event", () => {
  const hooks = new EventRecorder();
  hooks.register("a", function named() {});
  hooks.register("a", () => {}, -1);
  hooks.register("b", () => {}, 0, "given");
  assertEquals(hooks.listHandlers(), { a: ["handler-2", "named"], b: ["given"] });
  assertEquals(hooks.listHandlers("b"), { b: ["given"] });
  assertEquals(hooks.listHandlers("x"), { x: [] });
});

Deno.test("emit() keeps the emitter's object out of reach", async () => {
  const hooks = new EventRecorder();
  const given = { at: new Date(0), list: [1] };
  let seen: JsonObject = {};
  hooks.register("e", (_, data) => {
    seen = { ...data };
    data.list = "spoiled";
    return null;
  });
  await hooks.emit("e", given);
  assertEquals(seen.at, "1970-01-01T00:00:00.000Z");
  assertEquals(given, { at: new Date(0), list: [1] });
});

Deno.test("wildcards run after exact handlers of the same priority and only observe", async () => {
  const hooks = new EventRecorder();
  const order: string[] = [];
  hooks.register("*", () => {
    order.push("all");
    return { action: "deny" };
  });
  hooks.register("tool:*", () => void order.push("prefix"));
  hooks.register("tool:post", () => void order.push("exact"));
  hooks.register("*", () => void order.push("early"), -1);
  assertEquals((await hooks.emit("tool:post")).action, "continue");
  assertEquals(order, ["early", "exact", "all", "prefix"]);
});

Deno.test("emit() takes null data", async () => {
  const hooks = new EventRecorder();
  hooks.register("e", () => null);
  assertEquals((await hooks.emit("e", null)).action, "continue");
  assertEquals((await hooks.emit("unhandled", null)).data, {});
});

Deno.test("on() registers a handler, and without a handler returns a function that registers one", async () => {
  const hooks = new EventRecorder();
  let heard = 0;
  hooks.on("e", () => void heard++, 5);
  const dispose = hooks.on("e")(() => void heard++);
  await hooks.emit("e");
  dispose();
  await hooks.emit("e");
  assertEquals(heard, 3);
});

Deno.test("register() refuses an invalid event or handler", () => {
  const hooks = new EventRecorder();
  assertThrows(() => hooks.register("", () => null), TypeError, "event must be a non-empty string");
  assertThrows(() => hooks.register("e", "x" as never), TypeError, "must be a function");
});

Deno.test("getEvents() returns [event, data] after the handlers' changes, without the default fields", async () => {
  const hooks = new EventRecorder();
  hooks.setDefaultFields({ session_id: "s" });
  hooks.register("a", async (_, data) => {
    await hooks.emit("nested", { in: "a" });
    return { action: "modify", data: { ...data, x: 2 } };
  });
  hooks.register("b", () => null);
  await hooks.emit("a", { x: 1 });
  await hooks.emit("b", { session_id: "own", timestamp: "t" });
  assertEquals(hooks.getEvents("nested"), [["nested", { in: "a" }]]);
  assertEquals(hooks.getEvents().map(([event]) => event), ["nested", "a", "b"]);
  assertEquals(hooks.getEvents("a"), [["a", { x: 2 }]]);
  assertEquals(hooks.getEvents("b")[0]?.[1].session_id, "own");
  assertMatch(String(hooks.getEvents("b")[0]?.[1].timestamp), /^2026-/);
});

Deno.test("record() notes an event without a handler, clear() forgets", () => {
  const hooks = new EventRecorder();
  hooks.record("e", { x: 1 });
  assertEquals(hooks.getEvents(), [["e", { x: 1 }]]);
  hooks.clear();
  assertEquals(hooks.getEvents(), []);
});
