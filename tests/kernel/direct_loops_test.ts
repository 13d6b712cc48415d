/** Loops that call providers and tools, and leave the events of these calls to the kernel. */
import type { ContextManager, Message, Orchestrator, ToolResult } from "preamp";
import { assertEquals } from "../assert.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { SILENT } from "../support/misbehaving_loops.ts";
import { calls, contents, hook, kit, type KitOptions, tool } from "../support/sessions.ts";

function direct(options: KitOptions) {
  return kit({
    ...options,
    orchestrator: SILENT,
  });
}

Deno.test("the result of a call is in the log before the loop receives it, as hooks changed it", async () => {
  const { run, turn, messages, data } = direct({
    providers: [[calls(["work"]), "done"]],
    tools: [tool("work", () => Promise.resolve("my key is k-123"))],
    hooks: [
      hook("tool:post", (_event, data) => ({
        action: "modify",
        data: { ...data, result: { success: true, output: "my key is [redacted]" } },
      })),
      hook(
        "tool:post",
        () => ({ action: "inject_context", context_injection: "Say no more.", user_message: "hidden" }),
      ),
    ],
  });
  assertEquals((await run()).output_text, "done");
  assertEquals(contents(messages()).slice(2, 4), [["tool", "my key is [redacted]"], [
    "system",
    "Say no more.",
  ]]);
  assertEquals(data("user:notification").map(({ message }) => message), ["hidden"]);
  const names = turn();
  assertEquals(names.slice(names.indexOf("tool:pre"), names.indexOf("tool:pre") + 4), [
    "tool:pre",
    "tool:post",
    "user:notification",
    "context:message",
  ]);
});

Deno.test("the error of a call is in the log before the loop receives it, and its hooks may inject", async () => {
  const { run, turn, messages } = direct({
    providers: [[calls(["work"]), "done"]],
    tools: [tool("work", () => Promise.reject(new Error("no disk")))],
    hooks: [hook("tool:error", () => ({ action: "inject_context", context_injection: "Use another tool." }))],
  });
  await run();
  assertEquals(contents(messages()).slice(2, 4), [["tool", "failed: no disk"], [
    "system",
    "Use another tool.",
  ]]);
  const names = turn();
  assertEquals(names.slice(names.indexOf("tool:pre")).slice(0, 3), [
    "tool:pre",
    "tool:error",
    "context:message",
  ]);
});

Deno.test("a turn whose loop answers with the error of a cancelled call is cancelled", async () => {
  const loop: Orchestrator = {
    async execute(_prompt, _context, { mock }, tools) {
      await tools.work!.execute({});
      return await mock!.complete({ messages: [] }).then(
        () => "answered",
        (error) => `Sorry: ${error.message}`,
      );
    },
  };
  const { run, session, turn } = kit({
    orchestrator: loop,
    tools: [tool("work", () => session.cancel("graceful").then(() => "ok"))],
  });
  const { status, output_text } = await run();
  assertEquals([status, output_text], ["cancelled", "Sorry: Cancelled by user"]);
  assertEquals(turn().slice(-3), ["cancel:completed", "execution:end", "orchestrator:complete"]);
});

Deno.test("a loop that calls a provider or the context with something else gets an error that says what to pass", async () => {
  const reported: string[] = [];
  const report = ({ message }: Error) => void reported.push(message);
  const loop: Orchestrator = {
    async execute(_prompt, context, { mock }) {
      await mock!.complete("hello" as never).catch(report);
      await mock!.complete({} as never).catch(report);
      await context.setMessages(["hello" as never]).catch(report);
      await context.addMessage("hello" as never);
      return "not reached";
    },
  };
  const { run } = kit({ orchestrator: loop });
  const { error } = await run();
  assertEquals([...reported, error?.message], [
    'Cannot call provider "mock": the request must be {messages: […]}: received text',
    'Cannot call provider "mock": messages must be a list: received nothing',
    "Cannot add a message: must be {role, content}: received text",
    "Cannot add a message: must be {role, content}: received text",
  ]);
});

/** A loop that executes all calls of an answer at once, and adds their results by `add`. */
function loopOfResults(
  add: (context: ContextManager, results: Message[]) => Promise<unknown> | void,
  view: "getMessages" | "getMessagesForRequest",
): Orchestrator {
  return {
    async execute(prompt, context, { mock }, tools) {
      await context.addMessage({ role: "user", content: prompt });
      while (true) {
        const answer = await mock!.complete({ messages: await context[view]() });
        await context.addMessage({ role: "assistant", content: answer.content });
        if (!answer.tool_calls) return "ok";
        const results = answer.tool_calls.map(async ({ id, name, arguments: input }): Promise<Message> => {
          const { output } = await tools[name]!.execute(input) as ToolResult;
          return { role: "tool", tool_call_id: id, name, content: String(output) };
        });
        await add(context, await Promise.all(results));
      }
    },
  };
}

Deno.test("results that are added at once are together in the history, before the text of a hook", async () => {
  const reversed = loopOfResults(
    (context, results) => Promise.all(results.reverse().map((result) => context.addMessage(result))),
    "getMessagesForRequest",
  );
  const { run, messages } = kit({
    providers: [[calls(["a"], ["b"]), "done"]],
    orchestrator: reversed,
    tools: [tool("a", () => "A"), tool("b", () => "B")],
    hooks: [
      hook(
        "tool:post",
        (_event, { tool_name }) =>
          tool_name === "a" ? { action: "inject_context", context_injection: "NOTE" } : null,
      ),
    ],
  });
  await run();
  assertEquals(messages().map(({ role }) => role), [
    "user",
    "assistant",
    "tool",
    "tool",
    "system",
    "assistant",
  ]);
});

Deno.test("a result that a loop adds without waiting is in its next request", async () => {
  for (const view of ["getMessages", "getMessagesForRequest"] as const) {
    const hasty = loopOfResults((context, results) => {
      for (const result of results) void context.addMessage(result);
    }, view);
    const provider = new MockProvider({ responses: [calls(["a"], ["b"]), "done"] });
    const { run, warnings } = kit({
      providers: [provider],
      orchestrator: hasty,
      tools: [tool("a", () => "A"), tool("b", () => "B")],
    });
    await run();
    const sent = provider.requests.at(-1)!.messages.filter(({ role }) => role === "tool");
    assertEquals([view, sent.map(({ content }) => content), warnings], [view, ["A", "B"], []]);
  }
});

Deno.test("a loop that emits no events and checks no input calls the tool with the declared types", async () => {
  const inputs: unknown[] = [];
  const { run, data } = direct({
    providers: [[calls(["work", { limit: "20", on: null }]), "done"]],
    tools: [tool("work", (input) => void inputs.push(input), {
      input_schema: { type: "object", properties: { limit: { type: "integer" }, on: { type: "boolean" } } },
    })],
  });
  await run();
  assertEquals([inputs, data("tool:pre")[0]!.tool_input], [[{ limit: 20 }], { limit: 20 }]);
});

Deno.test("a loop that checks no input calls no tool with one that its schema refuses", async () => {
  const inputs: unknown[] = [];
  const { run, data } = direct({
    providers: [[calls(["work", { limit: "many" }]), calls(["work", { limit: 2 }]), "done"]],
    tools: [tool("work", (input) => void inputs.push(input), {
      input_schema: { type: "object", properties: { limit: { type: "integer" } }, required: ["limit"] },
    })],
    hooks: [hook("tool:pre", (_event, { tool_input }) => ({
      action: "modify",
      data: { tool_input: (tool_input as { limit: unknown }).limit === 2 ? {} : tool_input },
    }))],
  });
  await run();
  assertEquals(inputs, []); // the second one is as a hook left it
  const types = data("tool:error").map(({ error }) => (error as { type: string }).type);
  assertEquals(types, ["tool_input_invalid", "tool_input_invalid"]);
});

Deno.test("a tool that checks its own input is asked once for a call of a loop that checks, too", async () => {
  let count = 0;
  const checked = Object.assign(tool("work", () => Promise.resolve("worked")), {
    input_schema: { type: "object", properties: { limit: { type: "integer" } } },
    checkInput: () => (count++, Promise.resolve([])),
  });
  const { run } = kit({ providers: [[calls(["work", { limit: 1 }]), "done"]], tools: [checked] });
  await run();
  assertEquals(count, 1);
});
