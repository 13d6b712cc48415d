import { PreampError } from "../../src/sdk/errors.ts";
import type { ApprovalOption, HookResult } from "../../src/sdk/hook_result.ts";
import type { Emission } from "../../src/sdk/hooks.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import {
  createTestCoordinator,
  MockCoordinator,
  TestCoordinator,
  type TestCoordinatorOptions,
} from "../../src/testing/coordinator.ts";
import {
  FakeApproval,
  MockContextManager,
  MockTool,
  type ScriptedAnswer,
  ScriptedOrchestrator,
} from "../../src/testing/mocks.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import type { ToolCall, ToolResult } from "../../src/sdk/tools.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";

Deno.test("TestCoordinator contains what a calculator module mounts", async () => {
  const coordinator = new TestCoordinator();
  await coordinator.mount("tools", new MockTool("calculator", "4"), { name: "calculator" });
  assertEquals("calculator" in coordinator.tools, true);
  assertEquals("toString" in coordinator.tools, false);
  assertEquals(coordinator.tools.calculator?.name, "calculator");
  assertEquals(coordinator.session_id, "test-session");
  assert(MockCoordinator === TestCoordinator);
});

Deno.test("mount() resolves aliases and records each mount", async () => {
  const coordinator = new TestCoordinator();
  const [loop, context, tool] = [new ScriptedOrchestrator(), new MockContextManager(), new MockTool("a")];
  await coordinator.mount("session", loop, { name: "orchestrator" });
  await coordinator.mount("contexts", context);
  await coordinator.mount("tools", tool, "my-tool");
  assert(coordinator.orchestrator === loop && coordinator.get("orchestrator") === loop);
  assert(coordinator.context === context && coordinator.get("session", "context") === context);
  assert(coordinator.get("tools", "my-tool") === tool);
  assertEquals(coordinator.get("tools", "constructor"), null);
  assertEquals(coordinator.mount_history, [
    { mount_point: "orchestrator", module: loop, name: null },
    { mount_point: "context", module: context, name: null },
    { mount_point: "tools", module: tool, name: "my-tool" },
  ]);
});

Deno.test("mount() acts when it is called, awaited or not", () => {
  const coordinator = new TestCoordinator();
  void coordinator.mount("tools", new MockTool("a"));
  assertEquals(Object.keys(coordinator.tools), ["a"]);
});

Deno.test("mount() refuses an unknown point and a missing name", async () => {
  const coordinator = new TestCoordinator();
  for (const point of ["nonsense", "module-source-resolver"]) {
    await assertRejects(() => coordinator.mount(point, {}), TypeError, "Unknown mount point");
  }
  await assertRejects(() => coordinator.mount("session", {}, "tools"), TypeError, "Unknown mount point");
  await assertRejects(() => coordinator.mount("__proto__", {}), TypeError, "Unknown mount point");
  await assertRejects(() => coordinator.mount("tools", {}), TypeError, "Name required for tools");
  await assertRejects(() => coordinator.mount("tools", null as never), TypeError, "must be an object");
  await assertRejects(() => coordinator.mount("hooks", {}), TypeError, "hooks.register");
});

Deno.test("mount() at hooks registers a hook that names its events", async () => {
  const coordinator = new TestCoordinator();
  const handler = () => ({ action: "deny" as const, reason: "no" });
  await coordinator.mount("hooks", { events: ["tool:pre"], handler, priority: 3, name: "guard" });
  const emission = await coordinator.hooks.emit("tool:pre", {});
  assertEquals([emission.action, emission.hook_name], ["deny", "guard"]);
});

Deno.test("unmount() takes away by name, absent is fine", async () => {
  const coordinator = createTestCoordinator();
  await coordinator.unmount("tools", "echo");
  await coordinator.unmount("tools", "nowhere");
  await coordinator.unmount("context");
  assertEquals([Object.keys(coordinator.tools), coordinator.context], [["fail"], null]);
  await assertRejects(() => coordinator.unmount("tools"), TypeError, "Name required to unmount from tools");
  assertEquals(coordinator.unmount_history, [
    { mount_point: "tools", name: "echo" },
    { mount_point: "tools", name: "nowhere" },
    { mount_point: "context", name: null },
  ]);
});

Deno.test("createTestCoordinator() has echo, fail and a context", async () => {
  const { tools, context } = createTestCoordinator();
  assertEquals((await tools.echo!.execute({ a: 1 }) as ToolResult).output, { a: 1 });
  assertEquals((await tools.fail!.execute({}) as ToolResult).success, false);
  assertEquals(await context?.getMessages(), []);
});

Deno.test("cleanup() runs last registered first, all of them, once", async () => {
  const coordinator = new TestCoordinator();
  const ran: string[] = [];
  coordinator.registerCleanup(() => ran.push("a"));
  coordinator.registerCleanup(() => {
    throw new Error("bad");
  });
  coordinator.registerCleanup(() => Promise.resolve().then(() => ran.push("c")));
  coordinator.registerCleanup("not a function" as never);
  const { ran: count, failed } = await coordinator.cleanup();
  assertEquals([count, failed.map(String), ran], [3, ["Error: bad"], ["c", "a"]]);
  assertEquals(await coordinator.cleanup(), { ran: 0, failed: [] });
});

Deno.test("collectContributions() resolves to the successful values in order", async () => {
  const coordinator = new TestCoordinator();
  coordinator.registerContributor("c", "one", () => 1);
  coordinator.registerContributor("c", "bad", () => {
    throw new Error("bad");
  });
  coordinator.registerContributor("other", "x", () => "no");
  coordinator.registerContributor("c", "null", () => null);
  coordinator.registerContributor("c", "later", () => Promise.resolve(["a"]));
  assertEquals(await coordinator.collectContributions("c"), [1, ["a"]]);
  coordinator.requestCancel(true);
  assertEquals(await coordinator.collectContributions("c"), []);
});

Deno.test("callTool() says that only a TestSession runs turns", async () => {
  const call = { id: "c1", name: "echo", arguments: {} } as ToolCall;
  await assertRejects(
    () => createTestCoordinator().callTool(call),
    PreampError,
    "run the loop in a TestSession",
  );
});

Deno.test("capabilities overwrite silently and are null when missing", () => {
  const coordinator = new TestCoordinator();
  assertEquals(coordinator.getCapability("x"), null);
  coordinator.registerCapability("x", 1);
  coordinator.registerCapability("x", 2);
  assertEquals(coordinator.getCapability("x"), 2);
});

Deno.test("the coordinator answers in Amplifier's spelling too", async () => {
  const ported = new TestCoordinator() as unknown as {
    register_capability(name: string, value: unknown): void;
    get_capability(name: string): unknown;
    register_contributor(channel: string, name: string, callback: () => unknown): void;
    collect_contributions(channel: string): Promise<unknown[]>;
    request_cancel(immediate: boolean): void;
    cancellation: { is_graceful: boolean };
    to_dict(): JsonObject;
    new_id(prefix: string): string;
  };
  ported.register_capability("x", 1);
  ported.register_contributor("c", "n", () => "v");
  ported.request_cancel(false);
  assertEquals([
    ported.get_capability("x"),
    await ported.collect_contributions("c"),
    ported.cancellation.is_graceful,
  ], [1, ["v"], true]);
  assertEquals([ported.new_id("req"), ported.new_id("req")], ["req_1", "req_2"]);
  assertEquals(Object.keys(ported.to_dict()), [
    "tools",
    "providers",
    "has_orchestrator",
    "has_context",
    "capabilities",
    "has_approval_provider",
    "has_display_service",
  ]);
});

Deno.test("events carry the session's ids to handlers", async () => {
  const coordinator = new TestCoordinator({ session_id: "s", parent_id: "p", clock: new FakeClock(0) });
  let seen: JsonObject = {};
  coordinator.hooks.register("e", (_, data) => void (seen = data));
  await coordinator.hooks.emit("e", {});
  assertEquals(seen, { session_id: "s", parent_id: "p", timestamp: "1970-01-01T00:00:00.000Z" });
});

/** Returns a coordinator with a context, one handler of `tool:pre`, and its processed emission. */
async function processed(result: HookResult, options: TestCoordinatorOptions = {}) {
  const coordinator = createTestCoordinator({ clock: new FakeClock(0), ...options });
  coordinator.hooks.register("tool:pre", () => result, 0, "guard");
  const emission = await coordinator.hooks.emit("tool:pre", {
    tool_name: "bash",
    tool_call_id: "call_1",
    tool_input: {},
  });
  const settle = () => coordinator.processHookResult(emission, "tool:pre");
  return { coordinator, settle, messages: () => coordinator.context!.getMessages() };
}

const injection = (text: string, fields: JsonObject = {}) =>
  ({ action: "inject_context", context_injection: text, ...fields }) as HookResult;

Deno.test("processHookResult() refuses an injection over the limit, in code points, and stores nothing", async () => {
  for (const text of ["x".repeat(11), "\u{1f600}".repeat(11)]) {
    const { coordinator, settle, messages } = await processed(injection(text), { injection_size_limit: 10 });
    await assertRejects(settle, PreampError, "Context injection exceeds 10 characters");
    assertEquals(await messages(), []);
    assertEquals(coordinator.hooks.getEvents("policy:violation"), [
      ["policy:violation", { kind: "injection_size", hook_name: "guard", limit: 10, actual: 11 }],
    ]);
  }
  const { settle, messages } = await processed(injection("\u{1f600}".repeat(10)), {
    injection_size_limit: 10,
  });
  await settle();
  assertEquals((await messages()).length, 1);
});

Deno.test("processHookResult() warns over the budget and injects, drops or refuses according to the mode", async () => {
  const text = "x".repeat(40);
  const warned = await processed(injection(text), { injection_budget_per_turn: 2 });
  await warned.settle();
  assertEquals((await warned.messages()).length, 1);
  assertEquals(warned.coordinator.hooks.getEvents("policy:violation")[0]?.[1], {
    kind: "injection_budget",
    hook_name: "guard",
    limit: 2,
    actual: 10,
  });
  const dropped = await processed(injection(text), {
    injection_budget_per_turn: 2,
    injection_budget_mode: "drop",
  });
  assertEquals((await dropped.settle()).injections, []);
  assertEquals(await dropped.messages(), []);
  const refused = await processed(injection(text), {
    injection_budget_per_turn: 2,
    injection_budget_mode: "error",
  });
  await assertRejects(refused.settle, PreampError, "exceeds 2 tokens");
});

Deno.test("resetTurn() resets the budget", async () => {
  const { coordinator, settle } = await processed(injection("x".repeat(8)), { injection_budget_per_turn: 2 });
  await settle();
  coordinator.resetTurn();
  await settle();
  assertEquals(coordinator.hooks.getEvents("policy:violation"), []);
  await settle();
  assertEquals(coordinator.hooks.getEvents("policy:violation").length, 1);
});

Deno.test("processHookResult() measures and stores the sanitised text", async () => {
  const { settle, messages } = await processed(
    injection("a\u0000b\u0000c", { context_injection_role: "user" }),
    { injection_size_limit: 3 },
  );
  await settle();
  assertEquals(await messages(), [{
    role: "user",
    content: "abc",
    metadata: {
      source: "hook",
      hook_name: "guard",
      event: "tool:pre",
      timestamp: "1970-01-01T00:00:00.000Z",
    },
  }]);
});

Deno.test("processHookResult() counts an ephemeral injection and does not store it", async () => {
  const { coordinator, settle, messages } = await processed(injection("x".repeat(12), { ephemeral: true }), {
    injection_budget_per_turn: 2,
  });
  const emission = await settle();
  assertEquals([await messages(), emission.injections.length], [[], 1]);
  assertEquals(coordinator.hooks.getEvents("policy:violation").length, 1);
});

Deno.test("processHookResult() shows user messages with level and source, also with a question", async () => {
  const result: HookResult = {
    action: "ask_user",
    user_message: "look",
    user_message_level: "warning",
    user_message_source: "x",
  };
  const { coordinator, settle } = await processed(result);
  await settle();
  assertEquals(coordinator.shown, [{ message: "look", level: "warning", source: "hook:x" }]);
});

Deno.test("processHookResult() injects nothing of a denied operation", async () => {
  const coordinator = createTestCoordinator();
  coordinator.hooks.register("tool:pre", () => injection("A"));
  coordinator.hooks.register("tool:pre", () => ({ action: "deny", reason: "no" }));
  const emission = await coordinator.processHookResult(await coordinator.hooks.emit("tool:pre"), "tool:pre");
  assertEquals([emission.action, emission.injections, await coordinator.context?.getMessages()], [
    "deny",
    [],
    [],
  ]);
});

Deno.test("processHookResult() warns above the documented numbers when nothing is limited, and is silent for null", async () => {
  for (
    const [limits, expected] of [[{}, 2], [
      { injection_size_limit: null, injection_budget_per_turn: null },
      0,
    ]] as const
  ) {
    const { coordinator, settle, messages } = await processed(injection("x".repeat(50_000)), limits);
    await settle();
    assertEquals([coordinator.hooks.getEvents("policy:violation").length, (await messages()).length], [
      expected,
      1,
    ]);
  }
});

Deno.test("processHookResult() reads a plain hook result as well", async () => {
  const coordinator = createTestCoordinator();
  await coordinator.processHookResult(
    { action: "inject_context", context_injection: "A" },
    "tool:pre",
    "mine",
  );
  const [message] = await coordinator.context!.getMessages();
  assertEquals([message?.content, message?.metadata?.hook_name], ["A", "mine"]);
  assertEquals((await coordinator.processHookResult({}, "tool:pre")).action, "continue");
});

const asks = (fields: JsonObject = {}) =>
  ({ action: "ask_user", approval_prompt: "Run it?", ...fields }) as HookResult;

async function answered(answers: ScriptedAnswer[] | null, fields: JsonObject = {}): Promise<Emission> {
  const { settle } = await processed(asks(fields), { approval: answers && new FakeApproval(answers) });
  return await settle();
}

Deno.test("processHookResult() denies without an approval system", async () => {
  const emission = await answered(null);
  assertEquals([emission.action, emission.reason, emission.approval], [
    "deny",
    "No approval system available",
    null,
  ]);
});

Deno.test("processHookResult() reads plain answers as upstream does", async () => {
  for (const answer of ["Allow", "ALLOW ALWAYS", "Allow once"]) {
    assertEquals((await answered([answer])).action, "continue");
  }
  for (const answer of ["Deny", "Yes"]) {
    const emission = await answered([answer]);
    assertEquals([emission.action, emission.reason], ["deny", "User denied: Run it?"]);
  }
});

Deno.test("processHookResult() reads an option's effect (§9.1)", async () => {
  const approval_options: ApprovalOption[] = [{ label: "Go", effect: "allow" }, {
    label: "Allow",
    effect: "deny",
  }];
  assertEquals((await answered(["Go"], { approval_options })).action, "continue");
  assertEquals((await answered(["Allow"], { approval_options })).action, "deny");
});

Deno.test("processHookResult() applies the default when the approval times out", async () => {
  assertEquals((await answered(["timeout"], { approval_default: "allow" })).action, "continue");
  const denied = await answered(["timeout"]);
  assertEquals([denied.action, denied.reason], ["deny", "Approval timeout - denied by default: Run it?"]);
});

Deno.test("processHookResult() ends an approval that never answers", async () => {
  const clock = new FakeClock();
  const { settle } = await processed(asks({ approval_timeout: 0.05 }), {
    clock,
    approval: new FakeApproval(["never"]),
  });
  const settled = settle();
  await clock.advance(50);
  assertMatch(String((await settled).reason), /^Approval timeout/);
});

Deno.test("processHookResult() cuts a long prompt in the reason", async () => {
  const { reason } = await answered(["Deny"], { approval_prompt: "p".repeat(500) });
  assertEquals(reason, `User denied: ${"p".repeat(200)}...`);
});

Deno.test("processHookResult() denies when the approval system fails, whatever the default", async () => {
  const emission = await answered([new PreampError("internal", "broken")], { approval_default: "allow" });
  assertEquals([emission.action, emission.reason], ["deny", "User denied: Run it?"]);
});

Deno.test("processHookResult() emits events before and after the answer of an approval", async () => {
  const approval = new FakeApproval(["Allow", "Deny"]);
  const { coordinator, settle } = await processed(asks(), { approval });
  await settle();
  await settle();
  assertEquals(coordinator.hooks.getEvents().map(([event]) => event), [
    "tool:pre",
    "approval:required",
    "approval:granted",
    "approval:required",
    "approval:denied",
  ]);
  assertEquals(coordinator.hooks.getEvents("approval:granted")[0]?.[1].tool_call_id, "call_1");
  assertEquals(approval.requests.map((request) => request.prompt), ["Run it?", "Run it?"]);
});
