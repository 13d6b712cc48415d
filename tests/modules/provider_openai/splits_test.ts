/** An answer reads the same however its server cuts it into deltas, and its deltas are its content. */
import * as fc from "fast-check";
import type { JsonObject, StreamDelta } from "preamp";
import { assertEquals } from "../../assert.ts";
import { createBackend } from "../../../modules/ai-sdk/openai.ts";
import { callOf } from "../providers/sent_request.ts";
import { QUESTION, settingsOf } from "./bodies.ts";
import { joined } from "./kit.ts";
import {
  chatChunks,
  chunk,
  completion,
  functionCall,
  outputMessage,
  reasoning,
  response,
  streamOf,
  usageChunk,
} from "./wire.ts";

const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
const call = fc.record({
  name: fc.constantFrom("look", "run"),
  args: fc.dictionary(text, fc.jsonValue(), { maxKeys: 3 }),
})
  .map(({ name, args }) => ({ name, args: JSON.stringify(args) }));
const answers = fc.record({
  thinking: fc.option(text),
  content: fc.option(text),
  calls: fc.array(call, { maxLength: 3 }),
  /** Lengths of the deltas. */
  cuts: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 }),
  /** Whether the arguments of all calls arrive in turns. */
  in_turns: fc.boolean(),
});

/** Returns a text cut into parts of the given lengths, in turn. */
function partsOf(whole: string, cuts: readonly number[]): string[] {
  const parts: string[] = [];
  for (let at = 0, turn = 0; at < whole.length; turn++) {
    const size = cuts[turn % cuts.length]!;
    parts.push(whole.slice(at, at + size));
    at += size;
  }
  return parts;
}

/** Returns the items of several lists in turns, or list by list. */
function mixed<T>(lists: readonly T[][], in_turns: boolean): T[] {
  if (!in_turns) return lists.flat();
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, index) => lists.flatMap((list) => list.slice(index, index + 1)))
    .flat();
}

/** Checks that a stream reads as the whole answer does, except for ids of items. */
async function check(api: string, whole: JsonObject, stream: string): Promise<void> {
  const backend = createBackend(settingsOf({ api, base_url: "http://localhost/v1" }));
  const signal = new AbortController().signal;
  const request = backend.toRequest(callOf({}, QUESTION, "openai"));
  const deltas: StreamDelta[] = [];
  const headers = { "content-type": "text/event-stream" };
  const streamed = await backend.send(request, {
    signal,
    fetch: () => Promise.resolve(new Response(stream, { headers })),
    onDelta: (delta) => deltas.push(delta),
  });
  const expected = await backend.send(request, {
    signal,
    fetch: () => Promise.resolve(Response.json(whole)),
  });
  assertEquals({ ...streamed, raw: null }, { ...expected, raw: null });
  const texts = streamed.content.map(({ text, thinking, type, id }) =>
    type === "tool_call" ? deltas.filter((delta) => delta.id === id).length === 1 : text ?? thinking
  );
  const emitted = joined(deltas.filter(({ block_type }) => block_type !== "tool_call"));
  assertEquals(texts.map((value, index) => value === true ? true : emitted[index] ?? ""), texts);
}

Deno.test("any cut of a Chat Completions answer gives the answer", async () => {
  await fc.assert(fc.asyncProperty(answers, async ({ thinking, content, calls, cuts, in_turns }) => {
    const tool_calls = calls.map(({ name, args }, index) => ({
      index,
      id: `call_${index}`,
      type: "function",
      function: { name, arguments: args },
    }));
    const message = {
      ...(thinking === null ? {} : { reasoning_content: thinking }),
      content,
      ...(tool_calls.length > 0 ? { tool_calls } : {}),
    };
    const callDeltas = tool_calls.map(({ index, id, type, function: { name, arguments: args } }) => [
      { tool_calls: [{ index, id, type, function: { name, arguments: "" } }] },
      ...partsOf(args, cuts).map((part) => ({ tool_calls: [{ index, function: { arguments: part } }] })),
    ]);
    const deltas = [
      { role: "assistant", content: "" },
      ...partsOf(thinking ?? "", cuts).map((part) => ({ reasoning_content: part })),
      ...partsOf(content ?? "", cuts).map((part) => ({ content: part })),
      ...mixed<JsonObject>(callDeltas, in_turns),
    ];
    const finish = calls.length > 0 ? "tool_calls" : "stop";
    await check(
      "chat",
      completion(message, finish),
      chatChunks([...deltas.map((delta) => chunk(delta)), chunk({}, finish), usageChunk()]),
    );
  }));
});

Deno.test("any cut of a Responses answer gives the answer", async () => {
  await fc.assert(fc.asyncProperty(answers, async ({ thinking, content, calls, cuts }) => {
    const output = [
      ...(thinking === null ? [] : [reasoning(partsOf(thinking, cuts), "gAAA")]),
      ...(content === null ? [] : [outputMessage(content)]),
      ...calls.map(({ name, args }, index) => functionCall(`call_${index}`, name, args)),
    ];
    await check("responses", response(output), streamOf(output, {}, cuts[0]!));
  }));
});
