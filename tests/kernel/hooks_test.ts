/** The registry of a session: the contract of all, what it logs, and bounds of what modules emit. */
import type { HookResult } from "../../src/sdk/types.ts";
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { testHookRegistry } from "../contracts/hook_registry.ts";
import { registry } from "./registry.ts";

testHookRegistry("Hooks", () => {
  const { hooks, clock, entries, warnings } = registry();
  return {
    hooks,
    clock,
    recorded: () => entries.map(({ event, data }) => [event, data]),
    failures: () => warnings,
  };
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
    const { hooks, emitter, entries, warnings } = registry();
    hooks.register(
      "x",
      async (event) => {
        if (waits) await null;
        await hooks.emit(event, {});
        return { action: "continue" };
      },
      0,
      "again",
    );
    assertEquals((await hooks.emit("x", {})).action, "continue");
    assertEquals([entries.length, warnings.length, emitter.open], [levels, 1, 0]);
    assertMatch(warnings[0]!, /^Hook "again" failed on x: Cannot emit "x": too many emissions wait/);
  }
});

Deno.test("emissions of a module that wait for their handlers are limited, those of the kernel are not", async () => {
  const { hooks, session_hooks } = registry();
  hooks.register("slow", () => new Promise(() => {}));
  for (let count = 0; count < 10_000; count++) void hooks.emit("slow", {});
  await assertRejects(() => hooks.emit("slow", {}), Error, 'Cannot emit "slow"');
  hooks.register("session:end", () => null);
  assertEquals((await session_hooks.emit("session:end", {})).action, "continue");
});
