import type { Module } from "preamp";
import { assertEventOrder, FakeApproval, FakeClock, MockTool, TestSession } from "preamp/testing";
import { assertEquals, assertRejects } from "../assert.ts";

const CALL = { tool_calls: [{ name: "clock" }] };
const asking = { events: ["tool:pre"], handler: () => ({ action: "ask_user" as const }) };

function sessionWithClock(options: ConstructorParameters<typeof TestSession>[0] = {}) {
  const tool = new MockTool("clock", "12:00");
  return { tool, session: new TestSession({ providers: [[CALL, "Noon."]], tools: [tool], ...options }) };
}

Deno.test("TestSession runs a turn with its tools, and has the events and messages of the log", async () => {
  const { session, tool } = sessionWithClock({ system: "Be brief." });
  const { status, output_text } = await session.run("What time is it?");
  assertEquals([status, output_text, tool.call_count], ["completed", "Noon.", 1]);
  assertEventOrder(session, ["session:start", "prompt:submit", "tool:pre", "tool:post", "execution:end"]);
  assertEquals(session.messages.map(({ role }) => role), [
    "system",
    "user",
    "assistant",
    "tool",
    "assistant",
  ]);
});

Deno.test("TestSession asks its approval system, which may be absent or late", async () => {
  const clock = new FakeClock();
  const outcomes: [FakeApproval | null, string][] = [
    [new FakeApproval(["Allow"]), "12:00"],
    [new FakeApproval(), "Denied by hook: User denied: Allow this operation?"],
    [null, "Denied by hook: No approval system available"],
    [
      new FakeApproval(["timeout"]),
      "Denied by hook: Approval timeout - denied by default: Allow this operation?",
    ],
    [
      new FakeApproval(["never"]),
      "Denied by hook: Approval timeout - denied by default: Allow this operation?",
    ],
    [new FakeApproval([new Error("broken")]), "Denied by hook: User denied: Allow this operation?"],
  ];
  for (const [approval, result] of outcomes) {
    const { session } = sessionWithClock({ hooks: [asking], approval, clock });
    const running = session.run();
    if (approval) { while (approval.requests.length === 0) await clock.advance(0); }
    await clock.advance(300_000);
    await running;
    assertEquals(session.messages.find(({ role }) => role === "tool")?.content, result);
  }
});

Deno.test("TestSession lets its approval system raise a limit that pauses", async () => {
  const { session, tool } = sessionWithClock({
    providers: [[CALL, CALL, "Noon."]],
    limits: { max_tool_calls: 1, on_limit: "pause" },
    approval: new FakeApproval(["allow"]),
  });
  assertEquals([(await session.run()).status, tool.call_count], ["completed", 2]);
});

Deno.test("TestSession cancels a turn", async () => {
  const session: TestSession = new TestSession({
    providers: [[CALL, "Never said."]],
    tools: [new MockTool({ name: "clock", execute: () => session.cancel().then(() => "12:00") })],
  });
  assertEquals((await session.run()).status, "cancelled");
});

Deno.test("TestSession mounts modules with their config and runs their cleanups", async () => {
  const seen: unknown[] = [];
  const module: Module = {
    mount(coordinator, config) {
      seen.push(config, coordinator.config, coordinator.permissions.net);
      return () => void seen.push("cleaned up");
    },
  };
  const hook = { ...module, config: { x: 1 } };
  const session = new TestSession({ hooks: [hook], config: { y: 2 }, permissions: { net: ["a.example"] } });
  await session.open();
  await session.run();
  await session.close();
  assertEquals(seen, [{ x: 1 }, { y: 2 }, ["a.example"], "cleaned up"]);
});

Deno.test("TestSession fails to open without a loop, and warns of a handler that fails", async () => {
  const nothing = new TestSession({ orchestrator: () => null });
  await assertRejects(() => nothing.open(), Error, "No orchestrator was mounted");
  const session = new TestSession({
    hooks: [{ events: ["execution:end"], handler: () => Promise.reject(new Error("no disk")) }],
  });
  assertEquals((await session.run()).status, "completed");
  assertEquals(session.warnings.filter((warning) => warning.includes("no disk")).length, 1);
});
