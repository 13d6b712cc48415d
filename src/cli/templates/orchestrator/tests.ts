import assert from "node:assert/strict";
import { MockProvider, TestCoordinator, testOrchestrator, TestSession } from "preamp/testing";
import * as module from "./mod.ts";

testOrchestrator("__ID__", () => module);

Deno.test("mount() mounts the loop", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, {});
  assert.deepEqual(coordinator.mount_history.map(({ mount_point }) => mount_point), ["orchestrator"]);
});

Deno.test("each request contains the rule, the history does not", async () => {
  const provider = new MockProvider(["Yes."]);
  const orchestrator = { ...module, config: { rule: "Be brief." } };
  const session = new TestSession({ orchestrator, providers: [provider] });
  const { output_text } = await session.run("Is it?");
  assert.equal(output_text, "Yes.");
  assert.ok(JSON.stringify(provider.requests[0]?.messages).includes("Be brief."));
  assert.ok(!JSON.stringify(session.messages).includes("Be brief."));
});
