import type { DraftEntry, Host } from "../../../src/kernel/host.ts";
import { RunLimitGuard } from "../../../src/kernel/run_limits.ts";
import { SessionContext } from "../../../src/kernel/session/session_context.ts";
import { createParts } from "../../../src/kernel/session/session_parts.ts";
import { SessionState } from "../../../src/kernel/session/session_state.ts";
import { CancellationToken } from "../../../src/sdk/cancellation.ts";
import { FakeClock } from "../../../src/sdk/testing/fake_clock.ts";
import type { HookResult, JsonObject } from "../../../src/sdk/types.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../assert.ts";
import { KERNEL_LIMITS, LIMITS, planOf } from "../../support/sessions.ts";

/** Creates the registry of a session with a fake clock and no modules; `entries` lists what was logged. */
function registry(changes: Partial<Host> = {}, hook_timeout_s = 30) {
  const clock = new FakeClock();
  const entries: Pick<DraftEntry, "event" | "data" | "verdict">[] = [];
  const warnings: string[] = [];
  const host: Host = {
    clock,
    newId: (prefix) => `${prefix}_1`,
    open: () => Promise.reject(new Error("no modules")),
    record({ event, data, verdict }) {
      entries.push({ event, data, ...(verdict ? { verdict } : {}) });
    },
    ask: () => Promise.resolve(null),
    accept() {},
    warn: (_code, message) => void warnings.push(message),
    ...changes,
  };
  const session = new SessionContext(
    host,
    planOf({}, clock).plan,
    "ses_1",
    null,
    new SessionState({}, 1_000),
    new RunLimitGuard({ limits: LIMITS, clock }),
    new CancellationToken(),
    { ...KERNEL_LIMITS, hook_timeout_s },
  );
  const { hooks } = createParts(session, {});
  return { hooks, clock, entries, warnings };
}

const answer = (result: HookResult) => () => result;

Deno.test("emit() runs handlers by priority, equal ones in order of registration", async () => {
  const { hooks } = registry();
  const order: string[] = [];
  const add = (name: string, priority: number) =>
    hooks.register("x", () => void order.push(name), { priority, name });
  add("ten", 10);
  add("minus", -5);
  add("first", 0);
  add("second", 0);
  await hooks.emit("x", {});
  assertEquals(order, ["minus", "first", "second", "ten"]);
});

Deno.test("emit() stops at a deny and returns its reason", async () => {
  const { hooks } = registry();
  let ran = false;
  hooks.register("x", answer({ action: "deny", reason: "no" }), 0, "guard");
  hooks.register("x", () => void (ran = true), 10);
  const { action, reason, hook_name } = await hooks.emit("x", {});
  assertEquals({ action, reason, hook_name, ran }, {
    action: "deny",
    reason: "no",
    hook_name: "guard",
    ran: false,
  });
});

Deno.test("emit() lets a later deny win over ask_user", async () => {
  const { hooks } = registry();
  hooks.register("x", answer({ action: "ask_user", approval_prompt: "ok?" }), 0);
  hooks.register("x", answer({ action: "deny", reason: "never" }), 10);
  const { action, reason, approval } = await hooks.emit("x", {});
  assertEquals({ action, reason, approval }, { action: "deny", reason: "never", approval: null });
});

Deno.test("emit() passes modified data from handler to handler, and sets modified", async () => {
  const { hooks } = registry();
  const seen: unknown[] = [];
  hooks.register("x", (_event, data) => ({ action: "modify", data: { ...data, a: 2 } }), 0);
  hooks.register("x", (_event, data) => {
    seen.push(data.a);
    return { action: "modify", data: { b: 3 } };
  }, 10);
  const { action, data, modified } = await hooks.emit("x", { a: 1 });
  assertEquals({ action, data, modified, seen }, {
    action: "continue",
    data: { b: 3 },
    modified: true,
    seen: [2],
  });
});

Deno.test("emit() keeps modified data together with an injection or a question", async () => {
  for (const action of ["inject_context", "ask_user"] as const) {
    const { hooks } = registry();
    hooks.register("x", answer({ action: "modify", data: { a: 2 } }), 0);
    hooks.register("x", answer({ action, context_injection: "note" } as HookResult), 10);
    const emission = await hooks.emit("x", { a: 1 });
    assertEquals([emission.action, emission.data, emission.modified], [action, { a: 2 }, true]);
  }
});

Deno.test("emit() merges injections and keeps each of them", async () => {
  const { hooks } = registry();
  hooks.register(
    "x",
    answer({ action: "inject_context", context_injection: "A", ephemeral: true }),
    0,
    "one",
  );
  hooks.register(
    "x",
    answer({
      action: "inject_context",
      context_injection: "B",
      context_injection_role: "user",
      append_to_last_tool_result: true,
    }),
    10,
    "two",
  );
  const emission = await hooks.emit("x", {});
  assertEquals(emission.action, "inject_context");
  assertEquals(
    [
      emission.context_injection,
      emission.context_injection_role,
      emission.ephemeral,
      emission.append_to_last_tool_result,
    ],
    ["A\n\nB", "system", true, true],
  );
  assertEquals(emission.injections, [
    { text: "A", role: "system", ephemeral: true, append_to_last_tool_result: false, hook_name: "one" },
    { text: "B", role: "user", ephemeral: false, append_to_last_tool_result: true, hook_name: "two" },
  ]);
});

Deno.test("emit() keeps the first of two questions", async () => {
  const { hooks } = registry();
  hooks.register("x", answer({ action: "ask_user", approval_prompt: "first?" }), 0);
  hooks.register("x", answer({ action: "ask_user", approval_prompt: "second?" }), 10);
  assertEquals((await hooks.emit("x", {})).approval?.prompt, "first?");
});

Deno.test("emit() skips a handler that throws at an event that is not a gate, and warns", async () => {
  const { hooks, warnings } = registry();
  let ran = 0;
  hooks.register(
    "tool:post",
    () => {
      throw new Error("broken");
    },
    0,
    "bad",
  );
  hooks.register("tool:post", () => Promise.reject(new Error("late")), 1, "worse");
  hooks.register("tool:post", () => void ran++, 2);
  assertEquals((await hooks.emit("tool:post", {})).action, "continue");
  assertEquals(ran, 1);
  assertEquals(warnings, [
    'Hook "bad" failed on tool:post: broken',
    'Hook "worse" failed on tool:post: late',
  ]);
});

for (const event of ["prompt:submit", "provider:request", "tool:pre"]) {
  Deno.test(`emit() denies ${event} when a handler fails, unless it registered with fail_closed: false`, async () => {
    for (const fail_closed of [true, undefined, false]) {
      const { hooks } = registry();
      hooks.register(event, () => {
        throw new Error("broken");
      }, fail_closed === undefined ? {} : { fail_closed });
      assertEquals((await hooks.emit(event, {})).action, fail_closed === false ? "continue" : "deny");
    }
  });
}

Deno.test("emit() denies when a handler returns an invalid result", async () => {
  for (const nonsense of [42, "deny", true, [], { action: "explode" }, { action: "modify", data: 7 }]) {
    const { hooks } = registry();
    hooks.register("x", () => nonsense as unknown as HookResult);
    const { action, reason } = await hooks.emit("x", {});
    assertEquals(
      [action, reason],
      ["deny", "Hook handler returned invalid response"],
      JSON.stringify(nonsense),
    );
  }
});

Deno.test("emit() reads null and undefined as continue, also without a promise", async () => {
  const { hooks } = registry();
  let ran = 0;
  hooks.register("x", () => null);
  hooks.register("x", () => undefined as unknown as null);
  hooks.register("x", async () => await Promise.resolve(null));
  hooks.register("x", () => void ran++);
  assertEquals((await hooks.emit("x", { a: 1 })).action, "continue");
  assertEquals(ran, 1);
});

Deno.test("emit() adds defaults and always its own timestamp", async () => {
  const { hooks } = registry();
  let seen: JsonObject = {};
  hooks.register("x", (_event, data) => void (seen = data));
  await hooks.emit("x", { timestamp: "x", a: 1 });
  assertEquals(seen, { session_id: "ses_1", parent_id: null, a: 1, timestamp: "2026-01-01T00:00:00.000Z" });
});

Deno.test("emit() lets the caller's fields win over defaults", async () => {
  const { hooks } = registry();
  let seen: JsonObject = {};
  hooks.register("x", (_event, data) => void (seen = data));
  await hooks.emit("x", { session_id: "y" });
  assertEquals(seen.session_id, "y");
});

Deno.test("emit() without handlers returns the same data without a timestamp, and appends the entry", async () => {
  const { hooks, entries } = registry();
  const data = { a: 1 };
  const emission = await hooks.emit("x", data);
  assert(emission.data === data);
  assertEquals(entries, [{ event: "x", data: { a: 1 } }]);
});

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

Deno.test("emitAndCollect() skips handlers that are slow, fail or return no data", async () => {
  const { hooks, clock, entries, warnings } = registry();
  hooks.register("x", () => ({ action: "continue", data: { from: "first" } } as HookResult));
  hooks.register("x", async () => {
    await clock.after(2000);
    return { action: "continue", data: { from: "slow" } } as HookResult;
  }, { name: "slow" });
  hooks.register("x", () => null);
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
});

Deno.test("emit() shares nothing with its handlers, whatever they do to the payload", async () => {
  class Thing {
    inner = { value: 1 };
  }
  const { hooks } = registry();
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
  assertEquals(given, {
    at: new Date(0),
    thing: Object.assign(new Thing(), { inner: { value: 1 } }),
    list: [1],
  });
  assertEquals(seen, ["1970-01-01T00:00:00.000Z", [1], "1970-01-01T00:00:00.000Z", [1]]);
  assertEquals(data.list, [1]);
});

Deno.test("emit() runs wildcards after exact matches, as observers", async () => {
  const { hooks } = registry();
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
  assertEquals((await hooks.emit("tool:pre", {})).action, "continue");
  assertEquals(order, ["exact", "*", "tool:*"]);
  await hooks.emit("prompt:submit", {});
  assertEquals(order, ["exact", "*", "tool:*", "*"]);
});

Deno.test("emit() reads null as no data", async () => {
  const { hooks } = registry();
  let seen: JsonObject = {};
  assertEquals((await hooks.emit("x", null)).data, {});
  hooks.register("x", (_event, data) => void (seen = data));
  await hooks.emit("x", null);
  await hooks.emit("x");
  assertEquals(Object.keys(seen), ["session_id", "parent_id", "timestamp"]);
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

Deno.test("emit() survives results whose getters throw and invalid thenables", async () => {
  const { hooks, warnings } = registry();
  hooks.register("x", () =>
    ({
      get action(): never {
        throw new Error("gotcha");
      },
    }) as unknown as HookResult);
  hooks.register("x", () =>
    ({
      then(resolve: (value: unknown) => void) {
        resolve({ action: "continue" });
        throw new Error("after");
      },
    }) as unknown as HookResult);
  hooks.register("x", () => {
    throw Object.create(null);
  });
  assertEquals((await hooks.emit("x", {})).action, "continue");
  assertEquals(warnings.length, 2);
});

Deno.test("emit() rejects, and does not throw, when the log fails at once", async () => {
  const { hooks } = registry({
    record() {
      throw new Error("store is gone");
    },
  });
  const emitted = hooks.emit("x", {});
  await assertRejects(() => emitted, Error, "store is gone");
});

Deno.test("emit() appends the entry before it returns when there is no handler to wait for", async () => {
  const { hooks, entries } = registry();
  const emitted = hooks.emit("x", { a: 1 });
  assertEquals(entries, [{ event: "x", data: { a: 1 } }]);
  await emitted;
});

Deno.test("emit() appends the data that handlers left, with their verdict", async () => {
  const { hooks, entries } = registry();
  hooks.register("x", () => ({ action: "modify", data: { a: 4 } }), 0, "changer");
  await hooks.emit("x", { a: 3 });
  assertEquals(entries, [{
    event: "x",
    data: { a: 4 },
    verdict: { action: "continue", hook_name: "changer", modified: true },
  }]);
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
