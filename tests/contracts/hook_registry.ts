/**
 * What every registry of hooks does with its handlers, as a test suite: that of the kernel and that of
 * `preamp/testing` run it. `sdk/hook_chain_test.ts` tests how the answers of handlers are combined.
 */
import type { FakeClock } from "../../src/testing/clocks.ts";
import type { HookRegistry, HookResult, JsonObject } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../assert.ts";

/** A registry without handlers; its default fields are `{ session_id: "ses_1", parent_id: null }`. */
export interface RegistrySubject {
  readonly hooks: HookRegistry;
  /** Begins at 2026-01-01T00:00:00Z. */
  readonly clock: FakeClock;
  /** Returns the recorded events with their data, in order. */
  recorded(): [event: string, data: JsonObject][];
  /** Returns the failures of handlers, such as `Hook "bad" failed on tool:post: broken`. */
  failures(): string[];
}

const GATES = ["prompt:submit", "provider:request", "tool:pre"];
const broken = () => {
  throw new Error("broken");
};
const hangs = () => new Promise<null>(() => {});

/** Registers the suite for one kind of registry. */
export function testHookRegistry(name: string, create: () => RegistrySubject): void {
  const test = (title: string, run: (subject: RegistrySubject) => Promise<void> | void) =>
    Deno.test(`${name}: ${title}`, () => run(create()));

  test("emit() runs handlers by priority, equal ones in order of registration", async ({ hooks }) => {
    const order: string[] = [];
    const add = (name: string, priority: number) =>
      hooks.register("x", () => void order.push(name), { priority, name });
    add("ten", 10);
    add("minus", -5);
    add("first", 0);
    add("not a number", NaN);
    add("second", 0);
    await hooks.emit("x", {});
    assertEquals(order, ["minus", "first", "not a number", "second", "ten"]);
  });

  test("emit() returns the combined answers of the handlers", async ({ hooks, recorded }) => {
    hooks.register("x", (_event, data) => ({ action: "modify", data: { ...data, a: 2 } }), 0);
    hooks.register("x", () => ({ action: "inject_context", context_injection: "note" }), 10, "injects");
    const { action, data, modified, injections, hook_name } = await hooks.emit("x", { a: 1 });
    assertEquals([action, data.a, modified, hook_name], ["inject_context", 2, true, "injects"]);
    assertEquals(injections.map(({ text }) => text), ["note"]);
    assertEquals(recorded().map(([event, { a }]) => [event, a]), [["x", 2]]);
  });

  test("emit() skips a handler that throws at an event that is not a gate, and reports it", async (subject) => {
    const { hooks, failures } = subject;
    let ran = 0;
    hooks.register("tool:post", broken, 0, "bad");
    hooks.register("tool:post", () => Promise.reject(new Error("late")), 1, "worse");
    hooks.register("tool:post", () => void ran++, 2);
    assertEquals([(await hooks.emit("tool:post", {})).action, ran], ["continue", 1]);
    assertEquals(failures(), [
      'Hook "bad" failed on tool:post: broken',
      'Hook "worse" failed on tool:post: late',
    ]);
  });

  test("emit() denies at a gate when a handler fails, unless it registered with fail_closed: false", async ({ hooks }) => {
    for (const event of GATES) {
      const dispose = hooks.register(event, broken, 0, "guard");
      const { action, reason } = await hooks.emit(event, {});
      assertEquals([action, reason], ["deny", 'Hook "guard" failed: broken']);
      dispose();
      hooks.register(event, broken, { fail_closed: false });
      assertEquals((await hooks.emit(event, {})).action, "continue");
    }
  });

  test("emit() stops waiting for a handler after its timeout: deny if it fails closed, else continue", async (subject) => {
    const { hooks, clock, failures } = subject;
    for (const [fail_closed, expected] of [[true, "deny"], [false, "continue"]] as const) {
      const dispose = hooks.register("x", hangs, { timeout_ms: 50, fail_closed, name: "hung" });
      const emitted = hooks.emit("x", {});
      await clock.advance(49);
      assertEquals(clock.pending, 1);
      await clock.advance(1);
      assertEquals([(await emitted).action, clock.pending], [expected, 0]);
      dispose();
    }
    assertEquals(
      failures().map((failure) => failure.split(":")[0]),
      Array(2).fill('Hook "hung" failed on x'),
    );
  });

  test("emit() adds the defaults and always its own timestamp; the event's own fields win over defaults", async ({ hooks }) => {
    let seen: JsonObject = {};
    hooks.register("x", (_event, data) => void (seen = data));
    const timestamp = "2026-01-01T00:00:00.000Z";
    await hooks.emit("x", { timestamp: "x", a: 1 });
    assertEquals(seen, { session_id: "ses_1", parent_id: null, a: 1, timestamp });
    await hooks.emit("x", { session_id: "y" });
    assertEquals(seen, { session_id: "y", parent_id: null, timestamp });
    hooks.setDefaultFields({ team: "blue" });
    await hooks.emit("x", {});
    assertEquals(seen, { team: "blue", timestamp });
  });

  test("emit() without handlers returns the same data without a timestamp, and records it", async ({ hooks, recorded }) => {
    const data = { a: 1 };
    const emission = await hooks.emit("x", data);
    assert(emission.data === data);
    assertEquals([emission.action, recorded()], ["continue", [["x", { a: 1 }]]]);
  });

  test("emit() shares nothing with its handlers, whatever they do to the payload", async ({ hooks }) => {
    class Thing {
      inner = { value: 1 };
    }
    const given = { at: new Date(0), thing: new Thing(), list: [1] };
    const seen: unknown[] = [];
    for (let index = 0; index < 2; index++) {
      hooks.register("x", (_event, data) => {
        seen.push(structuredClone(data.at), structuredClone(data.list));
        (data.list as number[]).push(9);
        (data.thing as Thing).inner.value = 9;
        delete data.at;
      });
    }
    const { data } = await hooks.emit("x", given);
    assertEquals(given, { at: new Date(0), thing: new Thing(), list: [1] });
    assertEquals(seen, ["1970-01-01T00:00:00.000Z", [1], "1970-01-01T00:00:00.000Z", [1]]);
    assertEquals(data.list, [1]);
  });

  test("emit() runs wildcards after exact matches of the same priority, as observers", async ({ hooks }) => {
    const order: string[] = [];
    hooks.register("*", () => {
      order.push("*");
      return { action: "deny", reason: "observers decide nothing" };
    });
    hooks.register("tool:*", () => {
      order.push("tool:*");
      throw new Error("broken");
    });
    hooks.register("tool:pre", () => void order.push("exact"));
    hooks.register("*", () => void order.push("early"), -1);
    assertEquals((await hooks.emit("tool:pre", {})).action, "continue");
    assertEquals(order, ["early", "exact", "*", "tool:*"]);
    await hooks.emit("prompt:submit", {});
    assertEquals(order.slice(4), ["early", "*"]);
  });

  test("emit() reads null as no data", async ({ hooks }) => {
    let seen: JsonObject = {};
    assertEquals((await hooks.emit("x", null)).data, {});
    hooks.register("x", (_event, data) => void (seen = data));
    await hooks.emit("x", null);
    await hooks.emit("x");
    assertEquals(Object.keys(seen), ["session_id", "parent_id", "timestamp"]);
  });

  test("emit() and emitAndCollect() refuse an event that is no name, and record nothing", async ({ hooks, recorded }) => {
    for (const event of [undefined, "", 7, ["run:end"]] as unknown as string[]) {
      await assertRejects(() => hooks.emit(event, {}), TypeError, "event must be a non-empty string");
      await assertRejects(() => hooks.emitAndCollect(event, {}), TypeError, "event must be");
    }
    assertEquals(recorded(), []);
  });

  test("emitAndCollect() skips handlers that are slow, fail, observe or return no data", async (subject) => {
    const { hooks, clock, recorded, failures } = subject;
    const from = (name: string) => ({ action: "continue", data: { from: name } }) as HookResult;
    hooks.register("x", () => from("first"));
    hooks.register("x", () => clock.after(2000).then(() => from("slow")), { name: "slow" });
    hooks.register("x", () => null);
    hooks.register("*", () => ({ action: "modify", data: { from: "observer" } }));
    hooks.register("x", broken, { name: "bad" });
    hooks.register("x", () => ({ action: "deny", data: { from: "last" } } as unknown as HookResult));
    const collected = hooks.emitAndCollect("x", { q: 1 }, 1);
    await clock.advance(1000);
    assertEquals(await collected, [{ from: "first" }, { from: "last" }]);
    assertEquals(recorded(), [["x", { q: 1 }]]);
    assertEquals(failures(), [
      'Hook "slow" failed on x: no answer within 1 s',
      'Hook "bad" failed on x: broken',
    ]);
    await clock.advance(2000);
  });

  test("register() returns a disposer of this registration only, whatever its name", async ({ hooks }) => {
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

  test("unregister() removes every handler of a name", async ({ hooks }) => {
    let ran = 0;
    hooks.register("a", () => void ran++, 0, "same");
    hooks.register("b", () => void ran++, 0, "same");
    hooks.unregister("same");
    await hooks.emit("a", {});
    await hooks.emit("b", {});
    assertEquals(ran, 0);
  });

  test("register() during an emit takes effect at the next one", async ({ hooks }) => {
    const order: string[] = [];
    hooks.register("x", () => {
      order.push("a");
      if (order.length === 1) hooks.register("x", () => void order.push("b"));
    });
    await hooks.emit("x", {});
    await hooks.emit("x", {});
    assertEquals(order, ["a", "a", "b"]);
  });

  test("listHandlers() returns all handlers by event, or those of one event", ({ hooks }) => {
    hooks.register("a", function named() {
      return null;
    });
    hooks.register("a", () => null, -1);
    hooks.register("b", () => null, 5, "late");
    hooks.register("b", () => null, -5, "early");
    assertEquals(hooks.listHandlers(), { a: ["handler-2", "named"], b: ["early", "late"] });
    assertEquals(hooks.listHandlers("b"), { b: ["early", "late"] });
    assertEquals(hooks.listHandlers("x"), { x: [] });
    hooks.register("constructor", () => null, 0, "any");
    assertEquals(hooks.listHandlers("constructor"), { constructor: ["any"] });
  });

  test("on() registers the handler, or returns a function that does", async ({ hooks }) => {
    let ran = 0;
    hooks.on("x", () => void ran++, 5);
    const dispose = hooks.on("x")(() => void ran++);
    await hooks.emit("x", {});
    dispose();
    await hooks.emit("x", {});
    assertEquals(ran, 3);
  });

  test("register() refuses an invalid event or handler", ({ hooks }) => {
    assertThrows(() => hooks.register("", () => null), TypeError, "event must be a non-empty string");
    assertThrows(() => hooks.register(7 as unknown as string, () => null), TypeError, "received 7");
    assertThrows(() => hooks.register("x", "f" as unknown as () => null), TypeError, "must be a function");
  });
}
