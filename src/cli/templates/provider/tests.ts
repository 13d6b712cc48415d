import assert from "node:assert/strict";
import { TestCoordinator, testProvider } from "preamp/testing";
import * as module from "./mod.ts";

testProvider("__ID__", () => module);

Deno.test("mount() mounts the provider __NAME__", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, {});
  const [mounted] = coordinator.mount_history;
  assert.equal(mounted?.mount_point, "providers");
  assert.equal(mounted?.name, "__NAME__");
});

Deno.test("__NAME__ answers with the last message", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, { prefix: "You said: " });
  const response = await coordinator.providers.__NAME__!.complete({
    messages: [{ role: "user", content: "Good morning" }],
  });
  assert.deepEqual(response.content, [{ type: "text", text: "You said: Good morning" }]);
});
