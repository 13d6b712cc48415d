/** `provider-mock` without a script: the rule book, driven by a loop of one page that runs the tools it offers. */
import type { ChatRequest, JsonObject, Message, Provider, ToolSpec } from "preamp";
import { textOf } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { findExpression } from "../../modules/provider-mock/arithmetic.ts";
import { tokenize } from "../../modules/provider-mock/lexer.ts";
import { mount } from "../../modules/provider-mock/mod.ts";
import { readTodoRequest } from "../../modules/provider-mock/todo_request.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";

type Tools = Record<string, (input: JsonObject) => string>;

/** A conversation with the rule book; `tools` are offered and run. */
class Conversation {
  readonly messages: Message[] = [];
  readonly calls: [name: string, input: JsonObject][] = [];
  readonly state: JsonObject = {};
  readonly #tools: Tools;
  #provider: Provider | undefined;

  constructor(tools: Tools = {}) {
    this.#tools = tools;
  }

  async #open(): Promise<Provider> {
    if (this.#provider) return this.#provider;
    const coordinator = new TestCoordinator({ session_state: this.state });
    await mount(coordinator, {});
    const { mock } = coordinator.providers;
    assert(mock);
    return this.#provider = mock;
  }

  async say(prompt: string, extra: Partial<ChatRequest> = {}): Promise<string> {
    const provider = await this.#open();
    this.messages.push({ role: "user", content: prompt });
    const tools: ToolSpec[] = Object.keys(this.#tools).map((name) => ({ name, parameters: {} }));
    for (let iteration = 0; iteration < 10; iteration++) {
      const response = await provider.complete({ messages: this.messages, tools, ...extra });
      const calls = response.tool_calls ?? [];
      const stored = calls.map(({ id, name, arguments: input }) => ({
        id,
        name,
        tool: name,
        arguments: input,
      }));
      this.messages.push({ role: "assistant", content: response.content, tool_calls: stored });
      if (calls.length === 0) return textOf(response.content);
      for (const { id, name, arguments: input } of calls) {
        this.calls.push([name, input]);
        const run = this.#tools[name];
        assert(run, `called "${name}", which is not offered`);
        this.messages.push({ role: "tool", tool_call_id: id, name, content: run(input) });
      }
    }
    throw new Error("the rule book never came to an answer");
  }
}

/** A todo tool with the shape of tool-todo's. */
function todoTool(): Tools {
  let todos: JsonObject[] = [];
  return {
    todo({ action, todos: given }) {
      if (action === "list") return JSON.stringify({ status: "listed", count: todos.length, todos });
      todos = given as JsonObject[];
      return JSON.stringify({ status: `${action}d`, count: todos.length });
    },
  };
}

const calculator: Tools = { calculator: ({ expression }) => expression === "6*7" ? "42" : "no such luck" };

Deno.test("answerByRules() sends arithmetic to the calculator and says the result", async () => {
  const conversation = new Conversation(calculator);
  assertEquals(await conversation.say("What is 6 × 7?"), "6 × 7 is 42.");
  assertEquals(conversation.calls, [["calculator", { expression: "6*7" }]]);
});

Deno.test("answerByRules() calls anew in each turn, with ids that go on", async () => {
  const conversation = new Conversation(calculator);
  await conversation.say("What is 6 × 7?");
  assertStringIncludes(await conversation.say("hello"), 'You said: "hello"');
  assertEquals(await conversation.say("and 6 * 7?"), "6 * 7 is 42.");
  assertEquals(conversation.calls.length, 2);
  const ids = conversation.messages.flatMap((message) => message.tool_call_id ?? []);
  assertEquals(ids, ["call_1", "call_2"]);
  assertEquals(conversation.state, { "provider-mock": { calls: 5, tool_calls: 2 } });
});

Deno.test("answerByRules() says so when the call was denied, failed, or gave nothing", async () => {
  const denied = new Conversation({ calculator: () => "Denied by hook: User denied: Allow calculator?" });
  assertEquals(
    await denied.say("What is 6 × 7?"),
    "I could not work out 6 × 7: the call was denied (User denied: Allow calculator?).",
  );
  const failed = new Conversation({ calculator: () => "Cannot evaluate the expression: division by zero" });
  assertEquals(
    await failed.say("1 / 0"),
    "I could not work out 1 / 0. The tool says: Cannot evaluate the expression: division by zero",
  );
  assertEquals(failed.calls.length, 1, "a failure is told, not tried again");
});

Deno.test("answerByRules() reads past what a hook appended to a result", async () => {
  const conversation = new Conversation({
    calculator: () => "42\n\n<system-reminder>be nice</system-reminder>",
  });
  assertEquals(await conversation.say("What is 6 × 7?"), "6 × 7 is 42.");
});

Deno.test("answerByRules() answers the person when a hook speaks as the user", async () => {
  const conversation = new Conversation(calculator);
  conversation.messages.push({ role: "user", content: "What is 6 × 7?" });
  const hook: Message = { role: "user", content: "2 + 2", metadata: { source: "hook", hook_name: "h" } };
  conversation.messages.push(hook);
  assertEquals(await conversation.say("<system-reminder>Be brief.</system-reminder>"), "6 × 7 is 42.");
});

Deno.test("answerByRules() calls no tool that is not offered or may not be called", async () => {
  const none = new Conversation();
  assertEquals(
    await none.say("What is 6 × 7?"),
    'I cannot work out 6 × 7: no tool named "calculator" is offered with this request.',
  );
  for (const tool_choice of ["none", { type: "none" }]) {
    const forbidden = new Conversation(calculator);
    assertStringIncludes(await forbidden.say("What is 6 × 7?", { tool_choice }), "I cannot work out 6 × 7");
    assertEquals(forbidden.calls, []);
  }
});

Deno.test("answerByRules() answers a wrap-up request without tools from the results it has", async () => {
  const conversation = new Conversation(calculator);
  conversation.messages.push(
    { role: "user", content: "What is 6 × 7?" },
    {
      role: "assistant",
      content: [{ type: "tool_call", id: "call_1", name: "calculator", input: { expression: "6*7" } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "42" },
  );
  const text = await conversation.say("<system-reminder>Wrap up.</system-reminder>", { tools: [] });
  assertEquals(text, "6 × 7 is 42.");
});

Deno.test("answerByRules() keeps earlier todos when it adds one, and shows them", async () => {
  const conversation = new Conversation(todoTool());
  assertEquals(
    await conversation.say("Remind me to water the plants."),
    "Noted. Your todo list has 1 entry:\n- water the plants",
  );
  assertEquals(
    await conversation.say("todo: buy milk, call Ann"),
    "Noted. Your todo list has 3 entries:\n- water the plants\n- buy milk\n- call Ann",
  );
  assertEquals(
    await conversation.say("What is on my todo list?"),
    "Your todo list has 3 entries:\n- water the plants\n- buy milk\n- call Ann",
  );
  assertEquals(conversation.calls.map(([, { action }]) => action), [
    "list",
    "create",
    "list",
    "update",
    "list",
  ]);
});

Deno.test("answerByRules() tells a todo tool's refusal as it is", async () => {
  const denied = new Conversation({ todo: () => "Denied by hook: not today" });
  assertEquals(
    await denied.say("Remind me to sleep"),
    "I could not read your todo list: the call was denied (not today).",
  );
  const full = new Conversation({
    todo: ({ action }) => action === "list" ? '{"todos":[]}' : "Cannot keep the todo list: it is full",
  });
  assertEquals(
    await full.say("Remind me to sleep"),
    "I could not note it: Cannot keep the todo list: it is full",
  );
});

Deno.test("answerByRules() does both when a prompt wants both, calling both tools in one response", async () => {
  const conversation = new Conversation({ ...calculator, ...todoTool() });
  assertEquals(
    await conversation.say("What is 6 × 7? And remind me to sleep."),
    "6 × 7 is 42.\nNoted. Your todo list has 1 entry:\n- sleep",
  );
  assertEquals(conversation.calls.map(([name]) => name), ["calculator", "todo", "todo"]);
});

Deno.test("answerByRules() says what it is and how to get a real model", async () => {
  for (const question of ["Who are you?", "which model is this?", "Are you real?"]) {
    const answer = await new Conversation(calculator).say(question);
    assertStringIncludes(answer, "scripted demo provider");
    assertStringIncludes(answer, "change the provider line of the plan");
  }
});

Deno.test("answerByRules() says a long prompt back shortened, on whole characters", async () => {
  const answer = await new Conversation().say("😀".repeat(100_000));
  assert(answer.length < 600 && answer.isWellFormed());
  assertStringIncludes(answer, "😀…");
  assertStringIncludes(await new Conversation().say("  "), "You said nothing I can read.");
});

const EXPRESSIONS: Record<string, string | null> = {
  "What is 6 × 7?": "6*7",
  "12*(3+4)": "12*(3+4)",
  "compute 2**10 please": "2^10",
  "6x7": "6*7",
  "6 X 7": "6*7",
  "What's 15% of 80?": "15/100*80",
  "what is 2 to the power of 8?": "2^8",
  "7 divided by 2 = ?": "7/2",
  "sqrt(16) + max(1,200)": "sqrt(16)+max(1,200)",
  "1,000 + 1": "1000+1",
  "0.5*.5": "0.5*.5",
  "1e5 * 2": "1e5*2",
  "-3 + --4": "-3+4",
  "What is −(2 + 3) · 4.": "-(2+3)*4",
  "10 % 3": "10%3",
  "2 * pi": "2*pi",
  "what is 3-4": "3-4",
  "3-4 =": "3-4",
  "2 + (3": null,
  "Is it open 24/7?": null,
  "It was on 2024-11-21.": null,
  "what about 2024-01-02?": null,
  "call 555-1234": null,
  "a 1920x1080 screen": null,
  "sales grew 20% - 5% more": null,
  "version 1.2.3 - 4": null,
  "- 3 eggs\n- 4 pints": null,
  "f(2) + x": null,
  "007 + agent": null,
  "1 +": null,
  "hello": null,
  "": null,
};

Deno.test("findExpression() finds arithmetic and nothing else", () => {
  for (const [prompt, expected] of Object.entries(EXPRESSIONS)) {
    assertEquals(findExpression(prompt, tokenize(prompt))?.normalised ?? null, expected, prompt);
  }
});

Deno.test("findExpression() gives the words of the prompt as its source", () => {
  const prompt = "Tell me: what is 2 to the power of (1 + 1)?";
  assertEquals(findExpression(prompt, tokenize(prompt))?.source, "2 to the power of (1 + 1)");
});

Deno.test("findExpression() ends on nested and endless input", () => {
  for (const prompt of ["(".repeat(2000), "-".repeat(2000), "abs(".repeat(500), "(1+".repeat(600)]) {
    assertEquals(findExpression(prompt, tokenize(prompt)), null, prompt.slice(0, 8));
  }
});

const TODOS: Record<string, string[] | "list" | null> = {
  "remind me to water the plants.": ["water the plants"],
  "Remind me to buy milk. What is 6 × 7?": ["buy milk"],
  "todo: buy milk, call Ann and pay rent": ["buy milk", "call Ann", "pay rent"],
  "todo buy fish and chips": ["buy fish and chips"],
  "add milk to my todo list": ["milk"],
  "add a todo to call Ann": ["call Ann"],
  "put fish and chips on the to-do list": ["fish and chips"],
  "Plan a party: cake, music; guests": ["cake", "music", "guests"],
  "plan a trip to Rome": ["a trip to Rome"],
  "Please plan my week:\n1. swim\n- run": ["swim", "run"],
  "what is on my todo list?": "list",
  "show my to-dos": "list",
  "make a todo list": "list",
  "what's the plan?": null,
  "hello": null,
};

Deno.test("readTodoRequest() finds what to note, or that the list is wanted", () => {
  for (const [prompt, expected] of Object.entries(TODOS)) {
    const found = readTodoRequest(prompt, tokenize(prompt));
    assertEquals(found?.kind === "add" ? found.items : found?.kind ?? null, expected, prompt);
  }
});
