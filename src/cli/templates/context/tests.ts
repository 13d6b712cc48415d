import assert from "node:assert/strict";
import { testContext, TestCoordinator } from "preamp/testing";
import * as module from "./mod.ts";

testContext("__ID__", () => module);

Deno.test("mount() mounts the memory", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, {});
  assert.deepEqual(coordinator.mount_history.map(({ mount_point }) => mount_point), ["context"]);
});

Deno.test("a request sees the newest messages that fit, the history holds them all", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, { max_tokens: 40 });
  const context = coordinator.context!;
  for (let turn = 1; turn <= 9; turn++) {
    await context.addMessage({ role: "user", content: `question ${turn}` });
    await context.addMessage({ role: "assistant", content: `answer ${turn}` });
  }
  const seen = await context.getMessagesForRequest();
  assert.equal(seen.at(-1)?.content, "answer 9");
  assert.ok(seen.length < 18);
  assert.equal((await context.getMessages()).length, 18);
});
