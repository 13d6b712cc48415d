/**
 * One suite over every coordinator that a module can be given: the test kit's, the session's, and a guest's
 * in a process. A module reports what it sees; the reports are the same.
 */
import { FakeApproval, MockContextManager } from "../../src/testing/mocks.ts";
import { TestCoordinator } from "../../src/testing/coordinator.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import type { Module } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { kit, listContext } from "../support/sessions.ts";
import { Lab } from "../support/sandbox.ts";

/**
 * A tool module; `onSessionReady` does all that it can do with a coordinator, and emits what it saw as
 * `suite:report`.
 */
const SUBJECT = `
const METHODS = ["mount", "unmount", "get", "newId", "registerCleanup", "registerCapability", "getCapability",
  "registerContributor", "collectContributions", "processHookResult", "sessionStatus", "requestCancel", "resetTurn", "toDict"];
const HOOK_METHODS = ["register", "on", "unregister", "emit", "emitAndCollect", "setDefaultFields", "listHandlers"];
const CONSTANTS = ["SESSION_START", "SESSION_END", "PROMPT_SUBMIT", "TOOL_PRE", "TOOL_POST", "CONTEXT_PRE_COMPACT",
  "ORCHESTRATOR_COMPLETE", "USER_NOTIFICATION"];
const snake = (name) => name.replace(/[A-Z]/g, (letter) => "_" + letter.toLowerCase());
const missing = (object, names) => names.flatMap((name) => [name, snake(name)]).filter((name) => typeof object[name] !== "function");
const tool = (name) => ({ name, description: "The " + name, input_schema: { type: "object", properties: {} }, execute: async () => "ok" });

async function thrown(run) {
  try {
    await run();
    return null;
  } catch (error) {
    return error.message;
  }
}

const brief = ({ action, reason, modified, hook_name, context_injection, injections, user_messages, approval }) =>
  ({ action, reason, modified, hook_name, context_injection, injections: injections.length, user_messages, asks: approval?.prompt ?? null });

export async function mount(coordinator) {
  await coordinator.mount("tools", tool("first"));
}

export async function onSessionReady(coordinator) {
  const { hooks } = coordinator;
  const report = {};
  report.missing = [...missing(coordinator, METHODS), ...missing(hooks, HOOK_METHODS)];
  report.constants = CONSTANTS.map((name) => hooks[name]);
  report.ids = [coordinator.parent_id, coordinator.injection_size_limit, coordinator.injection_budget_per_turn,
    coordinator.newId("x").startsWith("x_"), coordinator.newId("x") === coordinator.newId("x")];
  report.permissions = coordinator.permissions;
  report.limits = coordinator.limits;
  report.times = [typeof coordinator.clock.now(), typeof coordinator.clock.monotonic()];
  report.cancellation = [coordinator.cancellation.state, coordinator.cancellation.is_cancelled];

  report.points = [];
  await coordinator.mount("tool", tool("second"), "other");
  await coordinator.mount("tools", tool("third"), { name: "named" });
  report.points.push(["first" in coordinator.tools, Object.keys(coordinator.tools)]);
  await coordinator.unmount("tools", "other");
  await coordinator.unmount("tools", "never");
  report.points.push([Object.keys(coordinator.tools), Object.keys(coordinator.get("tools"))]);
  report.points.push([coordinator.get("tools", "first").name, coordinator.get("tools", "none"), coordinator.get("hooks") === hooks]);
  report.points.push([await coordinator.get("tools", "named").name, coordinator.context !== null, coordinator.get("contexts") !== null]);
  report.errors = [
    await thrown(() => coordinator.mount("nowhere", tool("t"))),
    (await thrown(() => coordinator.mount("tools", { description: "no name", execute() {} }))).slice(0, 23),
    await thrown(() => coordinator.mount("tools", 5)),
    await thrown(() => coordinator.mount("hooks", { events: "no" })),
    await thrown(() => coordinator.unmount("tools")),
    await thrown(async () => coordinator.get("nowhere")),
    await thrown(async () => hooks.register("", () => null)),
    await thrown(async () => hooks.register("x", 5)),
    await thrown(() => hooks.emit(5, {})),
    await thrown(() => hooks.emit(undefined)),
    await thrown(() => hooks.emitAndCollect("", {})),
  ];

  report.handlers = [];
  const dispose = hooks.register("suite:a", () => ({ action: "modify", data: { n: 2 } }), 5, "five");
  hooks.register("suite:a", (_event, data) => ({ action: "inject_context", context_injection: "n is " + data.n }), { priority: 7, name: "seven" });
  hooks.on("suite:b")(function b() { return { action: "deny", reason: "no b", user_message: "Not b" }; });
  hooks.on("suite:c", () => ({ action: "ask_user", approval_prompt: "c?" }), { name: "asks" });
  hooks.register("suite:*", () => ({ action: "deny" }), { name: "observer" });
  hooks.register("tool:pre", () => { throw new Error("out of order"); }, { name: "closed" });
  hooks.register("suite:d", () => { throw new Error("out of order"); }, { name: "open" });
  hooks.register("approval:granted", () => ({ action: "deny", reason: "hidden" }), { name: "dresses" });
  await coordinator.mount("hooks", { name: "object", events: ["suite:e", "suite:f"], priority: 1, handler: (event) => ({ data: { event } }) });
  await coordinator.hooks.emit("suite:listed", {}); // what follows sees the handlers
  const listed = (event) => hooks.list_handlers(event)[event];
  report.handlers.push(["suite:a", "suite:b", "suite:e", "nothing"].map(listed));
  const a = await hooks.emit("suite:a", { n: 1 });
  report.handlers.push([brief(a), a.data.n]);
  dispose();
  dispose();
  const again = await hooks.emit("suite:a", { n: 1 });
  report.handlers.push([brief(again), again.data.n]);
  report.handlers.push(brief(await hooks.emit("suite:b", {})));
  report.handlers.push(brief(await hooks.emit("suite:d")));
  report.handlers.push(brief(await hooks.emit("suite:unhandled", { x: 1 })));
  report.handlers.push(await hooks.emit_and_collect("suite:e", { x: 1 }));
  const asked = await hooks.emit("suite:c", { x: 1 });
  report.handlers.push(brief(asked));
  const settled = await coordinator.process_hook_result(asked, "suite:c", "asks");
  report.handlers.push([settled.action, settled.reason]);
  const injected = await coordinator.processHookResult(await hooks.emit("suite:a", { n: 3 }), "suite:a");
  report.handlers.push([injected.action, (await coordinator.context.getMessages()).map(({ role, content }) => [role, content])]);
  hooks.unregister("seven");
  report.handlers.push(brief(await hooks.emit("suite:a", { n: 1 })));

  hooks.register("suite:g", () => ({ action: "inject_context", unknown: 1, context_injections: [
    { content: "one", role: "user" }, { content: "two", ephemeral: true, unknown: 1 },
  ] }), { name: "lists" });
  const { context_injections, context_injection, ephemeral } = await hooks.emit("suite:g", {});
  report.injections = [context_injections, context_injection, ephemeral];
  report.requests = [];
  const ids = new Map();
  for (const event of ["llm:request", "provider:retry", "llm:response"]) {
    hooks.register(event, (_event, { n, request_id }) => {
      if (event === "llm:request") ids.set(n, request_id);
      report.requests.push([event, n, typeof request_id, request_id === ids.get(n)]);
    });
  }
  const call = async (n) => {
    await hooks.emit("llm:request", { n });
    await hooks.emit("provider:retry", { n });
    await hooks.emit("llm:response", { n });
  };
  await Promise.all([call(1), call(2)]);
  report.requests.sort();
  await hooks.emit("provider:retry", { n: 3 });

  coordinator.registerCapability("suite.value", { a: 1 });
  report.shared = [coordinator.getCapability("suite.value"), coordinator.get_capability("suite.none")];
  coordinator.registerContributor("suite.channel", "one", () => 1);
  coordinator.registerContributor("suite.channel", "none", () => null);
  coordinator.registerContributor("suite.channel", "broken", () => { throw new Error("no"); });
  coordinator.register_contributor("suite.channel", "two", async () => ["two"]);
  report.shared.push(await coordinator.collect_contributions("suite.channel"), await coordinator.collectContributions("suite.empty"));
  coordinator.session_state.suite = { seen: 1 };
  report.shared.push(coordinator.session_state.suite);
  coordinator.registerCleanup("no function");
  const { tools, capabilities, ...flags } = coordinator.toDict();
  report.dict = [tools, capabilities.includes("suite.value"), flags.has_context, flags.has_approval_provider, flags.has_display_service,
    Object.keys(flags).sort()];
  const status = await coordinator.session_status();
  report.status = [status.session_id === coordinator.session_id, status.status, status.tool_invocations, status.cost_usd,
    typeof status.to_dict];
  coordinator.requestCancel();
  report.cancelled = coordinator.cancellation.state;
  await hooks.emit("suite:report", { report });
}
`;

const LIMITS = {
  max_answer_bytes: 16_777_216,
  max_iterations: 50,
  max_tool_calls: 200,
  max_total_tokens: 1_000_000,
  max_cost_usd: "5",
  max_duration_s: 600,
};

/** What the subject reports when the test kit's coordinator is all there is. */
async function inTestKit(module: Module): Promise<unknown> {
  const coordinator = new TestCoordinator({ approval: new FakeApproval(["allow"]) });
  await coordinator.mount("context", new MockContextManager());
  await module.mount(coordinator, {});
  await module.onSessionReady?.(coordinator);
  return coordinator.hooks.getEvents("suite:report")[0]?.[1].report;
}

/** What it reports in a session. */
async function inSession(module: Module): Promise<unknown> {
  const made = kit({ context: listContext, tools: [module], answers: ["allow"] });
  await made.session.initialize();
  await made.session.cleanup("completed");
  return made.data("suite:report")[0]?.report;
}

const inline = async () => await import(`data:text/javascript,${encodeURIComponent(SUBJECT)}`) as Module;

Deno.test("the test kit's coordinator reports what the suite wants", async () => {
  const report = await inTestKit(await inline()) as JsonObject;
  assertEquals([report.missing, report.limits, report.cancelled], [[], LIMITS, "graceful"]);
  const more = { append_to_last_tool_result: false, hook_name: "lists", event: "suite:g" };
  assertEquals(report.injections, [
    [{ content: "one", role: "user", ephemeral: false, ...more }, {
      content: "two",
      role: "system",
      ephemeral: true,
      ...more,
    }],
    "one\n\ntwo",
    true,
  ]);
  const events = ["llm:request", "llm:response", "provider:retry"];
  assertEquals(report.requests, [
    ...events.flatMap((event) => [1, 2].map((n) => [event, n, "string", true])),
    ["provider:retry", 3, "undefined", true],
  ]);
});

Deno.test("a session's coordinator is the test kit's coordinator", async () => {
  assertEquals(await inSession(await inline()), await inTestKit(await inline()));
});

Deno.test(`a guest's coordinator is the test kit's coordinator`, async () => {
  await using lab = new Lab();
  assertEquals(await inSession(await lab.open(SUBJECT)), await inTestKit(await inline()));
});

/** Emits more events at once than the host serves before it reads on; its own handler answers each. */
const BURST = `
export async function mount({ hooks }) {
  hooks.register("suite:one", async (_event, { n }) => ({ action: "modify", data: { n: n + 1 } }));
  const emitted = await Promise.all(Array.from({ length: 100 }, (_, n) => hooks.emit("suite:one", { n })));
  await hooks.emit("suite:report", { report: emitted.reduce((sum, { data }) => sum + data.n, 0) });
}
`;

Deno.test(`a guest's handlers answer a hundred events that it emits at once`, async () => {
  await using lab = new Lab();
  const module = await lab.open(BURST, {
    type: "hook",
    limits: { call_timeout_s: 20, load_timeout_s: 20 },
  });
  assertEquals(await inTestKit(module), 5050);
});
