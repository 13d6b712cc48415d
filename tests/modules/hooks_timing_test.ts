import { assertEquals, assertRejects } from "../assert.ts";
import { fakeCoordinator } from "../support/coordinator.ts";
import { mount } from "../../modules/hooks-timing/mod.ts";

async function mounted(config: Record<string, unknown> = { debug: true }) {
  const fake = fakeCoordinator();
  await mount(fake.coordinator, config);
  const measured = () => fake.emitted("hooks-timing:measured");
  return { ...fake, measured };
}

Deno.test("hooks-timing notifies the user of a tool's duration when debug is on", async () => {
  const { emit, clock } = await mounted();
  await emit("tool:pre", { tool_name: "calculator", tool_call_id: "call_1" });
  await clock.advance(123);
  const emission = await emit("tool:post", { tool_name: "calculator", tool_call_id: "call_1" });
  assertEquals(emission.user_message, "Tool calculator took 0.12s");
  assertEquals([emission.action, emission.user_message_level], ["continue", "info"]);
});

Deno.test("hooks-timing measures parallel calls of one tool separately when they finish in another order", async () => {
  const { emit, clock, measured } = await mounted();
  await emit("tool:pre", { tool_name: "web", tool_call_id: "a" });
  await clock.advance(100);
  await emit("tool:pre", { tool_name: "web", tool_call_id: "b" });
  await clock.advance(50);
  await emit("tool:post", { tool_name: "web", tool_call_id: "b" });
  await clock.advance(1_000);
  await emit("tool:error", { tool_name: "web", tool_call_id: "a" });
  assertEquals(measured(), [
    { kind: "tool", name: "web", tool_call_id: "b", duration_ms: 50 },
    { kind: "tool", name: "web", tool_call_id: "a", duration_ms: 1_150 },
  ]);
});

Deno.test("hooks-timing uses the tool's name when the event has no call id", async () => {
  const { emit, clock, measured } = await mounted();
  await emit("tool:pre", { tool_name: "calculator" });
  await clock.advance(5);
  await emit("tool:post", { tool_name: "calculator" });
  assertEquals(measured(), [{ kind: "tool", name: "calculator", duration_ms: 5 }]);
});

Deno.test("hooks-timing does not count the time that a person needs to approve a call", async () => {
  const { emit, clock, measured } = await mounted();
  await emit("tool:pre", { tool_name: "bash", tool_call_id: "a" });
  await clock.advance(60_000);
  await emit("approval:granted", { tool_name: "bash", tool_call_id: "a" });
  await clock.advance(20);
  await emit("tool:post", { tool_name: "bash", tool_call_id: "a" });
  assertEquals(measured().map((data) => data.duration_ms), [20]);
});

Deno.test("hooks-timing measures successful and failed provider calls", async () => {
  const { emit, clock, measured } = await mounted();
  await emit("provider:request", { provider: "mock" });
  await clock.advance(1_500);
  const emission = await emit("provider:response", { provider: "mock" });
  assertEquals(emission.user_message, "Provider mock took 1.50s");
  await emit("provider:request", { provider: "mock" });
  await clock.advance(7);
  await emit("provider:error", { provider: "mock" });
  assertEquals(measured().map((data) => data.duration_ms), [1_500, 7]);
});

Deno.test("hooks-timing measures without notifying the user when debug is off", async () => {
  const { emit, measured } = await mounted({});
  await emit("tool:pre", { tool_name: "calculator", tool_call_id: "a" });
  const emission = await emit("tool:post", { tool_name: "calculator", tool_call_id: "a" });
  assertEquals([emission.user_message, emission.action, measured().length], [null, "continue", 1]);
});

Deno.test("hooks-timing measures nothing when a call was not started, was denied, or the turn has ended", async () => {
  const { emit, measured } = await mounted();
  await emit("tool:post", { result: {} });
  await emit("tool:pre", { tool_name: "bash", tool_call_id: "a" });
  await emit("approval:denied", { tool_name: "bash", tool_call_id: "a" });
  await emit("tool:post", { tool_name: "bash", tool_call_id: "a" });
  await emit("tool:pre", { tool_name: "bash", tool_call_id: "b" });
  await emit("orchestrator:complete");
  await emit("tool:post", { tool_name: "bash", tool_call_id: "b" });
  assertEquals(measured(), []);
});

Deno.test("hooks-timing declares its event and never denies", async () => {
  const { coordinator, handlers } = await mounted();
  assertEquals(await coordinator.collectContributions("observability.events"), [["hooks-timing:measured"]]);
  assertEquals(new Set(handlers.map((each) => each.fail_closed)), new Set([false]));
});

Deno.test("mount() refuses when debug is not a boolean", async () => {
  const error = await assertRejects(() => mount(fakeCoordinator().coordinator, { debug: "yes" }));
  assertEquals((error as Error & { code: string }).code, "module_invalid");
  assertEquals(
    error.message,
    "Cannot read config.debug: must be true or false or null: received text",
  );
});
