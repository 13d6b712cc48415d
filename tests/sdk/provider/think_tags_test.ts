/** Reasoning in tags at the beginning of an answer's text. */
import * as fc from "fast-check";
import { AnswerBlocks } from "preamp/provider";
import { assertEquals } from "../../assert.ts";

/** Returns what a text becomes that arrives in parts: thinking, and text. */
function read(parts: readonly string[]): { thinking: string; text: string } {
  const blocks = new AnswerBlocks([], { think_tags: true });
  for (const part of parts) blocks.append(blocks.keyFor("text"), "text", part);
  const joined = (field: string) => blocks.content().map((block) => block[field] ?? "").join("");
  return { thinking: joined("thinking"), text: joined("text") };
}

const CASES: Readonly<Record<string, { thinking?: string; text?: string }>> = {
  "<think>plan</think>answer": { thinking: "plan", text: "answer" },
  "\n<think>\nplan\n</think>\n\nanswer\n": { thinking: "plan", text: "answer\n" },
  "<think>a < b, </thin or </b></think>c</think>": { thinking: "a < b, </thin or </b>", text: "c</think>" },
  "<think>\n\n</think>\n\nanswer": { text: "answer" },
  "<think></think>": {},
  "<think>cut off </thi": { thinking: "cut off </thi" },
  "<think>only a plan</think>\n": { thinking: "only a plan" },
  "<thinking>is a word": { text: "<thinking>is a word" },
  "answer <think>later</think>": { text: "answer <think>later</think>" },
  "<thi": { text: "<thi" },
  "  ": { text: "  " },
};

for (const [whole, { thinking = "", text = "" }] of Object.entries(CASES)) {
  Deno.test(`AnswerBlocks divides ${JSON.stringify(whole)} by its tags, however it is cut`, () => {
    for (let size = 1; size <= whole.length; size++) {
      const parts = whole.match(new RegExp(`[^]{1,${size}}`, "g"))!;
      assertEquals(read(parts), { thinking, text }, `in parts of ${size}`);
    }
  });
}

Deno.test("AnswerBlocks keeps every character of a text without tags, in its deltas too", () => {
  const pieces = fc.array(fc.constantFrom("<", "think", ">", "/", " ", "\n", "a", "<think", "</think>"));
  fc.assert(fc.property(pieces, (parts) => {
    fc.pre(!parts.join("").trimStart().startsWith("<think>"));
    const deltas: string[] = [];
    const blocks = new AnswerBlocks([], { think_tags: true, onDelta: ({ delta }) => deltas.push(delta) });
    for (const part of parts) blocks.append("text", "text", part);
    assertEquals(blocks.content().map(({ text }) => text).join(""), parts.join(""));
    assertEquals(deltas.join(""), parts.join(""));
  }));
});

Deno.test("AnswerBlocks gives back a text that only began like a tag before the call after it", () => {
  const blocks = new AnswerBlocks([], { think_tags: true });
  blocks.append("a", "text", "<thi");
  blocks.addCall({ id: "c", name: "look" });
  assertEquals(blocks.content().map(({ type }) => type), ["text", "tool_call"]);
});
