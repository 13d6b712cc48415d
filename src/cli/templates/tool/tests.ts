import assert from "node:assert/strict";
import { TestCoordinator, testTool } from "preamp/testing";
import * as module from "./mod.ts";

testTool("__ID__", () => module, { input: { person: "Ada" } });

Deno.test("mount() mounts the tool __NAME__", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, {});
  const [mounted] = coordinator.mount_history;
  assert.equal(mounted?.mount_point, "tools");
  assert.equal(mounted?.name, "__NAME__");
});

Deno.test("__NAME__ greets as configured and emits its event", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, { greeting: "Good morning" });
  const result = await coordinator.tools.__NAME__!.execute({ person: "Ada" });
  assert.deepEqual(result, { success: true, output: "Good morning, Ada!" });
  const [[, data] = []] = coordinator.hooks.getEvents("__ID__:greeted");
  assert.deepEqual(data, { person: "Ada" });
});

Deno.test("__NAME__ returns a failure that the model can correct", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, {});
  const result = await coordinator.tools.__NAME__!.execute({ person: " " }) as { success: boolean };
  assert.equal(result.success, false);
});
