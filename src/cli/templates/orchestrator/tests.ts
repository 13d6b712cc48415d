import assert from "node:assert/strict";
import { MockContextManager, MockProvider, TestCoordinator, testOrchestrator } from "preamp/testing";
import * as module from "./mod.ts";

testOrchestrator("__ID__", () => module);

Deno.test("mount() mounts the loop", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, {});
  assert.deepEqual(coordinator.mount_history.map(({ mount_point }) => mount_point), ["orchestrator"]);
});

Deno.test("each request contains the rule, the history does not", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, { rule: "Be brief." });
  const provider = new MockProvider(["Yes."]);
  const context = new MockContextManager();
  await coordinator.mount("providers", provider);
  await coordinator.mount("context", context);
  const { orchestrator, providers, tools, hooks } = coordinator;
  const answer = await orchestrator!.execute("Is it?", context, providers, tools, hooks, { coordinator });
  assert.equal(answer, "Yes.");
  assert.ok(JSON.stringify(provider.requests[0]?.messages).includes("Be brief."));
  assert.ok(!JSON.stringify(context.messages).includes("Be brief."));
});
