/** Views of transcripts that are incomplete or broken. */
import type { Message } from "preamp";
import { assertEquals, assertStringIncludes } from "../../assert.ts";
import { addAll, assertView, group, open, user } from "../../support/context.ts";

Deno.test("a loaded transcript whose call has no answer gets one in the view once something follows it", async () => {
  const { context } = await open();
  const broken = [user("hi"), ...group({ a: "fine", b: null }), user("still there?")];
  await context.setMessages(broken);
  const view = await context.getMessagesForRequest();
  assertView(view, broken, 100_000);
  assertEquals(view.map((message) => message.tool_call_id ?? message.role), [
    "user",
    "assistant",
    "a",
    "b",
    "user",
  ]);
  assertStringIncludes(String(view[3]?.content), "interrupted");
  assertEquals(await context.getMessages(), broken, "the history stays as it was");
});

Deno.test("calls at the end of a loaded transcript are left to be answered, and a late answer takes its place", async () => {
  const { context } = await open();
  await context.setMessages([user("hi"), ...group({ a: null, b: null })]);
  assertEquals((await context.getMessagesForRequest()).length, 2);
  await context.addMessage({ role: "tool", tool_call_id: "b", content: "second" });
  await context.addMessage(user("meanwhile"));
  await context.addMessage({ role: "tool", tool_call_id: "a", content: "first" });
  const view = await context.getMessagesForRequest();
  assertEquals(view.slice(2).map((message) => message.content), ["first", "second", "meanwhile"]);
});

Deno.test("getMessagesForRequest() leaves out results that answer no call and answers given twice", async () => {
  const { context } = await open();
  const stray: Message = { role: "tool", tool_call_id: "unknown", content: "?" };
  await addAll(context, [stray, user("hi"), ...group({ a: "one" }), {
    role: "tool",
    tool_call_id: "a",
    content: "again",
  }]);
  assertEquals((await context.getMessagesForRequest()).map((message) => message.content).slice(2), ["one"]);
});

Deno.test("getMessagesForRequest() pairs results with the latest call when providers use the same ids again", async () => {
  const { context } = await open();
  const history = [user("hi"), ...group({ call_0: "first" }), ...group({ call_0: "second" }), user("end")];
  await addAll(context, history);
  assertEquals(await context.getMessagesForRequest(), history);
});

Deno.test("getMessagesForRequest() mends broken messages in the view and leaves out those without a role", async () => {
  const { context } = await open();
  const broken = [{}, null, "text", { role: "critic", content: "x" }, {
    role: "user",
    content: null,
    _seq: 3,
  }, {
    role: "assistant",
    content: { type: "text", text: "one block" },
    tool_calls: "none",
  }, { role: "user", content: ["plain", { type: "text", text: "block" }, 7] }];
  await addAll(context, broken);
  assertEquals((await context.getMessages()).length, broken.length);
  assertEquals(await context.getMessagesForRequest(), [
    { role: "user", content: "" },
    { role: "assistant", content: [{ type: "text", text: "one block" }] },
    { role: "user", content: [{ type: "text", text: "plain" }, { type: "text", text: "block" }] },
  ]);
});
