import { createLoop } from "../../src/sdk/loop/loop.ts";
import { LLMError } from "../../src/sdk/llm_errors.ts";
import { assertToolPairs } from "../../src/sdk/testing/assertions.ts";
import { ProviderInfo } from "../../src/sdk/providers.ts";
import { MockProvider } from "../../src/sdk/testing/mock_provider.ts";
import { type ToolCallContext, ToolResult } from "../../src/sdk/tools.ts";
import type { HookResult, JsonObject, Message, Orchestrator, Provider } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch, assertThrows } from "../assert.ts";
import { calls, hook, kit, type TestModule, tool, until } from "../support/sessions.ts";

const START = ["execution:start", "prompt:submit", "context:message"];
const TEXT = [
  "provider:request",
  "content_block:start",
  "content_block:delta",
  "content_block:end",
  "provider:response",
  "context:message",
];
const CALL = [
  "provider:request",
  "content_block:start",
  "content_block:end",
  "provider:response",
  "context:message",
];
const END = ["prompt:complete", "execution:end", "orchestrator:complete"];

const brief = (messages: readonly Message[]) =>
  messages.map((
    { role, content },
  ) => [
    role,
    typeof content === "string" ? content : content.map((block) => block.text ?? block.type).join(),
  ]);

Deno.test("prompt:complete counts code points and splits none of them", async () => {
  for (
    const [answer, preview] of [["é😀", "é😀"], ["😀".repeat(200), "😀".repeat(200)], [
      "😀".repeat(201),
      "😀".repeat(200),
    ]] as const
  ) {
    const { run, data } = kit({ providers: [[answer]] });
    await run("a question");
    assertEquals(data("prompt:complete"), [{ response_preview: preview, length: [...answer].length }]);
  }
});

Deno.test("a turn with a text has its events, messages and outcome", async () => {
  const { run, turn, messages, data } = kit({ providers: [["the answer"]] });
  const outcome = await run("a question");
  assertEquals(outcome, {
    status: "completed",
    stop_reason: "end_turn",
    output_text: "the answer",
    output: [{ type: "text", text: "the answer" }],
    error: null,
  });
  assertEquals(turn(), [...START, ...TEXT, ...END]);
  assertEquals(brief(messages()), [["user", "a question"], ["assistant", "the answer"]]);
  assertEquals(data("execution:start"), [{ prompt: "a question" }]);
  assertEquals(data("provider:request"), [{ provider: "mock", iteration: 1 }]);
  assertEquals(data("prompt:complete"), [{ response_preview: "the answer", length: 10 }]);
  assertEquals(data("execution:end"), [{ response: "the answer", status: "completed" }]);
  assertEquals(data("orchestrator:complete"), [
    { orchestrator: "loop-streaming", turn_count: 1, status: "success" },
  ]);
});

Deno.test("entries of a turn have turn_id and iteration, others do not", async () => {
  const { run, session, entries } = kit({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t")],
    system: "Be brief.",
  });
  await run();
  await session.cleanup("completed");
  const moments = entries.map((entry) => [entry.event, entry.turn_id, entry.iteration]);
  assertEquals(
    moments.filter(([event]) =>
      ["session:start", "prompt:submit", "provider:response", "orchestrator:complete", "session:end"]
        .includes(String(event))
    ),
    [
      ["session:start", undefined, undefined],
      ["prompt:submit", "turn_1", undefined],
      ["provider:response", "turn_1", 1],
      ["provider:response", "turn_1", 2],
      ["orchestrator:complete", "turn_1", 2],
      ["session:end", undefined, undefined],
    ],
  );
  assertEquals(entries.filter((entry) => entry.event === "context:message")[0], {
    event: "context:message",
    session_id: "ses_1",
    data: { index: 0, message: { role: "system", content: "Be brief.", metadata: { source: "plan" } } },
  });
});

Deno.test("two calls of one answer run in parallel, with results in call order", async () => {
  const running: string[] = [];
  const { run, clock, turn, data, messages } = kit({
    providers: [[calls(["slow"], ["fast"]), "done"]],
    tools: [["slow", 50], ["fast", 10]].map(([name, ms]) =>
      tool(String(name), async () => {
        running.push(`${name} starts`);
        await clock.after(Number(ms));
        running.push(`${name} ends`);
        return name;
      })
    ),
  });
  const done = run();
  await until(() => running.length === 2);
  await clock.advance(10);
  await clock.advance(40);
  await done;
  assertEquals(running, ["slow starts", "fast starts", "fast ends", "slow ends"]);
  assertEquals(
    turn(),
    [
      ...START,
      "provider:request",
      ...["content_block:start", "content_block:start", "content_block:end", "content_block:end"],
      "provider:response",
      "context:message",
      ...["tool:pre", "tool:pre", "tool:post", "tool:post", "context:message", "context:message"],
      ...TEXT,
      ...END,
    ].map((event) => event),
  );
  const groups = new Set(data("tool:pre").map((pre) => pre.parallel_group_id));
  assertEquals([...groups], ["grp_1"]);
  assertEquals(data("tool:post").map((post) => post.tool_name), ["fast", "slow"]);
  assertEquals(brief(messages()).slice(2, 4), [["tool", "slow"], ["tool", "fast"]]);
  assertToolPairs(messages());
});

Deno.test("max_parallel_tools limits the calls that run in parallel", async () => {
  let running = 0;
  let most = 0;
  const { run, clock } = kit({
    loop: { max_parallel_tools: 2 },
    providers: [[calls(["t"], ["t"], ["t"], ["t"], ["t"]), "done"]],
    tools: [tool("t", async () => {
      most = Math.max(most, ++running);
      await clock.after(10);
      running--;
    })],
  });
  const done = run();
  for (let round = 0; round < 3; round++) await clock.advance(10);
  assertEquals((await done).status, "completed");
  assertEquals(most, 2);
});

Deno.test("an unknown tool is an error that the model sees, and the turn continues", async () => {
  const { run, turn, data, messages } = kit({ providers: [[calls(["x", { a: 1 }]), "done"]] });
  assertEquals((await run()).status, "completed");
  assertEquals(turn(), [...START, ...CALL, "tool:pre", "tool:error", "context:message", ...TEXT, ...END]);
  assertEquals(data("tool:error"), [{
    tool_name: "x",
    tool_call_id: "c1",
    tool_input: { a: 1 },
    parallel_group_id: "grp_1",
    error: { type: "tool_not_found", msg: "Tool 'x' not found" },
  }]);
  assertEquals(brief(messages())[2], ["tool", "Error: Tool 'x' not found"]);
});

Deno.test("a tool that throws is an error that the model sees, with the type of the error", async () => {
  const thrown: [unknown, string, string][] = [
    [new RangeError("too far"), "RangeError", "too far"],
    [Object.assign(new Error("slow"), { code: "tool_timeout" }), "tool_timeout", "slow"],
    [Object.assign(new Error("no"), { name: "NotCapable" }), "tool_permission_denied", "no"],
    ["just text", "Error", "just text"],
    [null, "Error", "null"],
    [Object.create(null), "Error", "an error that cannot be read"],
    [
      {
        get message(): string {
          throw new Error("gotcha");
        },
        toString: 5,
      },
      "Error",
      "an error that cannot be read",
    ],
  ];
  for (const [error, type, msg] of thrown) {
    for (
      const execute of [() => Promise.reject(error), () => {
        throw error;
      }]
    ) {
      const { run, data, messages, turn } = kit({
        providers: [[calls(["t"]), "done"]],
        tools: [tool("t", execute)],
      });
      assertEquals((await run()).status, "completed");
      assertEquals(data("tool:error").map((one) => one.error), [{ type, msg }]);
      assertEquals(turn().filter((event) => event === "tool:post"), []);
      assertEquals(brief(messages())[2], ["tool", `Error executing tool: ${msg}`]);
    }
  }
});

Deno.test("tool:error contains the location in the module's files, whether the loop or the kernel emits it", async () => {
  const thrown = new RangeError("too far");
  const placeOf = (error: unknown) => error === thrown ? "https://m.example/lib.ts:5:9" : undefined;
  const throwing = tool("t", () => Promise.reject(thrown));
  const at = { type: "RangeError", msg: "too far", at: "https://m.example/lib.ts:5:9" };
  const script = { providers: [[calls(["t"]), "done"]], placeOf };
  const located = kit({ ...script, tools: [throwing] });
  await located.run();
  assertEquals(located.data("tool:error").map(({ error }) => error), [at]);
  const elsewhere = kit({ ...script, tools: [tool("t", () => Promise.reject(new RangeError("ours")))] });
  await elsewhere.run();
  assertEquals(elsewhere.data("tool:error").map(({ error }) => error), [{ type: "RangeError", msg: "ours" }]);
});

Deno.test("module:skipped contains the location in the module's files", async () => {
  const placeOf = () => "https://m.example/mod.ts:3:7";
  const { run, data } = kit({ placeOf, tools: [() => Promise.reject(new Error("no key"))] });
  await run();
  assertEquals(data("module:skipped").map(({ message }) => message), [
    "https://m.example/mod.ts:3:7: no key",
  ]);
});

Deno.test("a tool that returns a failure is a result", async () => {
  const { run, data, messages } = kit({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", () => ToolResult({ success: false, error: { message: "no such file" } }))],
  });
  await run();
  assertEquals(data("tool:error"), []);
  assertEquals(data("tool:post").map((post) => post.result), [
    { success: false, output: "no such file", error: { message: "no such file" } },
  ]);
  assertEquals(brief(messages())[2], ["tool", "no such file"]);
});

Deno.test("a denied call does not run, and the model gets the reason", async () => {
  let ran = 0;
  const { run, turn, of, messages } = kit({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", () => ran++)],
    hooks: [hook("tool:pre", () => ({ action: "deny", reason: "not here" }))],
  });
  assertEquals((await run()).status, "completed");
  assertEquals(ran, 0);
  assertEquals(turn(), [...START, ...CALL, "tool:pre", "context:message", ...TEXT, ...END]);
  assertEquals(of("tool:pre")[0]?.verdict, { action: "deny", hook_name: "test-hook", reason: "not here" });
  assertEquals(brief(messages())[2], ["tool", "Denied by hook: not here"]);
});

Deno.test("an input that a hook changed is logged, validated and run", async () => {
  const inputs: JsonObject[] = [];
  const { run, of, data } = kit({
    providers: [[calls(["t", { path: "/etc" }]), "done"]],
    tools: [tool("t", (input) => inputs.push(input), {
      input_schema: { type: "object", properties: { path: { const: "/tmp" } }, required: ["path"] },
    })],
    hooks: [
      hook(
        "tool:pre",
        (_event, data) => ({ action: "modify", data: { ...data, tool_input: { path: "/tmp" } } }),
      ),
    ],
  });
  await run();
  assertEquals(inputs, [{ path: "/tmp" }]);
  assertEquals(data("tool:pre")[0], {
    tool_name: "t",
    tool_call_id: "c1",
    tool_input: { path: "/tmp" },
    parallel_group_id: "grp_1",
  });
  assertEquals(of("tool:pre")[0]?.verdict, { action: "continue", hook_name: "test-hook", modified: true });
  assertEquals(data("tool:post")[0]?.tool_input, { path: "/tmp" });
});

Deno.test("a hook may change a result; without a change the model gets plain JSON", async () => {
  const changes: [JsonObject | null, string][] = [
    [null, '{"a":1}'],
    [{ result: "replaced" }, "replaced"],
    [{ result: { success: true, output: "other" } }, "other"],
    [{ result: { b: 2 } }, '{"b":2}'],
    [{ result: { success: false, error: { message: "hidden" } } }, "hidden"],
  ];
  for (const [change, text] of changes) {
    const { run, messages } = kit({
      providers: [[calls(["t"]), "done"]],
      tools: [tool("t", () => ({ a: 1 }))],
      hooks: [hook("tool:post", (_event, data) => ({ action: "modify", data: { ...data, ...change } }))],
    });
    await run();
    assertEquals(brief(messages())[2], ["tool", text]);
  }
});

Deno.test("an ephemeral injection at tool:post is in the next request only, never stored", async () => {
  const provider = new MockProvider({ responses: [calls(["t"]), calls(["t"], ["t"]), "done"] });
  let count = 0;
  const { run, messages } = kit({
    providers: [provider],
    tools: [tool("t")],
    hooks: [
      hook(
        "tool:post",
        () =>
          ++count === 1 ? { action: "inject_context", context_injection: "remember", ephemeral: true } : null,
      ),
    ],
  });
  await run();
  const texts = provider.requests.map((request) => brief(request.messages).map(([, text]) => text));
  assertEquals(texts.map((request) => request.filter((text) => text === "remember").length), [0, 1, 0]);
  assertEquals(texts[1]!.at(-1), "remember");
  assertEquals(brief(messages()).filter(([, text]) => text === "remember"), []);
});

Deno.test("an injection with append_to_last_tool_result joins the last tool result, in the request only", async () => {
  const provider = new MockProvider({ responses: [calls(["t"]), "done"] });
  const { run, messages } = kit({
    providers: [provider],
    tools: [tool("t", () => "result")],
    hooks: [hook("provider:request", () => ({
      action: "inject_context",
      context_injection: "note",
      ephemeral: true,
      append_to_last_tool_result: true,
    }))],
  });
  await run();
  assertEquals(brief(provider.requests[0]!.messages), [["user", "hello"], ["system", "note"]]);
  assertEquals(brief(provider.requests[1]!.messages).at(-1), ["tool", "result\n\nnote"]);
  assertEquals(brief(messages())[2], ["tool", "result"]);
});

Deno.test("injections of the tool phase are stored after all results", async () => {
  for (const event of ["tool:pre", "tool:post"]) {
    const { run, messages } = kit({
      providers: [[calls(["t"], ["t"]), "done"]],
      tools: [tool("t")],
      hooks: [hook(event, (_event, data) => ({
        action: "inject_context",
        context_injection: `about ${data.tool_call_id}`,
        context_injection_role: "user",
      }))],
    });
    await run();
    assertEquals(brief(messages()).map(([role, text]) => role === "user" ? text : role), [
      "hello",
      "assistant",
      "tool",
      "tool",
      "about c1",
      "about c2",
      "assistant",
    ]);
    assertToolPairs(messages());
  }
});

Deno.test("a denied prompt ends the turn before anything is stored", async () => {
  const provider = new MockProvider();
  const { run, turn, data, of, messages } = kit({
    providers: [provider],
    hooks: [hook("prompt:submit", () => ({ action: "deny", reason: "off topic" }))],
  });
  const outcome = await run();
  assertEquals(outcome, {
    status: "denied",
    stop_reason: "denied",
    output_text: "Operation denied: off topic",
    output: [{ type: "text", text: "Operation denied: off topic" }],
    error: { code: "denied", message: "off topic" },
  });
  assertEquals(turn(), ["execution:start", "prompt:submit", "execution:end", "orchestrator:complete"]);
  assertEquals(of("prompt:submit")[0]?.verdict, {
    action: "deny",
    hook_name: "test-hook",
    reason: "off topic",
  });
  assertEquals(data("execution:end"), [{ response: "Operation denied: off topic", status: "completed" }]);
  assertEquals(data("orchestrator:complete"), [
    { orchestrator: "loop-streaming", turn_count: 0, status: "incomplete" },
  ]);
  assertEquals([provider.call_count, messages()], [0, []]);
});

Deno.test("a denied request ends the turn without a call", async () => {
  const provider = new MockProvider({ responses: [calls(["t"]), "done"] });
  const { run, turn } = kit({
    providers: [provider],
    tools: [tool("t")],
    hooks: [
      hook(
        "provider:request",
        (_event, data) => data.iteration === 2 ? { action: "deny", reason: "enough" } : null,
      ),
    ],
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.output_text], ["denied", "Operation denied: enough"]);
  assertEquals(provider.call_count, 1);
  assertEquals(turn(), [
    ...START,
    ...CALL,
    ...[
      "tool:pre",
      "tool:post",
      "context:message",
      "provider:request",
      "execution:end",
      "orchestrator:complete",
    ],
  ]);
});

Deno.test("the provider of lowest priority answers; unset is 100, ties go to the first", async () => {
  const asked = async (priorities: (number | undefined)[], loop: JsonObject = {}) => {
    const providers = priorities.map((priority, index) =>
      new MockProvider({
        name: `p${index}`,
        response: `p${index}`,
        ...(priority === undefined ? {} : { priority }),
      })
    );
    return (await kit({ providers, loop }).run()).output_text;
  };
  assertEquals(await asked([5, 1, undefined]), "p1");
  assertEquals(await asked([undefined, 101, 100]), "p0");
  assertEquals(await asked([7, 7]), "p0");
  assertEquals(await asked([7, 8], { default_provider: "p1" }), "p1");
  assertEquals(await asked([7, 8], { default_provider: "gone" }), "p0");
});

Deno.test("without a provider the turn fails with a clear message", async () => {
  const leave: TestModule = {
    mount: async (coordinator) => await coordinator.mount("tools", tool("t")),
    onSessionReady: (coordinator) => coordinator.unmount("providers", "mock"),
  };
  const { run, data, turn } = kit({ tools: [leave] });
  const outcome = await run();
  assertEquals([outcome.status, outcome.stop_reason], ["failed", "error"]);
  assertEquals(outcome.error, {
    code: "internal",
    message: "No provider available: the plan must mount one",
  });
  assertEquals(data("orchestrator:complete")[0]?.status, "error");
  assertEquals(turn(), [...START, "execution:end", "orchestrator:complete"]);
});

Deno.test("at its own limit the loop makes one more call without tools, and its text ends the turn", async () => {
  const provider = new MockProvider({
    responses: [calls(["t"]), calls(["t"]), "all I have"],
  });
  const { run, turn, data, messages } = kit({
    loop: { max_iterations: 2 },
    providers: [provider],
    tools: [tool("t")],
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.stop_reason, outcome.output_text], [
    "incomplete",
    "limit:max_iterations",
    "all I have",
  ]);
  const round = [...CALL, "tool:pre", "tool:post", "context:message"];
  assertEquals(turn(), [...START, ...round, ...round, ...TEXT, ...END]);
  assertEquals(data("provider:request").at(-1), { provider: "mock", iteration: 3, max_reached: true });
  const last = provider.requests.at(-1)!;
  assertEquals(last.tools, undefined);
  assertMatch(String(last.messages.at(-1)?.content), /^<system-reminder source="orchestrator-loop-limit">/);
  assertEquals(messages().filter((message) => String(message.content).includes("system-reminder")), []);
  assertEquals(data("orchestrator:complete")[0]?.status, "incomplete");
});

Deno.test("a last call that requests tools although it has none leaves a valid history", async () => {
  const { run, messages } = kit({
    loop: { max_iterations: 1 },
    providers: [[calls(["t"])]],
    tools: [tool("t")],
  });
  assertEquals((await run()).stop_reason, "limit:max_iterations");
  assertToolPairs(messages());
});

Deno.test("without room for the last call below the run's limit, the turn ends with its text and emits no further request", async () => {
  for (const [limit, own] of [[1, undefined], [1, 5], [2, 2]] as const) {
    const provider = new MockProvider({
      responses: [1, 2, 3].map((n) => ({ text: `step ${n}`, tool_calls: [{ name: "t", arguments: {} }] })),
    });
    const { run, turn, data, messages } = kit({
      limits: { max_iterations: limit },
      ...(own === undefined ? {} : { loop: { max_iterations: own } }),
      providers: [provider],
      tools: [tool("t")],
    });
    const outcome = await run();
    assertEquals([outcome.status, outcome.stop_reason, outcome.output_text, outcome.error], [
      "incomplete",
      "limit:max_iterations",
      `step ${limit}`,
      null,
    ]);
    assertEquals([provider.call_count, data("provider:request").length], [limit, limit]);
    assertEquals(turn().slice(-3), ["prompt:complete", "execution:end", "orchestrator:complete"]);
    assertToolPairs(messages());
  }
});

Deno.test("a limit of one model call is enough for an answer", async () => {
  const provider = new MockProvider({ response: "at once" });
  const outcome = await kit({ limits: { max_iterations: 1 }, providers: [provider] }).run();
  assertEquals([outcome.status, outcome.output_text, provider.call_count], ["completed", "at once", 1]);
});

Deno.test("an answer at the last allowed iteration needs no further call", async () => {
  const provider = new MockProvider({ response: "at once" });
  const outcome = await kit({ loop: { max_iterations: 1 }, providers: [provider] }).run();
  assertEquals([outcome.status, provider.call_count], ["completed", 1]);
});

Deno.test("empty answers end the turn after two retries", async () => {
  const provider = new MockProvider({ responses: [{}] });
  const { run, data } = kit({ providers: [provider] });
  const outcome = await run();
  assertEquals([outcome.status, outcome.stop_reason, provider.call_count], [
    "incomplete",
    "empty_response",
    3,
  ]);
  assertEquals(data("orchestrator:complete")[0]?.status, "incomplete");
});

Deno.test("a provider that fails permanently ends the run with the type of the error", async () => {
  const failures: [Error, string, JsonObject][] = [
    [new LLMError("AuthenticationError", "bad key", { status_code: 401 }), "provider_auth", {
      provider: "mock",
      error: { type: "AuthenticationError", msg: "bad key" },
      retryable: false,
      status_code: 401,
    }],
    [new LLMError("RateLimitError", "slow down", { status_code: 429 }), "provider_rate_limited", {
      provider: "mock",
      error: { type: "RateLimitError", msg: "slow down" },
      retryable: true,
      status_code: 429,
    }],
    [new TypeError("x is undefined"), "provider_bad_response", {
      provider: "mock",
      error: { type: "TypeError", msg: "x is undefined" },
      retryable: false,
      status_code: null,
    }],
  ];
  for (const [error, code, reported] of failures) {
    const { run, turn, data, messages } = kit({ providers: [[{ error }]], loop: { max_retries: 0 } });
    const outcome = await run();
    assertEquals([outcome.status, outcome.stop_reason, outcome.error], ["failed", "error", {
      code,
      message: error.message,
    }]);
    assertEquals(turn(), [
      ...START,
      "provider:request",
      "provider:error",
      "execution:end",
      "orchestrator:complete",
    ]);
    assertEquals(data("provider:error"), [reported]);
    assertEquals(data("execution:end"), [{ response: "", status: "error" }]);
    assertEquals(data("orchestrator:complete")[0], {
      orchestrator: "loop-streaming",
      turn_count: 0,
      status: "error",
    });
    assertEquals(brief(messages()), [["user", "hello"]]);
  }
});

Deno.test("an invalid input does not run, and the model gets the problems", async () => {
  let ran = 0;
  let asked = 0;
  const { run, turn, data, messages } = kit({
    providers: [[calls(["t", { n: "one" }]), "done"]],
    tools: [tool("t", () => ran++, {
      input_schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n", "m"] },
    })],
    hooks: [hook("tool:pre", () => ({ action: "ask_user" }))],
    answers: [() => {
      asked++;
      return { decision: "allow" };
    }],
  });
  await run();
  assertEquals([ran, asked], [0, 0]);
  assertEquals(turn(), [...START, ...CALL, "tool:pre", "tool:error", "context:message", ...TEXT, ...END]);
  const { error } = data("tool:error")[0] as { error: { type: string; msg: string } };
  assertEquals(error.type, "tool_input_invalid");
  assertMatch(error.msg, /^Invalid arguments for tool 't': .*"m".*n: /);
  assertEquals(brief(messages())[2], ["tool", `Error: ${error.msg}`]);
});

Deno.test("the model gets an error for arguments that are not a JSON object", async () => {
  const provider = {
    ...new MockProvider(),
    name: "raw",
    getInfo: () => ({
      id: "raw",
      display_name: "Raw",
      credential_env_vars: [],
      capabilities: [],
      defaults: {},
      config_fields: [],
    }),
    listModels: () => Promise.resolve([]),
    parseToolCalls: () => [],
    complete: (request: { messages: Message[] }) =>
      Promise.resolve(
        request.messages.some((message) => message.role === "tool")
          ? { content: "done" }
          : { content: "", tool_calls: [{ id: "c1", name: "t", arguments: "{broken" }] },
      ),
  };
  const { run, data, messages } = kit({
    providers: [provider as unknown as MockProvider],
    tools: [tool("t")],
  });
  assertEquals((await run()).status, "completed");
  assertEquals((data("tool:error")[0]?.error as JsonObject).type, "tool_input_invalid");
  assertMatch(brief(messages())[2]![1]!, /must be a JSON object: received \{broken/);
  assertToolPairs(messages());
});

Deno.test("a steering text joins the next request; a blank one is refused; none is left for the next turn", async () => {
  const provider = new MockProvider({ responses: [calls(["t"]), "done", "second"] });
  const { run, session, turn, data, entries } = kit({
    providers: [provider],
    tools: [tool("t", () => {
      steer("look here");
      assertThrows(() => steer("  \n"), Error, "must not be blank");
    })],
    hooks: [hook("orchestrator:complete", () => steer("too late"))],
  });
  const steer = (text: string) => (session.getCapability("session.steer") as (text: string) => void)(text);
  await run();
  assertEquals(turn(), [
    ...START,
    ...CALL,
    ...["tool:pre", "tool:post", "context:message", "orchestrator:steering_injected", "context:message"],
    ...TEXT,
    ...END,
  ]);
  assertEquals(data("orchestrator:steering_injected"), [
    { orchestrator: "loop-streaming", content: "look here", iteration: 2, queued_remaining: 0 },
  ]);
  assertEquals(brief(provider.requests[1]!.messages).at(-1), ["user", "look here"]);
  entries.length = 0;
  await run("again");
  assertEquals(data("orchestrator:steering_injected"), []);
});

Deno.test("a steering text before the turn and one during the last answer are both delivered", async () => {
  let asked = 0;
  const { run, session, data } = kit({
    providers: [[() => {
      if (++asked === 1) (session.getCapability("session.steer") as (text: string) => void)("one more thing");
      return `answer ${asked}`;
    }]],
  });
  await session.initialize();
  (session.getCapability("session.steer") as (text: string) => void)("early");
  assertEquals((await run()).output_text, "answer 2");
  assertEquals(data("orchestrator:steering_injected").map(({ content }) => content), [
    "early",
    "one more thing",
  ]);
});

Deno.test("the capability session.last_usage returns the usage of each answer to the loop", async () => {
  const last = () => (session.getCapability("session.last_usage") as () => unknown)();
  const seen: unknown[] = [];
  const usage = (input_tokens: number) => ({ input_tokens, output_tokens: 1 });
  const { run, session } = kit({
    providers: [[
      () => {
        seen.push(last());
        return { tool_calls: [{ name: "t", arguments: {} }], usage: usage(30) };
      },
      () => {
        seen.push(last());
        return { text: "done", usage: usage(40) };
      },
    ]],
    tools: [tool("t", () => seen.push(last()))],
  });
  await session.initialize();
  assertEquals(last(), null);
  await run();
  assertEquals([...seen, last()], [
    null,
    { answer: 1, input_tokens: 30 },
    { answer: 1, input_tokens: 30 },
    { answer: 2, input_tokens: 40 },
  ]);
});

Deno.test("an orchestrator of five arguments works", async () => {
  const loop = createLoop({
    orchestrator: "five",
    max_iterations: -1,
    max_parallel_tools: 1,
    steering: false,
    request: {},
  });
  const five: Orchestrator = {
    execute: (prompt, context, providers, tools, hooks) =>
      loop.execute(prompt, context, providers, tools, hooks),
  };
  const { run, data } = kit({
    orchestrator: async (coordinator) => await coordinator.mount("orchestrator", five),
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t")],
  });
  assertEquals((await run()).status, "completed");
  assertEquals(data("orchestrator:complete").length, 1);
});

Deno.test("the deltas of a streamed answer have one request id and a growing sequence, and join to the text", async () => {
  const provider = new MockProvider({
    responses: [{ thinking: "let me see", text: "six times seven is forty-two" }],
    chunk_chars: 7,
  });
  const { run, data } = kit({ providers: [provider] });
  await run();
  const starts = data("content_block:start");
  assertEquals(starts, [
    { request_id: "req_1", block_index: 0, block_type: "thinking" },
    { request_id: "req_1", block_index: 1, block_type: "text" },
  ]);
  const deltas = data("content_block:delta").filter((delta) => delta.block_index === 1);
  assertEquals(deltas.map((delta) => delta.sequence), [1, 2, 3, 4]);
  assertEquals(deltas.map((delta) => delta.delta).join(""), "six times seven is forty-two");
  assertEquals(new Set(data("content_block:delta").map((delta) => delta.request_id)), new Set(["req_1"]));
  assertEquals(data("content_block:end").map((end) => [end.block_index, end.total_blocks]), [[0, 2], [1, 2]]);
  assertEquals(data("llm:stream_aborted"), []);
});

Deno.test("llm:stream_aborted is emitted for a stream that breaks, not for one that never started", async () => {
  for (const partial of [true, false]) {
    const provider = new MockProvider();
    provider.complete = (_request, options) => {
      if (partial) options?.onDelta?.({ block_index: 0, block_type: "text", delta: "six ti" });
      return Promise.reject(new LLMError("StreamError", "cut off"));
    };
    const { run, data, turn } = kit({ providers: [provider], loop: { max_retries: 0 } });
    assertEquals((await run()).status, "failed");
    assertEquals(
      data("llm:stream_aborted"),
      partial ? [{ request_id: "req_1", error: { type: "StreamError", msg: "cut off" } }] : [],
    );
    assertEquals(turn().slice(-3), ["provider:error", "execution:end", "orchestrator:complete"]);
  }
});

Deno.test("malformed deltas, and those after the end, are dropped", async () => {
  const provider = new MockProvider({ response: "hi" });
  const complete = provider.complete.bind(provider);
  let late: (() => void) | null = null;
  provider.complete = (request, options) => {
    const onDelta = options!.onDelta as (delta: unknown) => void;
    for (
      const nonsense of [null, "text", {}, { block_index: "0", block_type: "text", delta: "x" }, {
        block_index: 0,
        block_type: "text",
        delta: 5,
      }]
    ) {
      onDelta(nonsense);
    }
    late = () => onDelta({ block_index: 0, block_type: "text", delta: "late" });
    return complete(request, options);
  };
  const { run, data } = kit({ providers: [provider], hooks: [hook("provider:response", () => late!())] });
  assertEquals((await run()).status, "completed");
  assertEquals(data("content_block:delta").map((delta) => delta.delta), ["hi"]);
});

Deno.test("an answer that is not streamed has one delta for each text block", async () => {
  const provider = new MockProvider({ response: "hi there" });
  const complete = provider.complete.bind(provider);
  provider.complete = (request) => complete(request, {});
  const { run, turn, data } = kit({ providers: [provider] });
  await run();
  assertEquals(turn(), [...START, ...TEXT, ...END]);
  assertEquals(data("content_block:delta")[0]?.delta, "hi there");
});

Deno.test("a stored answer contains its calls in both spellings", async () => {
  const { run, messages } = kit({ providers: [[calls(["t", { a: 1 }]), "done"]], tools: [tool("t")] });
  await run();
  assertEquals(messages()[1], {
    role: "assistant",
    content: [{ type: "tool_call", id: "c1", name: "t", input: { a: 1 } }],
    tool_calls: [{ id: "c1", name: "t", tool: "t", arguments: { a: 1 } }],
  });
  assertEquals(messages()[2], { role: "tool", tool_call_id: "c1", name: "t", content: "ok" });
});

Deno.test("a plain tool result of R1 is stored as its output", async () => {
  const { run, messages } = kit({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", () => Promise.resolve({ success: true, output: "Hello!" }))],
  });
  await run();
  assertEquals(brief(messages())[2], ["tool", "Hello!"]);
});

Deno.test("a plain response of R0 is normalised to text, usage and calls", async () => {
  const provider = new MockProvider();
  provider.complete = () =>
    Promise.resolve({
      content: [{ type: "text", text: "plain" }],
      usage: { input_tokens: 10, output_tokens: 5 },
    }) as never;
  const { run, data } = kit({ providers: [provider] });
  assertEquals((await run()).output_text, "plain");
  assertEquals(data("provider:response")[0]?.usage, {
    input_tokens: 10,
    output_tokens: 5,
    total_tokens: 15,
    cost_usd: null,
  });
});

Deno.test("calls with the same id get unique ids, in the message and its blocks", async () => {
  const { run, messages } = kit({
    providers: [[calls(["t", { n: 1 }, "same"], ["t", { n: 2 }, "same"]), "done"]],
    tools: [tool("t", (input) => `n=${input.n}`)],
  });
  await run();
  assertToolPairs(messages());
  assertEquals(messages()[1]?.content, [
    { type: "tool_call", id: "same", name: "t", input: { n: 1 } },
    { type: "tool_call", id: "call_1", name: "t", input: { n: 2 } },
  ]);
  assertEquals(brief(messages()).slice(2, 4), [["tool", "n=1"], ["tool", "n=2"]]);
});

Deno.test("a hook may rewrite the prompt", async () => {
  const { run, messages, data } = kit({
    hooks: [
      hook("prompt:submit", (_event, data) => ({ action: "modify", data: { ...data, prompt: "rewritten" } })),
    ],
  });
  await run("original");
  assertEquals(brief(messages())[0], ["user", "rewritten"]);
  assertEquals(data("prompt:submit"), [{ prompt: "rewritten" }]);
});

Deno.test("an answer that is truncated by the model's limit, or filtered, is incomplete", async () => {
  const outcomes: [string, string, string][] = [
    ["half an ans", "length", "max_output_tokens"],
    ["", "max_tokens", "max_output_tokens"],
    ["I may not", "content_filter", "content_filter"],
  ];
  for (const [text, finish_reason, stop_reason] of outcomes) {
    const { run } = kit({ providers: [[{ text, finish_reason }]] });
    const outcome = await run();
    assertEquals([outcome.status, outcome.stop_reason, outcome.output_text], [
      "incomplete",
      stop_reason,
      text,
    ]);
  }
  const filtered = await kit({ providers: [[{ error: { type: "ContentFilterError", message: "no" } }]] })
    .run();
  assertEquals([filtered.status, filtered.stop_reason], ["incomplete", "content_filter"]);
});

Deno.test("progress of a tool is emitted as user:notification, also from a parallel batch", async () => {
  const { run, data } = kit({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", async (_input, call) => {
      call!.progress("half way");
      await Promise.resolve();
    })],
  });
  await run();
  assertEquals(data("user:notification"), [
    { message: "half way", level: "info", source: "tool:t", tool_call_id: "c1" },
  ]);
});

Deno.test("a batch whose log fails waits for its other calls before it ends the turn", async () => {
  let ended = false;
  const { run, clock } = kit({
    providers: [[calls(["slow"], ["fast"]), "done"]],
    tools: [
      tool("slow", async () => {
        await clock.after(50);
        ended = true;
      }),
      tool("fast"),
    ],
    record: (entry) => {
      if (entry.event === "tool:post" && entry.data.tool_name === "fast") throw new Error("disk full");
    },
  });
  const done = run();
  await until(() => clock.pending > 1);
  await clock.advance(50);
  const outcome = await done;
  assert(ended);
  assertEquals(outcome.status, "failed");
});

Deno.test("an injection of a hook at the error of a refused call is not lost", async () => {
  const provider = new MockProvider({ responses: [calls(["gone"]), "done"] });
  const { run } = kit({
    providers: [provider],
    hooks: [
      hook("tool:pre", () =>
        ({
          action: "inject_context",
          context_injection: "there is no such tool",
          ephemeral: true,
        }) as HookResult),
    ],
  });
  await run();
  assertEquals(brief(provider.requests[1]!.messages).at(-1), ["system", "there is no such tool"]);
});

Deno.test("arguments that cannot be checked fail the call, not the run", async () => {
  const guests = tool("guests");
  const checkInput = () => Promise.reject(Object.assign(new Error("it is gone"), { code: "tool_timeout" }));
  const { run, data, messages } = kit({
    providers: [[calls(["guests"]), "done"]],
    tools: [Object.assign(guests, { checkInput, input_schema: { type: "object", required: ["text"] } })],
  });
  assertEquals((await run()).status, "completed");
  assertEquals(data("tool:error").map(({ error }) => error), [
    { type: "tool_timeout", msg: "Cannot check the arguments of tool 'guests': it is gone" },
  ]);
  assertMatch(String(messages()[2]?.content), /it is gone/);
});

Deno.test("checkInput may return any list in any thenable; another value fails the call", async () => {
  const input_schema = { type: "object", required: ["text"] };
  const resultOf = async (checkInput: unknown) => {
    const checked = Object.assign(tool("checked"), { checkInput, input_schema });
    const { run, data } = kit({ providers: [[calls(["checked"]), "done"]], tools: [checked] });
    assertEquals((await run()).status, "completed");
    return data("tool:error").map(({ error }) => (error as { msg: string }).msg);
  };
  const thenable = (found: unknown) => ({ then: (done: (found: unknown) => void) => done(found) });
  assertEquals(await resultOf(() => thenable([])), []);
  assertEquals(await resultOf(() => thenable(["a", "b"])), ["Invalid arguments for tool 'checked': a; b"]);
  assertEquals(await resultOf(() => Promise.resolve(new Set(["a"]))), [
    "Invalid arguments for tool 'checked': a",
  ]);
  for (const none of [() => Promise.resolve(undefined), () => undefined, () => Promise.resolve({})]) {
    assertMatch(String(await resultOf(none)), /^Cannot check the arguments of tool 'checked': /);
  }
});

Deno.test("a tool may pass on a copy of its context", async () => {
  const seen: unknown[] = [];
  const inner = (context: ToolCallContext) => {
    seen.push(Object.keys(context).sort(), context.signal.aborted);
    return Promise.resolve("ok");
  };
  const { run, data } = kit({
    providers: [[calls(["outer"]), "done"]],
    tools: [tool("outer", (_input, context) => inner({ ...context! }))],
  });
  await run();
  assertEquals(data("tool:error"), []);
  assertEquals(seen, [["id", "progress", "session_id", "signal"], false]);
});

Deno.test("a graceful cancel before the request calls no model", async () => {
  const provider = new MockProvider({ responses: ["never"] });
  const made = kit({
    providers: [provider],
    hooks: [hook("provider:request", async () => {
      await made.session.cancel("graceful");
      return null;
    })],
  });
  assertEquals((await made.run()).status, "cancelled");
  assertEquals(provider.requests, []);
});

/** Creates a provider that throws errors like a vendor's SDK. */
function vendor(fields: JsonObject, message: string): Provider {
  return {
    name: "vendor",
    getInfo: () => ProviderInfo({ id: "vendor", display_name: "Vendor" }),
    listModels: () => Promise.resolve([]),
    complete: () => Promise.reject(Object.assign(new Error(message), fields)),
    parseToolCalls: () => [],
  };
}

for (
  const [status, message, type, code] of [
    [401, "401 Incorrect API key provided", "AuthenticationError", "provider_auth"],
    [403, "403 Country not supported", "AccessDeniedError", "provider_auth"],
    [400, "400 messages must not be empty", "InvalidRequestError", "provider_bad_response"],
  ] as const
) {
  Deno.test(`an error with the status ${status} fails the run as ${code}: ${type}`, async () => {
    const { run, data } = kit({ providers: [vendor({ status }, message)] });
    const { status: ended, error } = await run();
    assertEquals([ended, error], ["failed", { code, message }]);
    assertEquals(data("provider:error"), [{
      provider: "vendor",
      error: { type, msg: message },
      retryable: false,
      status_code: status,
    }]);
  });
}

Deno.test("an error with a transient status is retried after the delay of its headers", async () => {
  const fields = { status: 429, headers: new Headers({ "retry-after": "120" }) };
  const { run, data, clock } = kit({
    providers: [vendor(fields, "429 slow down")],
    loop: { max_retries: 1 },
  });
  const running = run();
  await until(() => data("provider:retry").length === 1);
  const { delay, error_type } = data("provider:retry")[0]!;
  assert(Number(delay) >= 60, String(delay)); // 120 s with jitter of a half at least
  assertEquals(error_type, "RateLimitError");
  clock.advance(200_000);
  assertEquals((await running).error?.code, "provider_rate_limited");
});
