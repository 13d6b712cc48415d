/** The conversation of any history: its rules as a property, and one case for each rule. */
import * as fc from "fast-check";
import { deepFreeze, type Message } from "preamp";
import { type Conversation, toConversation } from "preamp/provider";
import { assert, assertEquals } from "../../assert.ts";
import { historiesWith } from "../../modules/providers/histories.ts";

const ID = /^[a-zA-Z0-9_-]{1,64}$/;

/** Fails when a conversation breaks a rule that its type states. */
function checkRules({ system, turns }: Conversation): void {
  assert(turns.length > 0, "no turn");
  assertEquals([turns[0]!.role, turns.at(-1)!.role], ["user", "user"]);
  const ids = new Set<string>();
  turns.forEach(({ role, parts }, index) => {
    assert(parts.length > 0, "an empty turn");
    assertEquals(role, index % 2 === 0 ? "user" : "assistant");
    const calls = parts.flatMap((part) => part.type === "tool_call" ? [part] : []);
    for (const { id, name } of calls) {
      assert(ID.test(id) && ID.test(name), `invalid: ${id} ${name}`);
      assert(!ids.has(id), `repeated: ${id}`);
      ids.add(id);
    }
    const next = turns[index + 1]?.parts ?? [];
    assertEquals(
      next.slice(0, calls.length).map((part) =>
        part.type === "tool_result" ? [part.tool_call_id, part.name] : part
      ),
      calls.map(({ id, name }) => [id, name]),
    );
    const results = next.filter(({ type }) => type === "tool_result").length;
    if (role === "assistant") assertEquals(results, calls.length);
  });
  for (const part of [...system, ...turns.flatMap(({ parts }) => [...parts])]) {
    if (part.type === "text") assert(part.text.trim() !== "" && part.text.isWellFormed(), "text");
    if (part.type === "tool_call") assert(JSON.stringify(part.input).isWellFormed());
  }
  JSON.stringify({ system, turns }, (key, value) => {
    assert(key.isWellFormed() && (typeof value !== "string" || value.isWellFormed()), "half of a character");
    return value;
  });
}

Deno.test("any history becomes a conversation by the rules", () => {
  fc.assert(
    fc.property(historiesWith([]), (messages) => checkRules(toConversation(messages, "any").conversation)),
    {
      numRuns: 500,
    },
  );
});

Deno.test("a conversation keeps all text of users and assistants, in order", () => {
  const words = fc.array(
    fc.record({
      role: fc.constantFrom("user" as const, "assistant" as const),
      content: fc.stringMatching(/^[a-z]{1,8}$/),
    }),
    { maxLength: 12 },
  );
  fc.assert(fc.property(words, (messages) => {
    const { turns } = toConversation(messages, "any").conversation;
    const texts = turns.flatMap(({ parts }) => [...parts]).map((part) =>
      part.type === "text" ? part.text : ""
    );
    assertEquals(texts.filter((text) => text !== "Continue."), messages.map(({ content }) => content));
  }));
});

Deno.test("toConversation() takes a frozen history", () => {
  fc.assert(fc.property(historiesWith([]), (messages) => void toConversation(deepFreeze(messages), "any")));
});

interface Case {
  messages: Message[];
  turns: Conversation["turns"];
  system?: Conversation["system"];
  repairs?: { tool_call_id: string; tool_name: string }[];
}

const user = (...texts: string[]) => ({
  role: "user" as const,
  parts: texts.map((text) => ({ type: "text" as const, text })),
});
const call = (id: string) => ({ type: "tool_call", id, name: "lookup", input: {} });
const result = (id: string, content: string, is_error = false) => ({
  type: "tool_result" as const,
  tool_call_id: id,
  name: "lookup",
  content,
  is_error,
});
const asked = (...ids: string[]): Message => ({ role: "assistant", content: ids.map(call) });
const answered = (id: string, content: string): Message => ({
  role: "tool",
  tool_call_id: id,
  name: "lookup",
  content,
});
const turnOf = (...ids: string[]) => ({ role: "assistant" as const, parts: ids.map(call) as never[] });
const NO_RESULT = "Error: this call has no result, because it was interrupted.";

const CASES: Readonly<Record<string, Case>> = {
  "no message": { messages: [], turns: [user("Continue.")] },
  "system messages first and in the middle": {
    messages: [
      { role: "system", content: "Be brief." },
      { role: "developer", content: [{ type: "text", text: "Be kind." }] },
      { role: "user", content: "Hello" },
      { role: "system", content: "It is noon." },
    ],
    system: [{ type: "text", text: "Be brief." }, { type: "text", text: "Be kind." }],
    turns: [user("Hello", "<system>\nIt is noon.\n</system>")],
  },
  "a call without a result": {
    messages: [{ role: "user", content: "Go" }, asked("a", "b"), answered("b", "B"), {
      role: "user",
      content: "?",
    }],
    turns: [
      user("Go"),
      turnOf("a", "b"),
      { role: "user", parts: [result("a", NO_RESULT, true), result("b", "B"), ...user("?").parts] },
    ],
    repairs: [{ tool_call_id: "a", tool_name: "lookup" }],
  },
  "results in a user message": {
    messages: [
      { role: "user", content: "Go" },
      asked("a", "b"),
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "A" }], is_error: true },
          { type: "tool_result", tool_call_id: "b", output: "B" },
          { type: "text", text: "And?" },
        ],
      },
    ],
    turns: [
      user("Go"),
      turnOf("a", "b"),
      { role: "user", parts: [result("a", "A", true), result("b", "B"), ...user("And?").parts] },
    ],
  },
  "a result after another message": {
    messages: [
      { role: "user", content: "Go" },
      asked("a"),
      { role: "user", content: "Wait" },
      answered("a", "A"),
    ],
    turns: [user("Go"), turnOf("a"), { role: "user", parts: [result("a", "A"), ...user("Wait").parts] }],
  },
  "a result without a call": {
    messages: [{ role: "user", content: "Go" }, answered("x", "X")],
    turns: [user("Go", "Result of the tool lookup:", "X")],
  },
  "the same id in two answers": {
    messages: [
      { role: "user", content: "Go" },
      asked("a"),
      answered("a", "1"),
      asked("a"),
      answered("a", "2"),
    ],
    turns: [
      user("Go"),
      turnOf("a"),
      { role: "user", parts: [result("a", "1")] },
      turnOf("a_2"),
      { role: "user", parts: [result("a_2", "2")] },
    ],
  },
  "an answer first and last": {
    messages: [{ role: "assistant", content: "Hi" }],
    turns: [user("Continue."), { role: "assistant", parts: user("Hi").parts }, user("Continue.")],
  },
  "thinking of this and of another provider": {
    messages: [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "own", signature: "s", provider: "own" },
          { type: "thinking", thinking: "foreign", signature: "s", provider: "foreign" },
          { type: "text", text: "cited", citations: [1], provider: "own" },
          { type: "text", text: "cited", citations: [1], provider: "foreign" },
        ],
      },
      { role: "user", content: "On" },
    ],
    turns: [
      user("Go"),
      {
        role: "assistant",
        parts: [
          { type: "native", block: { type: "thinking", thinking: "own", signature: "s" } },
          { type: "text", text: "cited", block: { type: "text", text: "cited", citations: [1] } },
          { type: "text", text: "cited" },
        ],
      },
      user("On"),
    ],
  },
  "a cache breakpoint": {
    messages: [{
      role: "user",
      content: [{ type: "text", text: "One" }, { type: "text", text: "Two" }],
      metadata: { cache_control: { type: "ephemeral" } },
    }],
    turns: [{
      role: "user",
      parts: [{ type: "text", text: "One" }, { type: "text", text: "Two", cache: true }],
    }],
  },
};

for (const [name, { messages, turns, system = [], repairs = [] }] of Object.entries(CASES)) {
  Deno.test(`toConversation(): ${name}`, () => {
    assertEquals(toConversation(messages, "own"), { conversation: { system, turns }, repairs });
  });
}
