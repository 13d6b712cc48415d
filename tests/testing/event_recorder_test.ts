import { errorMessage } from "../../src/sdk/errors.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import { EventRecorder } from "../../src/testing/hooks.ts";
import { assertEquals, assertMatch } from "../assert.ts";
import { testHookRegistry } from "../contracts/hook_registry.ts";

testHookRegistry("EventRecorder", () => {
  const clock = new FakeClock();
  const hooks = new EventRecorder(clock);
  hooks.setDefaultFields({ session_id: "ses_1", parent_id: null });
  return {
    hooks,
    clock,
    recorded: () => hooks.getEvents(),
    failures: () =>
      hooks.failures.map(({ event, handler, error }) =>
        `Hook "${handler}" failed on ${event}: ${errorMessage(error)}`
      ),
  };
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
