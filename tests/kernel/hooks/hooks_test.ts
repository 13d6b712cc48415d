/** emit(): the order of handlers, what they answer, and what is logged. */
import type { HookResult, JsonObject } from "../../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { answer, registry } from "./registry.ts";

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

Deno.test("emit() and emitAndCollect() refuse an event that is no name, and append nothing", async () => {
  const { hooks, entries } = registry();
  for (const event of [undefined, "", 7, ["run:end"]] as unknown as string[]) {
    await assertRejects(() => hooks.emit(event, {}), TypeError, "event must be a non-empty string");
    await assertRejects(() => hooks.emitAndCollect(event, {}), TypeError, "event must be");
  }
  assertEquals(entries, []);
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

Deno.test("a handler that emits the event that it handles is stopped, at once or after a wait", async () => {
  for (const [waits, levels] of [[false, 100], [true, 10_000]] as const) {
    const { hooks, entries, warnings } = registry();
    const module = { module_id: "m", reserved: new Set<string>(), open: 0 };
    hooks.register(
      "x",
      async (event) => {
        if (waits) await null;
        await hooks.emit(event, {}, module);
        return { action: "continue" };
      },
      0,
      "again",
    );
    assertEquals((await hooks.emit("x", {}, module)).action, "continue");
    assertEquals([entries.length, warnings.length, module.open], [levels, 1, 0]);
    assertMatch(warnings[0]!, /^Hook "again" failed on x: Cannot emit "x": too many emissions wait/);
  }
});

Deno.test("emissions of a module that wait for their handlers are limited, those of the kernel are not", async () => {
  const { hooks } = registry();
  hooks.register("slow", () => new Promise(() => {}));
  const module = { module_id: "m", reserved: new Set<string>(), open: 0 };
  for (let count = 0; count < 10_000; count++) void hooks.emit("slow", {}, module);
  await assertRejects(() => hooks.emit("slow", {}, module), Error, 'Cannot emit "slow"');
  hooks.register("session:end", () => null);
  assertEquals((await hooks.emit("session:end", {})).action, "continue");
});
