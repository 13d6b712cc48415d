import assert from "node:assert/strict";
import { TestCoordinator, testHook } from "preamp/testing";
import * as module from "./mod.ts";

testHook("__ID__", () => module, {
  config: { deny: ["bash"] },
  expectations: [
    { event: "tool:pre", data: { tool_name: "bash" }, action: "deny" },
    { event: "tool:pre", data: { tool_name: "calculator" }, action: "continue" },
  ],
});

Deno.test("mount() registers a handler of tool:pre, and its cleanup removes it", async () => {
  const coordinator = new TestCoordinator();
  const cleanup = await module.mount(coordinator, {}) as () => void;
  assert.deepEqual(coordinator.hooks.listHandlers(), { "tool:pre": ["__ID__"] });
  cleanup();
  assert.deepEqual(coordinator.hooks.listHandlers(), {});
});

Deno.test("mount() refuses an invalid config", async () => {
  await assert.rejects(
    async () => await module.mount(new TestCoordinator(), { deny: "bash" }),
    /config.deny/,
  );
});
