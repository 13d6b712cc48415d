/** Tokens of messages, tools and requests. */
import { MEDIA_BLOCK_TOKENS, messageTokens, requestTokens, toolTokens } from "preamp";
import type { Message, ToolSpec } from "preamp";
import { assert, assertEquals } from "../assert.ts";

Deno.test("messageTokens() counts media flat whatever their bytes", () => {
  const image = (bytes: number): Message => ({
    role: "user",
    content: [{ type: "image", source: { type: "base64", data: "A".repeat(bytes) } }],
  });
  assertEquals(messageTokens(image(1_000_000)), messageTokens(image(10)));
  assert(messageTokens(image(10)) < MEDIA_BLOCK_TOKENS + 10);
});

Deno.test("messageTokens() counts a call once when content and tool_calls both carry it", () => {
  const block = {
    type: "tool_call",
    id: "call_1",
    name: "grep",
    input: { pattern: "needle in the haystack" },
  };
  const call = { id: "call_1", name: "grep", tool: "grep", arguments: block.input };
  const both = messageTokens({ role: "assistant", content: [block], tool_calls: [call] });
  assertEquals(both, messageTokens({ role: "assistant", content: [block] }));
  assertEquals(both, messageTokens({ role: "assistant", content: "", tool_calls: [call] }));
  assert(both > messageTokens({ role: "assistant", content: "" }) + 8);
});

Deno.test("messageTokens() counts broken messages too", () => {
  const cycle: Record<string, unknown> = { type: "odd" };
  cycle.self = cycle;
  const broken: unknown[] = [{}, { role: "user", content: null }, { content: 7 }, {
    content: [null, cycle, 3],
  }, {
    tool_calls: [null, 4],
  }];
  for (const message of broken) {
    assert(messageTokens(message as Message) >= 4, JSON.stringify(message === cycle));
  }
});

Deno.test("messageTokens() counts again when a message that is not frozen has changed", () => {
  const message: Message = { role: "user", content: "short" };
  const before = messageTokens(message);
  message.content = "much longer than it was before, by several words at least";
  assert(messageTokens(message) > before);
  const blocks: Message = Object.freeze(
    { role: "user", content: [{ type: "text", text: "a" }] } satisfies Message,
  );
  const first = messageTokens(blocks);
  if (Array.isArray(blocks.content)) blocks.content.push({ type: "text", text: "a second block" });
  assert(messageTokens(blocks) > first);
});

Deno.test("toolTokens() is 0 without tools and grows with the schema", () => {
  const small: ToolSpec = { name: "a", parameters: { type: "object" } };
  const large: ToolSpec = {
    name: "a",
    parameters: { type: "object", properties: { path: { type: "string" } } },
  };
  assertEquals(toolTokens(undefined), 0);
  assertEquals(toolTokens([]), 0);
  assert(toolTokens([large]) > toolTokens([small]));
  assertEquals(toolTokens([small, large]), toolTokens([small]) + toolTokens([large]));
});

Deno.test("requestTokens() is the sum of the messages, also when one is changed in place", () => {
  const message: Message = { role: "user", content: "short" };
  const fixed = Object.freeze({ role: "user", content: "word ".repeat(20) } satisfies Message);
  const before = requestTokens([message, fixed]);
  assertEquals(before, messageTokens(message) + messageTokens(fixed));
  message.content = "not so short any more, is it";
  assert(requestTokens([message, fixed]) > before);
  assertEquals(requestTokens([]), 0);
});
