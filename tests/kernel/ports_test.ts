/**
 * Ported example modules of Amplifier run in the kernel: together, and each with built-in
 * modules.
 */
import * as calculatorTool from "../fixtures/amplifier/calculator_tool.ts";
import * as mockProvider from "../fixtures/amplifier/mock_provider.ts";
import * as simpleContext from "../fixtures/amplifier/simple_context.ts";
import * as simpleOrchestrator from "../fixtures/amplifier/simple_orchestrator.ts";
import * as timingHook from "../fixtures/amplifier/timing_hook.ts";
import * as quickStartTool from "../fixtures/amplifier/quick_start_tool.ts";
import * as completeTool from "../fixtures/amplifier/complete_tool.ts";
import * as placeholderTool from "../fixtures/amplifier/placeholder_tool.ts";
import * as schemaMethodTool from "../fixtures/amplifier/schema_method_tool.ts";
import * as contextSimple from "../../modules/context-simple/mod.ts";
import * as hooksApproval from "../../modules/hooks-approval/mod.ts";
import * as loopBasic from "../../modules/loop-basic/mod.ts";
import * as providerMock from "../../modules/provider-mock/mod.ts";
import * as toolCalculator from "../../modules/tool-calculator/mod.ts";
import { assertToolPairs } from "../../src/testing/assertions.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { JsonObject, Message, Module } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { calls, hook, kit, type TestModule, tool } from "../support/sessions.ts";

/**
 * Returns a ported module with a config and an id. Ports declare only the members of the coordinator that
 * they use.
 */
function port(module: { mount: unknown }, id: string, config: JsonObject = {}): TestModule {
  return { ...module as Module, id, config };
}

const orchestrator = (config: JsonObject = {}) => port(simpleOrchestrator, "simple-orchestrator", config);
const context = port(simpleContext, "simple-context");
const provider = port(mockProvider, "mock-provider", { api_key: "k", response: "It is 4." });
const calculator = port(calculatorTool, "calculator-tool");
const timing = port(timingHook, "timing-hook", { debug: true });

const answers = (messages: readonly Message[]) =>
  messages.filter((message) => message.role === "tool").map((message) => message.content);

const TEXT_BLOCK = ["content_block:start", "content_block:delta", "content_block:end"];

/**
 * Entries of Amplifier's example loop in a turn with one call: it emits no execution:start, prompt:submit or
 * execution:end.
 */
const EXAMPLE_CALL = [
  ...["execution:start", "prompt:submit", "context:message"],
  ...["provider:request", "content_block:start", "content_block:end", "provider:response", "context:message"],
  ...["tool:pre", "tool:post"],
  ...["user:notification", "context:message"], // what the hook of the example asks for
  ...["provider:request", ...TEXT_BLOCK, "provider:response", "context:message"],
  ...["prompt:complete", "execution:end", "orchestrator:complete"],
];

Deno.test("Amplifier's five example modules run together", async () => {
  const { session, run, turn, data, messages, warnings } = kit({
    orchestrator: orchestrator(),
    context,
    providers: [provider],
    tools: [calculator],
    hooks: [timing],
  });
  const outcome = await run("What is 2 + 2?");
  await session.cleanup(outcome.status);
  assertEquals([outcome.status, outcome.stop_reason, outcome.output_text], [
    "completed",
    "end_turn",
    "It is 4.",
  ]);
  assertEquals(turn(), [
    ...["execution:start", "prompt:submit", "context:message"],
    ...["provider:request", ...TEXT_BLOCK, "provider:response"],
    ...["context:message", "prompt:complete", "execution:end", "orchestrator:complete"],
  ]);
  assertEquals(messages(), [
    { role: "user", content: "What is 2 + 2?" },
    { role: "assistant", content: [{ type: "text", text: "It is 4." }] },
  ]);
  const [response] = data("provider:response");
  assertEquals([response?.provider, response?.iteration, response?.tool_calls], ["mock", 1, false]);
  assertEquals(response?.usage, { input_tokens: 10, output_tokens: 5, total_tokens: 15, cost_usd: null });
  assertEquals(data("execution:end"), [{ response: "It is 4.", status: "completed" }]);
  assertEquals(data("orchestrator:complete"), [{ orchestrator: "simple", turn_count: 1, status: "success" }]);
  assertEquals(data("session:cleanup"), [{ ran: 2, failed: [] }]);
  assertEquals(warnings, []);
});

Deno.test("Amplifier's example provider without its key is skipped, and the session fails without a provider", async () => {
  const { session, data } = kit({ providers: [port(mockProvider, "mock-provider"), ["ours"]] });
  await session.initialize();
  assertEquals(data("module:skipped")[0]?.reason, "not_configured");
});

Deno.test("Amplifier's example loop with calls: hooks see input and id, and each answer and result is emitted once", async () => {
  const seen: JsonObject[] = [];
  const { run, turn, data, messages } = kit({
    orchestrator: orchestrator(),
    context,
    providers: [[calls(["calculator", { expression: "6*7" }]), "42"]],
    tools: [calculator],
    hooks: [timing, hook("tool:pre", (_event, payload) => void seen.push(payload))],
  });
  assertEquals((await run()).status, "completed");
  assertEquals(turn(), EXAMPLE_CALL);
  assertEquals(
    seen.map(({ tool_name, tool_call_id, tool_input, iteration }) => ({
      tool_name,
      tool_call_id,
      tool_input,
      iteration,
    })),
    [
      { tool_name: "calculator", tool_call_id: "c1", tool_input: { expression: "6*7" }, iteration: 1 },
    ],
  );
  assertEquals(data("tool:post"), [{
    tool_name: "calculator",
    tool_call_id: "c1",
    tool_input: { expression: "6*7" },
    result: { success: true, output: "42", error: null },
  }]);
  assertEquals(data("provider:response").map((entry) => entry.tool_calls), [true, false]);
  assertEquals(data("orchestrator:complete").length, 1);
  assertToolPairs(messages());
});

Deno.test("a denied tool does not run although Amplifier's example loop ignores the denial", async () => {
  let ran = 0;
  const { run, turn, data, messages, of } = kit({
    orchestrator: orchestrator(),
    providers: [[calls(["t", { n: 1 }], ["t", { n: 2 }], ["t", { n: 1 }]), "done"]],
    tools: [tool("t", () => ++ran)],
    hooks: [
      hook(
        "tool:pre",
        (_event, payload) =>
          payload.tool_call_id === "c1" ? { action: "deny", reason: "not this one" } : null,
      ),
    ],
  });
  assertEquals((await run()).status, "completed");
  assertEquals(ran, 2);
  assertEquals(answers(messages()), ["Denied by hook: not this one", "1", "2"]);
  assertEquals(of("tool:pre").map((pre) => [pre.data.tool_call_id, pre.verdict?.action]), [
    ["c1", "deny"],
    ["c2", undefined],
    ["c3", undefined],
  ]);
  assertEquals(data("tool:post").map((post) => post.tool_call_id), ["c2", "c3"]);
  assertEquals(turn().filter((event) => event === "tool:error"), []);
  assertToolPairs(messages());
});

Deno.test("a person is asked, and the answer applies, although Amplifier's example loop ignores ask_user", async () => {
  for (const answer of ["allow", "deny"]) {
    const { run, data, turn, asked } = kit({
      orchestrator: orchestrator(),
      providers: [[calls(["calculator", { expression: "1+1" }]), "done"]],
      tools: [calculator],
      hooks: [port(hooksApproval, "hooks-approval", { rules: [{ tool: "calculator", action: "ask" }] })],
      answers: [answer],
    });
    assertEquals((await run()).status, "completed");
    assertEquals(asked.map((request) => [request.tool_name, request.tool_call_id, request.tool_input]), [
      ["calculator", "c1", { expression: "1+1" }],
    ]);
    const denied = answer === "deny";
    assertEquals(data("approval:denied").length, denied ? 1 : 0);
    assertEquals(data("tool:post").length, denied ? 0 : 1);
    assertEquals(turn().filter((event) => event === "tool:pre").length, 1);
  }
});

Deno.test("no model is called for a denied prompt or request although Amplifier's example loop ignores the denial", async () => {
  for (const event of ["prompt:submit", "provider:request"]) {
    const mock = new MockProvider();
    const { run, data } = kit({
      orchestrator: orchestrator(),
      providers: [mock],
      hooks: [hook(event, () => ({ action: "deny", reason: "no" }))],
    });
    const outcome = await run();
    assertEquals([outcome.status, outcome.error, mock.call_count], ["denied", {
      code: "denied",
      message: "no",
    }, 0]);
    assertEquals(data("orchestrator:complete").map((entry) => entry.status), ["incomplete"]);
    assertEquals(data("execution:end").length, 1);
  }
});

Deno.test("a limit stops Amplifier's example loop and leaves a valid history", async () => {
  const cases = [
    [{ max_tool_calls: 1 }, "limit:max_tool_calls"],
    [{ max_iterations: 1 }, "limit:max_iterations"],
    [{ max_total_tokens: 200 }, "limit:max_total_tokens"],
  ] as const;
  for (const [limits, stop_reason] of cases) {
    const { run, data, messages, turn } = kit({
      orchestrator: orchestrator(),
      limits,
      providers: [[calls(["t", {}, "a"], ["t", {}, "b"]), "never"]],
      tools: [tool("t")],
    });
    const outcome = await run();
    assertEquals([outcome.status, outcome.stop_reason], ["incomplete", stop_reason]);
    assertEquals(data("provider:response").length, stop_reason === "limit:max_total_tokens" ? 0 : 1);
    assertEquals(data("orchestrator:complete").map((entry) => entry.status), ["incomplete"]);
    assertEquals(turn().slice(-2), ["execution:end", "orchestrator:complete"]);
    assertToolPairs(messages());
  }
});

Deno.test("the own limit of Amplifier's example loop ends the turn as incomplete", async () => {
  const { run, data } = kit({
    orchestrator: orchestrator({ max_iterations: 2 }),
    providers: [[calls(["t"])]],
    tools: [tool("t")],
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.stop_reason, outcome.output_text], [
    "incomplete",
    "limit:max_iterations",
    "Max iterations reached",
  ]);
  assertEquals(data("orchestrator:complete"), [{
    orchestrator: "simple",
    turn_count: 2,
    status: "incomplete",
  }]);
});

Deno.test("calls of unknown tools, which Amplifier's example loop drops, get results before the next request and at the end", async () => {
  const mock = new MockProvider({ responses: [calls(["gone"], ["t"]), calls(["gone"]), "done"] });
  const { run, messages } = kit({
    orchestrator: orchestrator(),
    context,
    providers: [mock],
    tools: [tool("t")],
  });
  assertEquals((await run()).status, "completed");
  assertToolPairs(messages(), { allow_pending: false });
  assertEquals(messages().map((message) => message.role), [
    ...["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"],
  ]);
  const limited = kit({
    orchestrator: orchestrator({ max_iterations: 1 }),
    providers: [[calls(["gone"])]],
  });
  await limited.run();
  assertEquals(answers(limited.messages()), ["Error: Tool 'gone' was not executed"]);
});

Deno.test("a tool that throws ends Amplifier's example loop; the error is emitted and the call gets a result", async () => {
  const { run, data, messages, turn } = kit({
    orchestrator: orchestrator(),
    providers: [[calls(["t"], ["t"]), "never"]],
    tools: [tool("t", () => Promise.reject(new RangeError("too far")))],
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.error], ["failed", { code: "internal", message: "too far" }]);
  assertEquals(data("tool:error").map(({ tool_call_id, error }) => [tool_call_id, error]), [
    ["c1", { type: "RangeError", msg: "too far" }],
  ]);
  assertEquals(answers(messages()), [
    "Error executing tool: too far",
    "Error: Tool 't' was not executed",
  ]);
  assertEquals(turn().slice(-2), ["execution:end", "orchestrator:complete"]);
  assertEquals(data("execution:end"), [{ response: "", status: "error" }]);
  assertToolPairs(messages());
});

Deno.test("a provider that fails ends Amplifier's example loop", async () => {
  const { run, data, turn } = kit({
    orchestrator: orchestrator(),
    providers: [[{ error: { type: "AuthenticationError", message: "bad key" } }]],
  });
  const outcome = await run();
  assertEquals(outcome.error, { code: "provider_auth", message: "bad key" });
  assertEquals(data("orchestrator:complete").map((entry) => entry.status), ["error"]);
  assertEquals(turn().slice(-2), ["execution:end", "orchestrator:complete"]);
});

Deno.test("a graceful cancel ends Amplifier's example loop after the tool, an immediate cancel at once", async () => {
  for (const mode of ["graceful", "immediate"] as const) {
    const { run, session, data, messages } = kit({
      orchestrator: orchestrator(),
      providers: [[calls(["t"]), "never"]],
      tools: [tool("t", async () => {
        await session.cancel(mode);
        return "finished";
      })],
    });
    const outcome = await run();
    assertEquals(outcome.status, "cancelled");
    assertEquals([data("cancel:requested").length, data("cancel:completed").length], [1, 1]);
    if (mode === "graceful") assertEquals(answers(messages()), ["finished"]);
    else assertMatch(String(answers(messages())[0]), /"cancelled":true/);
    assertToolPairs(messages());
  }
});

Deno.test("Amplifier's example loop runs with our context, provider and tools", async () => {
  const { run, messages } = kit({
    orchestrator: orchestrator(),
    context: port(contextSimple, "context-simple"),
    providers: [port(providerMock, "provider-mock", {
      responses: [{ tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }] }, "It is 42."],
    })],
    tools: [port(toolCalculator, "tool-calculator")],
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.output_text], ["completed", "It is 42."]);
  assertEquals(answers(messages()), ["42"]);
  assertToolPairs(messages());
});

Deno.test("Amplifier's example context, provider, tool and hook run with our loops", async () => {
  for (const loop of [port(loopBasic, "loop-basic"), undefined]) {
    const { run, data, messages, session } = kit({
      ...(loop ? { orchestrator: loop } : {}),
      context,
      providers: [port(mockProvider, "mock-provider", { api_key: "k", response: "hello" })],
      tools: [calculator],
      hooks: [timing],
    });
    const outcome = await run();
    assertEquals([outcome.status, outcome.output_text], ["completed", "hello"]);
    assertEquals(data("content_block:delta").map((delta) => delta.delta), ["hello"]);
    assertEquals(messages().length, 2);
    assertEquals(session.mounts.tools.names, ["calculator"]);
  }
});

Deno.test("Amplifier's example timing hook runs in our loop, with its message for the user", async () => {
  const { run, data } = kit({
    providers: [[calls(["calculator", { expression: "1/0" }]), "done"]],
    tools: [calculator],
    hooks: [timing],
  });
  await run();
  assertEquals(data("user:notification").map(({ level, source }) => [level, source]), [
    ["info", "hook:on_tool_post"],
  ]);
  assertMatch(String(data("user:notification")[0]?.message), /^Tool calculator took \d+\.\d\ds$/);
});

Deno.test("Amplifier's example calculator returns its error as a result", async () => {
  const { run, data } = kit({
    providers: [[calls(["calculator", { expression: "1/0" }]), "done"]],
    tools: [calculator],
  });
  await run();
  assertEquals(data("tool:post")[0]?.result, {
    success: false,
    output: "division by zero",
    error: { message: "division by zero", type: "RangeError" },
  });
});

Deno.test("Amplifier's example tools run under their own names", async () => {
  const { run, session, messages, warnings, coordinator } = kit({
    providers: [[calls(["myname"], ["my_tool", { param: "x" }], ["my_tool"]), "done"]],
    tools: [port(quickStartTool, "tool-myname"), port(completeTool, "tool-my-tool")],
  });
  await run();
  assertEquals(session.mounts.tools.names, ["myname", "my_tool"]);
  assertEquals(answers(messages()).slice(0, 2), ["Hello!", "worked on x"]);
  assertMatch(String(answers(messages())[2]), /^Error: Invalid arguments for tool 'my_tool'/);
  assertEquals(warnings, []);
  const third = kit({
    providers: [[calls(["my_tool", { required_param: "y" }]), "done"]],
    tools: [port(schemaMethodTool, "tool-my-tool")],
  });
  await third.run();
  assertEquals(third.session.mounts.tools.names, ["my-tool"]);
  assertEquals(answers(third.messages()), ["worked on y"]);
  assertEquals(await third.coordinator().collectContributions("observability.events"), [
    ["my-tool:started", "my-tool:completed", "my-tool:error"],
  ]);
  assert(coordinator().tools.my_tool);
});

Deno.test("Amplifier's placeholder tool returns that it is not implemented", async () => {
  const { run, data, messages } = kit({
    providers: [[calls(["my_tool", { operation: "x" }]), "done"]],
    tools: [port(placeholderTool, "tool-my-tool")],
  });
  await run();
  assertEquals(data("module:skipped"), []);
  assertMatch(String(answers(messages())[0]), /^Tool not yet implemented/);
});
