/** Histories for property tests: what loops, contexts and other providers leave behind, and damaged ones. */
import * as fc from "fast-check";
import { propertyOptions } from "../../support/cases.ts";
import type { ContentBlock, JsonObject, Message, ToolSpec } from "preamp";
import type { Backend, CallSettings, Conversation } from "preamp/provider";
import type { Vendor } from "./faults.ts";
import { OWN_BLOCKS } from "./own_blocks.ts";
import { callOf, sentRequest } from "./sent_request.ts";

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.constantFrom("", " ", "\n\n", "half \ud83d", "\ude00 half", "ok", "日本語", "\u0000"),
);
/** Few ids, so that calls and results meet, and some repeat. */
const id = fc.constantFrom("call_1", "call_2", "call_3", "", "with space", "ä:1|x", "x".repeat(80));
const name = fc.constantFrom("lookup", "run", "functions.run", "", "日本", "n".repeat(90));
const input = fc.oneof(
  fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }),
  fc.constant({ text: "half \ud83d" }),
);
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const media: fc.Arbitrary<ContentBlock> = fc.constantFrom<ContentBlock>(
  { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
  { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
  { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
  { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
  {
    type: "document",
    source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
    title: "a.pdf",
  },
  { type: "document", source: { type: "text", data: "plain" } },
);
const strange: fc.Arbitrary<ContentBlock> = fc.constantFrom<ContentBlock>(
  { type: "video", source: {} },
  { type: "image" },
  { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x", provider: "other" },
  { type: "thinking", thinking: "hm", signature: "other's", provider: "other" },
  { type: "thinking", thinking: "unsigned" },
  { type: "redacted_thinking", data: "x", provider: "other" },
  { type: "text", text: "with more", citations: [], provider: "other" },
);
const textBlock = text.map((value): ContentBlock => ({ type: "text", text: value }));

function contentOf(blocks: fc.Arbitrary<ContentBlock>): fc.Arbitrary<Message["content"]> {
  return fc.oneof(text, fc.array(blocks, { maxLength: 3 }));
}

const call = fc.record({ id, name, input });

/** Returns any message of the assistant. */
function assistantWith(own: readonly ContentBlock[]): fc.Arbitrary<Message> {
  const blocks = own.length === 0 ? strange : fc.oneof(strange, fc.constantFrom(...own));
  return fc.record({
    content: contentOf(fc.oneof(textBlock, blocks)),
    calls: fc.array(call, { maxLength: 3 }),
    /** Whether calls are in the content, in `tool_calls`, or in both. */
    place: fc.constantFrom("content", "tool_calls", "both"),
  }).map(toAssistant);
}

interface AssistantParts {
  content: Message["content"];
  calls: { id: string; name: string; input: JsonObject }[];
  place: string;
}

function toAssistant({ content, calls, place }: AssistantParts): Message {
  const blocks = calls.map((one): ContentBlock => ({ type: "tool_call", ...one }));
  const stored = calls.map(({ input: args, ...one }) => ({ ...one, tool: one.name, arguments: args }));
  const list = typeof content === "string"
    ? content === "" ? [] : [{ type: "text", text: content }]
    : content;
  return {
    role: "assistant",
    content: place === "tool_calls" ? content : [...list, ...blocks],
    ...(place === "content" || calls.length === 0 ? {} : { tool_calls: stored }),
  };
}

const resultBlock = fc.record({
  type: fc.constant("tool_result"),
  tool_use_id: id,
  content: contentOf(fc.oneof(textBlock, media)),
});

const others = fc.oneof(
  contentOf(fc.oneof(textBlock, media, strange, resultBlock)).map((content): Message => ({
    role: "user",
    content,
  })),
  fc.record({
    role: fc.constantFrom("system" as const, "developer" as const),
    content: contentOf(textBlock),
  }),
  fc.record({ tool_call_id: id, name, content: contentOf(fc.oneof(textBlock, media)) }).map((
    fields,
  ): Message => ({
    role: "tool",
    ...fields,
  })),
);

/** A turn as a loop stores it: a question, calls with their results in order, an answer. */
const turn = fc.record({ question: text, calls: fc.array(call, { maxLength: 3 }), answer: text }).map(
  ({ question, calls, answer }): Message[] => {
    const distinct = calls.map((one, index) => ({ ...one, id: `${one.id}${index}` }));
    return [
      { role: "user", content: question },
      ...(calls.length === 0 ? [] : [
        {
          role: "assistant",
          content: distinct.map((one) => ({ type: "tool_call", ...one })),
          tool_calls: distinct.map(({ input: args, ...one }) => ({
            ...one,
            tool: one.name,
            arguments: args,
          })),
        } satisfies Message,
        ...distinct.map((one): Message => ({
          role: "tool",
          tool_call_id: one.id,
          name: one.name,
          content: "done",
        })),
      ]),
      { role: "assistant", content: answer },
    ];
  },
);

const marked = fc.boolean();

/** Returns any list of messages, with a vendor's own blocks, and cache breakpoints on some messages. */
export function historiesWith(own: readonly ContentBlock[]): fc.Arbitrary<Message[]> {
  const message = fc.oneof(assistantWith(own), others).map((one) => [one]);
  return fc.array(fc.oneof(turn, message, message), { maxLength: 8 }).chain((parts) => {
    const messages = parts.flat();
    return fc.array(marked, { minLength: messages.length, maxLength: messages.length }).map((marks) =>
      messages.map((message, index) =>
        marks[index] ? { ...message, metadata: { cache_control: { type: "ephemeral" } } } : message
      )
    );
  });
}

const TOOLS: readonly ToolSpec[] = [
  { name: "lookup", description: "Looks up.", parameters: { type: "object", properties: {} } },
];

/** Registers the property test of a vendor's converter: `check` accepts the request of each history. */
export function testHistories(
  name: string,
  backend: Backend,
  vendor: Vendor,
  check: (body: JsonObject, conversation: Conversation) => void,
  settings: Partial<CallSettings> = {},
): void {
  Deno.test(`${name}: any history becomes a request that the API accepts`, () =>
    fc.assert(
      fc.asyncProperty(historiesWith(OWN_BLOCKS[name] ?? []), async (messages) => {
        const call = callOf({ tools: TOOLS, ...settings }, messages, name);
        const { body } = await sentRequest(backend, call, vendor);
        check(body, call.conversation);
      }),
      propertyOptions(30, 300, 3000),
    ));
}
