/** Tokens of messages and tools, and the meter against a plain sum. */
import fc from "fast-check";
import { MEDIA_BLOCK_TOKENS, messageTokens, RequestMeter, toolTokens } from "preamp";
import type { Message, ToolSpec } from "preamp";
import { assert, assertEquals } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import { addAll, groups, open, system, user } from "../support/context.ts";

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

Deno.test("RequestMeter.count() equals the sum whatever the order of growing, shrinking and changed requests", () => {
  const pool: Message[] = Array.from({ length: 12 }, (_, index) => {
    const message: Message = { role: "user", content: "word ".repeat(index * 3) };
    return index % 3 === 0 ? message : Object.freeze(message);
  });
  fc.assert(
    fc.property(fc.array(fc.array(fc.nat(11), { maxLength: 10 }), { maxLength: 8 }), (requests) => {
      const meter = new RequestMeter();
      for (const request of requests) {
        const messages = request.map((index) => pool[index] as Message); // nat(11) stays inside the pool
        const sum = messages.reduce((total, message) => total + messageTokens(message), 0);
        assertEquals(meter.count(messages), sum);
      }
    }),
    propertyOptions(100, 1000, 10_000),
  );
});

Deno.test("RequestMeter.count() sees that a message was changed in place when it is not frozen", () => {
  const message: Message = { role: "user", content: "short" };
  const meter = new RequestMeter();
  const before = meter.count([message]);
  message.content = "not so short any more, is it";
  assert(meter.count([message]) > before);
});

Deno.test("RequestMeter.count() returns what the context noted for its view, and counts a view that has grown", async () => {
  const { context } = await open();
  await addAll(context, [system("s"), user("hi"), ...groups(3, 40)]);
  const view = await context.getMessagesForRequest();
  const sum = (messages: readonly Message[]) =>
    messages.reduce((total, message) => total + messageTokens(message), 0);
  const meter = new RequestMeter();
  assertEquals(meter.count(view), sum(view));
  view.push(user("another word"));
  assertEquals(meter.count(view), sum(view));
});

Deno.test("RequestMeter.count() counts a view again in which a loop replaced a message", async () => {
  const { context } = await open();
  await addAll(context, [system("s"), user("hi"), ...groups(3, 40)]);
  const view = await context.getMessagesForRequest();
  view[1] = user("word ".repeat(1000));
  const sum = view.reduce((total, message) => total + messageTokens(message), 0);
  assertEquals(new RequestMeter().count(view), sum);
});
