/** `provider-mock` without a script, driven by a small loop that runs its tools. */
import type { ChatRequest, JsonObject, Message, Provider, ToolSpec } from "preamp";
import { textOf } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { mount } from "../../modules/provider-mock/mod.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";

type Tools = Record<string, (input: JsonObject) => string>;

/** A conversation with the provider; the loop offers and runs `tools`. */
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
    throw new Error("the provider never answered with text");
  }
}

const calculator: Tools = {
  calculator: ({ expression }) => expression === "6*7" ? "42" : "unexpected expression",
};

Deno.test("defaultAnswer() calls the calculator for arithmetic and states the result", async () => {
  const conversation = new Conversation(calculator);
  assertEquals(await conversation.say("What is 6 × 7?"), "6 × 7 is 42.");
  assertEquals(conversation.calls, [["calculator", { expression: "6*7" }]]);
});

Deno.test("defaultAnswer() calls the tool once in each turn, with new ids", async () => {
  const conversation = new Conversation(calculator);
  await conversation.say("What is 6 × 7?");
  assertStringIncludes(await conversation.say("hello"), 'You said: "hello"');
  assertEquals(await conversation.say("and 6 * 7?"), "6 * 7 is 42.");
  assertEquals(conversation.calls.length, 2);
  const ids = conversation.messages.flatMap((message) => message.tool_call_id ?? []);
  assertEquals(ids, ["call_1", "call_2"]);
  assertEquals(conversation.state, { "provider-mock": { calls: 5 } });
});

Deno.test("defaultAnswer() reports a denied or failed call and does not retry it", async () => {
  const denied = new Conversation({ calculator: () => "Denied by hook: User denied: Allow calculator?" });
  assertEquals(
    await denied.say("What is 6 × 7?"),
    "I could not work out 6 × 7: Denied by hook: User denied: Allow calculator?",
  );
  const failed = new Conversation({ calculator: () => "Cannot evaluate the expression: division by zero" });
  assertEquals(
    await failed.say("1 / 0"),
    "I could not work out 1 / 0: Cannot evaluate the expression: division by zero",
  );
  assertEquals(failed.calls.length, 1);
});

Deno.test("defaultAnswer() ignores text that a hook appended to a result", async () => {
  const conversation = new Conversation({
    calculator: () => "42\n\n<system-reminder>be nice</system-reminder>",
  });
  assertEquals(await conversation.say("What is 6 × 7?"), "6 × 7 is 42.");
});

Deno.test("defaultAnswer() ignores user messages of hooks and loops", async () => {
  const conversation = new Conversation(calculator);
  conversation.messages.push({ role: "user", content: "What is 6 × 7?" });
  const hook: Message = { role: "user", content: "2 + 2", metadata: { source: "hook", hook_name: "h" } };
  conversation.messages.push(hook);
  assertEquals(await conversation.say("<system-reminder>Be brief.</system-reminder>"), "6 × 7 is 42.");
});

Deno.test("defaultAnswer() calls only tools that the request offers and permits", async () => {
  const none = new Conversation();
  assertEquals(
    await none.say("What is 6 × 7?"),
    'I cannot work out 6 × 7: this request offers no tool named "calculator".',
  );
  for (const tool_choice of ["none", { type: "none" }]) {
    const forbidden = new Conversation(calculator);
    assertStringIncludes(await forbidden.say("What is 6 × 7?", { tool_choice }), "I cannot work out 6 × 7");
    assertEquals(forbidden.calls, []);
  }
});

Deno.test("defaultAnswer() answers a wrap-up request without tools from earlier results", async () => {
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

Deno.test("defaultAnswer() repeats any other prompt, truncated at a whole character", async () => {
  const conversation = new Conversation();
  assertEquals(
    await conversation.say(" hello "),
    'You said: "hello". I am provider-mock, a scripted provider without a model.',
  );
  const long = await new Conversation(calculator).say("😀".repeat(300));
  assertStringIncludes(long, `"${"😀".repeat(200)}…"`);
  assertStringIncludes(long, 'Try "What is 6 × 7?".');
});

const EXPRESSIONS: Readonly<Record<string, string>> = {
  "What is 6 × 7?": "6*7",
  "12*(3+4)": "12*(3+4)",
  "compute (12.5 - 4) ^ 2 / 3": "(12.5-4)^2/3",
  "what's 2 x 3, please": "2*3",
  "-3 + 4": "-3+4",
  "10 ÷ 4 is what?": "10/4",
};

for (const [prompt, expression] of Object.entries(EXPRESSIONS)) {
  Deno.test(`defaultAnswer() finds the expression in "${prompt}"`, async () => {
    const conversation = new Conversation({ calculator: () => "1" });
    await conversation.say(prompt);
    assertEquals(conversation.calls, [["calculator", { expression }]]);
  });
}

for (
  const prompt of [
    "on 2024-11-21",
    "open 24/7",
    "a 1920x1080 screen",
    "pages 3-5",
    "call 555 1234",
    "(2 + 3",
    "",
  ]
) {
  Deno.test(`defaultAnswer() finds no expression in "${prompt}"`, async () => {
    const conversation = new Conversation(calculator);
    assertStringIncludes(await conversation.say(prompt), "You said");
    assertEquals(conversation.calls, []);
  });
}

Deno.test("defaultAnswer() reads and repeats a bounded part of a long prompt", async () => {
  for (
    const prompt of ["(".repeat(100_000), "1+".repeat(50_000), "1 - ".repeat(50_000), "9".repeat(100_000)]
  ) {
    assert((await new Conversation(calculator).say(prompt)).length < 3_000);
  }
});
