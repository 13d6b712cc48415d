/** Tool calls of a turn: parallel calls, errors, inputs, hooks and results. */
import { assertToolPairs } from "../../src/testing/assertions.ts";
import { MockProvider, type ScriptStep } from "../../src/testing/mock_provider.ts";
import { type ToolCallContext, ToolResult } from "../../src/sdk/tools.ts";
import type { HookResult, JsonObject, Message } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { calls, hook, kit, tool, until } from "../support/sessions.ts";
import { brief, CALL, END, START, TEXT } from "../support/turn_events.ts";

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
    error: { type: "tool_not_found", msg: "Tool 'x' not found; there are no tools" },
  }]);
  assertEquals(brief(messages())[2], ["tool", "Error: Tool 'x' not found; there are no tools"]);
});

Deno.test("the result of an unknown tool names the nearest tools, else the tools that there are", async () => {
  const tools = ["read", "write", "bash", "web_fetch", "srv__list_issues"];
  const hints: [name: string, hint: string][] = [
    ["read_file", "did you mean 'read'?"],
    ["functions.bash", "did you mean 'bash'?"],
    ["Bsah", "did you mean 'bash'?"],
    ["fetchWeb", "did you mean 'web_fetch'?"],
    ["list_issues", "did you mean 'srv__list_issues'?"],
    ["todo", "the tools are read, write, bash, web_fetch, srv__list_issues"],
  ];
  for (const [name, hint] of hints) {
    const { run, messages } = kit({
      providers: [[calls([name]), "done"]],
      tools: tools.map((one) => tool(one)),
    });
    assertEquals((await run()).status, "completed");
    assertEquals(brief(messages())[2], ["tool", `Error: Tool '${name}' not found; ${hint}`]);
  }
});

Deno.test("a call that the limit of output tokens cut gets a result that says so; three in a row end the turn", async () => {
  const cut = (text = ""): ScriptStep => ({
    text,
    tool_calls: [{ id: "a", name: "t" }, { id: "b", name: "t", arguments: '{"text":"lorem' as never }],
    finish_reason: "length",
  });
  const { run, messages, data } = kit({
    providers: [[cut(), calls(["t"]), cut(), cut(), cut("Third"), "not reached"]],
    tools: [tool("t")],
  });
  const { status, stop_reason, output_text } = await run();
  assertEquals([status, stop_reason, output_text], ["incomplete", "max_output_tokens", "Third"]);
  assertEquals(data("provider:request").length, 5);
  const results = messages().filter(({ role }) => role === "tool").map(({ content }) => String(content));
  assertEquals(results.length, 9); // each call has one
  const reminders = results.filter((text) =>
    /^Error: The call of tool 't' was not run: .*max_output_tokens/.test(text)
  );
  assertEquals(reminders.length, 4);
  assertEquals(messages().filter(({ metadata }) => metadata?.finish_reason === "length").length, 4);
});

Deno.test("ten identical calls with identical results in a row are said once to the model, and to a person", async () => {
  const again = (count: number, input: object = {}) =>
    Array.from({ length: count }, () => calls(["t", input as JsonObject]));
  const runOf = async (responses: ScriptStep[]) => {
    const { run, messages, data } = kit({ providers: [[...responses, "done"]], tools: [tool("t")] });
    assertEquals((await run()).status, "completed");
    const reminders = messages().filter(({ content }) =>
      String(content).includes("orchestrator-repeated-calls")
    );
    const after = reminders.map((message) => messages()[messages().indexOf(message) - 1]?.role);
    return [after, data("user:notification").map(({ level, message }) => [level, message])];
  };
  const warning = ["warning", "10 calls of 't' in a row had the same input and the same result"];
  assertEquals(await runOf(again(9)), [[], []]);
  assertEquals(await runOf(again(14)), [["tool"], [warning]]);
  assertEquals(await runOf([...again(9), ...again(1, { other: 1 }), ...again(9)]), [[], []]);
  assertEquals((await runOf([...again(10), ...again(10, { other: 1 })]))[0], ["tool", "tool"]);
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
  const script = { providers: [[calls(["t"]), "done"]], opened: { placeOf } };
  const located = kit({ ...script, tools: [throwing] });
  await located.run();
  assertEquals(located.data("tool:error").map(({ error }) => error), [at]);
  const elsewhere = kit({ ...script, tools: [tool("t", () => Promise.reject(new RangeError("ours")))] });
  await elsewhere.run();
  assertEquals(elsewhere.data("tool:error").map(({ error }) => error), [{ type: "RangeError", msg: "ours" }]);
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
    risk: "low",
    requires_approval: false,
  });
  assertEquals(of("tool:pre")[0]?.verdict, { action: "continue", hook_name: "test-hook", modified: true });
  assertEquals(data("tool:post")[0]?.tool_input, { path: "/tmp" });
});

Deno.test("an input that a hook changed is read by the tool's schema, as that of a model is", async () => {
  const inputs: JsonObject[] = [];
  const { run, data } = kit({
    providers: [[calls(["t", { count: 1 }]), "done"]],
    tools: [tool("t", (input) => inputs.push(input), {
      input_schema: { type: "object", properties: { count: { type: "integer" } } },
    })],
    hooks: [hook("tool:pre", () => ({ action: "modify", data: { tool_input: { count: "20" } } }))],
  });
  await run();
  assertEquals(inputs, [{ count: 20 }]);
  for (const event of ["tool:pre", "tool:post"]) assertEquals(data(event)[0]?.tool_input, { count: 20 });
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

Deno.test("hooks, the question, the log and the tool get an input as its schema declares it", async () => {
  const received: unknown[] = [];
  const list = { type: "array", items: { type: "object", properties: { n: { type: "integer" } } } };
  const { run, data } = kit({
    providers: [[calls(["t", { list: '[{"n":"1"}]', limit: "20", path: null }]), "done"]],
    tools: [tool("t", (input) => received.push(input), {
      input_schema: {
        type: "object",
        properties: { list, limit: { type: "integer" }, path: { type: "string" } },
      },
    })],
    hooks: [hook("tool:pre", (_event, { tool_input }) => {
      received.push(tool_input);
      return { action: "ask_user" };
    })],
    answers: [({ tool_input }) => {
      received.push(tool_input);
      return { decision: "allow" };
    }],
  });
  await run();
  received.push(...["tool:pre", "tool:post"].map((event) => data(event)[0]!.tool_input));
  const { response } = data("provider:response")[0] as { response: { tool_calls: JsonObject[] } };
  assertEquals(response.tool_calls[0]!.arguments, { list: '[{"n":"1"}]', limit: "20", path: null });
  assertEquals(received, Array.from({ length: 5 }, () => ({ list: [{ n: 1 }], limit: 20 })));
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

Deno.test("a model gets well-formed texts of a tool whose description was cut within a character", async () => {
  const provider = new MockProvider(["done"]);
  const schemaWith = (description: string) => ({
    type: "object",
    properties: { n: { type: "integer", description } },
  });
  const cut = tool("t", () => 1, { description: "Party \ud83c", input_schema: schemaWith("Guests \ud83c") });
  await kit({ providers: [provider], tools: [cut] }).run();
  const [spec] = provider.requests[0]!.tools!;
  assertEquals(spec, { name: "t", description: "Party \ufffd", parameters: schemaWith("Guests \ufffd") });
});

Deno.test("a tool result that is a plain value is stored as its output", async () => {
  const { run, messages } = kit({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", () => Promise.resolve({ success: true, output: "Hello!" }))],
  });
  await run();
  assertEquals(brief(messages())[2], ["tool", "Hello!"]);
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

Deno.test("what a tool writes is emitted while it runs, and no more of it than people are shown", async () => {
  const long = "x".repeat(200_000);
  const { run, data, turn } = kit({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", (_input, call) => {
      call!.output!("one\n");
      call!.output!("two\n", "stderr");
      call!.output!(long);
      call!.output!(long);
      call!.output!("lost");
      queueMicrotask(() => queueMicrotask(() => call!.output!("too late")));
      return Promise.resolve("result");
    })],
  });
  await run();
  const written = data("tool:output");
  assertEquals(written.slice(0, 2), [
    { tool_call_id: "c1", text: "one\n", stream: "stdout" },
    { tool_call_id: "c1", text: "two\n", stream: "stderr" },
  ]);
  assertEquals(written.map(({ text }) => String(text).length), [4, 4, 200_000, 256 * 1024 - 200_008]);
  const events = turn();
  assert(events.indexOf("tool:pre") < events.indexOf("tool:output"));
  assert(events.lastIndexOf("tool:output") < events.indexOf("tool:post"));
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
  assertEquals(await resultOf(() => Promise.resolve(new Set())), []);
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
  assertEquals(seen, [["id", "output", "progress", "session_id", "signal"], false]);
});
