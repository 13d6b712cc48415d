/** Views and compactions of `context-simple`; the parts of its views have tests in tests/sdk/context. */
import { CONFIG_SCHEMA, parseConfig } from "preamp/context";
import { errorCode, type JsonObject, type Message, messageTokens } from "preamp";
import { withDefaults } from "../../src/sdk/config.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../assert.ts";
import { PNG } from "../support/images.ts";
import {
  addAll,
  answer,
  assertView,
  group,
  groups,
  open,
  system,
  tokensOf,
  user,
  withoutNotice,
  words,
} from "../support/context.ts";

const QUIET = { compaction_notice_enabled: false };

Deno.test("getMessagesForRequest() returns the history unchanged and emits nothing below the threshold", async () => {
  const { context, events, status } = await open();
  const history = [system("Be brief."), user("hi"), ...groups(3, 100), answer("done")];
  await addAll(context, history);
  assertEquals(await context.getMessagesForRequest(), history);
  assertEquals(events, []);
  assertEquals(status(), { tokens: tokensOf(history), budget: 200_000, level: 0, compactions: 0 });
});

Deno.test("getMessagesForRequest() compacts at exactly compact_threshold of the effective budget, not one token below", async () => {
  const history = [user("hi"), ...groups(20, 500), user("and now?")];
  const tokens = tokensOf(history);
  const config = { compact_threshold: 0.5, target_usage: 0.3, compaction_notice_token_reserve: 800 };
  for (const [budget, compactions] of [[tokens * 2 + 800, 1], [tokens * 2 + 802, 0]] as const) {
    const { context, status } = await open(config);
    await addAll(context, history);
    await context.getMessagesForRequest({ token_budget: budget });
    assertEquals(status().compactions, compactions);
  }
});

Deno.test("getMessages() is the same before and after a compaction", async () => {
  const { context, status } = await open();
  await addAll(context, [system("s"), user("hi"), ...groups(40, 500), user("continue")]);
  const before = await context.getMessages();
  await context.getMessagesForRequest({ token_budget: 4000 });
  assertEquals(status().compactions, 1);
  assertEquals(await context.getMessages(), before);
});

Deno.test("getMessagesForRequest() truncates the oldest quarter of the tool results first and calls it level 1 when that is enough", async () => {
  const { context, dataOf } = await open({ ...QUIET, target_usage: 0.8 });
  const history = [user("hi"), ...groups(8, 1000)];
  await addAll(context, history);
  const token_budget = Math.floor(tokensOf(history) / 0.95);
  const shown = (await context.getMessagesForRequest({ token_budget })).filter((each) =>
    each.role === "tool"
  );
  assertEquals(dataOf("context:compaction").map((each) => each.strategy_level), [1]);
  assertEquals(shown.length, 8);
  const original = String(history[2]?.content);
  for (const [index, message] of shown.entries()) {
    const text = String(message.content);
    if (index < 2) {
      const marker = `[truncated: ~${
        messageTokens(history[2] as Message).toLocaleString("en-US")
      } tokens - call tool again if needed] `;
      assert(text.startsWith(`${marker}${original.slice(0, 250)}...`), text);
      assert(original.endsWith(text.slice(-100)), "the end is kept too");
    } else assertEquals(text, original);
  }
});

Deno.test("getMessagesForRequest() keeps a group whole when one of its results is protected", async () => {
  const { context, dataOf } = await open({ ...QUIET, protected_tool_results: 1, protected_recent: 0.05 });
  const guarded = group({ a: words(300), b: words(300), c: words(300) });
  await addAll(context, [
    user("hi"),
    ...groups(10, 300),
    ...guarded,
    user("continue"),
    answer("yes"),
    answer("no"),
  ]);
  const view = await context.getMessagesForRequest({ token_budget: 1500 });
  assertEquals(dataOf("context:compaction").length, 1);
  assertEquals(view.filter((message) => message.role === "tool").map((message) => message.tool_call_id), [
    "a",
    "b",
    "c",
  ]);
});

Deno.test("getMessagesForRequest() puts every system message first, in order, wherever it was stored", async () => {
  const { context } = await open();
  const history = [
    system("one"),
    user("hi"),
    system("two"),
    ...groups(30, 400),
    system("three"),
    user("end"),
  ];
  await addAll(context, history);
  for (const token_budget of [100_000, 4000]) {
    const view = await context.getMessagesForRequest({ token_budget });
    assertEquals(view.slice(0, 3), [system("one"), system("two"), system("three")]);
    assertView(view, history, token_budget);
  }
});

Deno.test("getMessagesForRequest() stubs long user messages in the middle and keeps the last as it is", async () => {
  const { context, dataOf } = await open(QUIET);
  const long = (name: string) => `${name}:\n${words(400)}`;
  const names = Array.from({ length: 10 }, (_, index) => `message ${index}`);
  await addAll(context, names.flatMap((name) => [user(long(name)), answer("ok")]));
  const view = await context.getMessagesForRequest({ token_budget: 3000 });
  const humans = view.filter((message) => message.role === "user").map((message) => String(message.content));
  assertEquals(humans.at(-1), long("message 9"));
  assertEquals(humans.length, 10, "none was left out");
  assertEquals(
    humans[1],
    `[User message compacted - original: "${long("message 1").slice(0, 50).replace("\n", " ")}..."]`,
  );
  assert(Number(dataOf("context:compaction")[0]?.user_messages_stubbed) > 0);
});

Deno.test("getMessagesForRequest() warns once and compacts at most once when one user message is larger than the target", async () => {
  const { context, dataOf } = await open();
  await addAll(context, [system("s"), user(words(6000))]);
  for (let request = 0; request < 20; request++) {
    await addAll(context, groups(1, 20, `r${request}`));
    const view = await context.getMessagesForRequest({ token_budget: 8000 });
    assert(tokensOf(view) <= 8000);
  }
  assert(dataOf("context:compaction").length <= 1);
  assertEquals(
    dataOf("user:notification").length,
    dataOf("context:compaction").length === 1 ? 1 : dataOf("user:notification").length,
  );
  assert(dataOf("user:notification").length <= 1);
});

Deno.test("a prompt above the threshold in every request causes one warning and no compaction", async () => {
  const { context, dataOf } = await open(QUIET);
  await addAll(context, [user(words(9400))]);
  for (let request = 0; request < 20; request++) {
    await context.getMessagesForRequest({ token_budget: 10_000 });
  }
  assertEquals(dataOf("context:compaction"), []);
  assertEquals(dataOf("user:notification").map((data) => data.level), ["warning"]);
});

Deno.test("getMessagesForRequest() leaves nothing out when the system prompt alone is above the target and the view fits", async () => {
  const { context, dataOf } = await open(QUIET);
  const history = [system(words(7000)), user("hi"), ...groups(12, 200), user("continue")];
  await addAll(context, history);
  const budget = Math.ceil(tokensOf(history) / 0.97);
  for (let request = 0; request < 5; request++) {
    assertEquals(await context.getMessagesForRequest({ token_budget: budget }), history);
  }
  assertEquals(dataOf("context:compaction"), []);
  assertEquals(dataOf("user:notification").length, 1);
});

Deno.test("getMessagesForRequest() rejects each time and notifies once when protected messages do not fit, and recovers", async () => {
  const { context, dataOf } = await open();
  const history = [system(words(3000)), user("hi"), ...groups(5, 100), user("last")];
  await addAll(context, history);
  for (let request = 0; request < 25; request++) {
    const error = await assertRejects(() => context.getMessagesForRequest({ token_budget: 2000 }));
    assertEquals(errorCode(error), "context_overflow");
  }
  assertEquals(dataOf("context:compaction"), []);
  assertEquals(dataOf("context:pre_compact"), []);
  assertEquals(dataOf("user:notification").map((data) => data.level), ["error"]);
  assertEquals(await context.getMessagesForRequest({ token_budget: 20_000 }), history);
  await assertRejects(() => context.getMessagesForRequest({ token_budget: 2000 }));
  assertEquals(dataOf("user:notification").length, 2, "armed again by the request that fitted");
});

Deno.test("getMessagesForRequest() begins with the view before it, byte for byte, after a compaction", async () => {
  const { context, status } = await open();
  await addAll(context, [system("s"), user("hi"), ...groups(60, 300)]);
  let before = withoutNotice(await context.getMessagesForRequest({ token_budget: 10_000 }));
  assertEquals(status().compactions, 1);
  for (let request = 0; request < 10; request++) {
    await addAll(context, groups(1, 100, `more${request}`));
    const view = withoutNotice(await context.getMessagesForRequest({ token_budget: 10_000 }));
    assertEquals(JSON.stringify(view.slice(0, before.length)), JSON.stringify(before));
    assertEquals(view.length, before.length + 2);
    before = view;
  }
  assertEquals(status().compactions, 1);
});

Deno.test("setMessages() and getMessages() are a round trip of copies, clear() empties", async () => {
  const { context } = await open();
  const history = [system("s"), user("hi"), ...groups(2, 10)];
  await context.setMessages(history);
  const copy = await context.getMessages();
  assertEquals(copy, history);
  (copy[1] as Message).content = "changed";
  (history[1] as Message).content = "changed too";
  assertEquals((await context.getMessages())[1]?.content, "hi");
  assertEquals((await context.getMessagesForRequest())[1]?.content, "hi");
  await context.clear();
  assertEquals(await context.getMessages(), []);
  assertEquals(await context.getMessagesForRequest(), []);
});

Deno.test("addMessage() stores a result of 1 MB whole, shows it capped with a marker, and emits an event", async () => {
  const { context, dataOf } = await open();
  const text = "é".repeat(524_288) + "THE END";
  await addAll(context, [user("hi"), ...group({ big: text })]);
  assertEquals((await context.getMessages())[2]?.content, text);
  const shown = String((await context.getMessagesForRequest())[2]?.content);
  assertStringIncludes(shown, "[... tool result shortened: 1,048,583 bytes in all ...]");
  assert(shown.endsWith("THE END") && shown.isWellFormed() && !shown.includes("\ufffd"));
  assert(new TextEncoder().encode(shown).length < 131_072 + 100);
  assertEquals(dataOf("context:tool_result_ingress_truncated"), [
    { tool_call_id: "big", original_bytes: 1_048_583, kept_bytes: 131_072 },
  ]);
});

Deno.test("addMessage() shows a long result whole when max_tool_result_bytes is null", async () => {
  const { context, events } = await open({ max_tool_result_bytes: null });
  await addAll(context, [user("hi"), ...group({ big: "x".repeat(300_000) })]);
  assertEquals(String((await context.getMessagesForRequest())[2]?.content).length, 300_000);
  assertEquals(events, []);
});

Deno.test("getMessagesForRequest() counts an image of 1 MB flat and does not compact for it", async () => {
  const { context, events, status } = await open();
  const image = { type: "image", source: { type: "base64", data: "A".repeat(1_000_000) } };
  await addAll(context, [{ role: "user", content: [{ type: "text", text: "What is this?" }, image] }]);
  for (let request = 0; request < 5; request++) await context.getMessagesForRequest({ token_budget: 4000 });
  assertEquals(events, []);
  assert(status().tokens < 1700);
});

Deno.test("a compaction emits context:pre_compact, context:compaction and context:post_compact once, with their fields", async () => {
  const { context, events } = await open();
  await addAll(context, [
    system("s"),
    user("hi"),
    ...groups(40, 300),
    user(words(30)),
    answer("ok"),
    user("end"),
  ]);
  const before = await context.getMessagesForRequest({ token_budget: 1_000_000 });
  const view = withoutNotice(await context.getMessagesForRequest({ token_budget: 8000 }));
  await context.getMessagesForRequest({ token_budget: 8000 });
  const sizes = { before_tokens: tokensOf(before), before_messages: before.length };
  const after = { after_tokens: tokensOf(view), after_messages: view.length };
  assertEquals(events, [
    { event: "context:pre_compact", data: { ...sizes, budget: 8000, target_tokens: 3600 } },
    {
      event: "context:compaction",
      data: {
        before_tokens: sizes.before_tokens,
        after_tokens: after.after_tokens,
        before_messages: sizes.before_messages,
        after_messages: after.after_messages,
        messages_removed: before.length - view.length,
        messages_truncated: view.filter((message) => String(message.content).startsWith("[truncated")).length,
        user_messages_stubbed: 0,
        system_messages_preserved: 1,
        strategy_level: 5,
        budget: 8000,
        target_tokens: 3600,
        protected_recent: 0.3,
        protected_tool_results: 5,
      },
    },
    {
      event: "context:post_compact",
      data: { before_tokens: sizes.before_tokens, ...after, before_messages: sizes.before_messages },
    },
  ]);
});

Deno.test("a hook that adds messages and asks for a view during a compaction event does not emit the events again", async () => {
  let asked = 0;
  const opened = await open({}, {
    onEvent: async (event) => {
      if (event !== "context:pre_compact") return;
      asked++;
      await opened.context.addMessage({ role: "user", content: "backed up", metadata: { source: "hook" } });
      await opened.context.getMessagesForRequest({ token_budget: 8000 });
    },
  });
  await addAll(opened.context, [user("hi"), ...groups(40, 300)]);
  const view = await opened.context.getMessagesForRequest({ token_budget: 8000 });
  assertEquals(asked, 1);
  assertEquals(opened.events.map((each) => each.event), [
    "context:pre_compact",
    "context:compaction",
    "context:post_compact",
  ]);
  assertEquals(withoutNotice(view).at(-1)?.content, "backed up");
});

Deno.test("getMessagesForRequest() squeezes the last results just as far as they must when nothing else is left", async () => {
  const { context } = await open({ max_tool_result_bytes: null });
  const history = [user("hi"), ...group({ a: words(20_000), b: words(500) })];
  await addAll(context, history);
  const view = await context.getMessagesForRequest({ token_budget: 10_000 });
  assertView(view, history, 10_000);
  assert(tokensOf(view) > 5000, "no more than needed");
  assertEquals(view[3]?.content, words(500));
});

Deno.test("a reminder of a hook does not count as the last human message", async () => {
  const { context } = await open(QUIET);
  const reminder: Message = { role: "user", content: words(100), metadata: { source: "hook" } };
  const question = words(200);
  await addAll(context, [user("hi"), ...groups(30, 300), user(question), ...groups(30, 300, "b"), reminder]);
  const view = await context.getMessagesForRequest({ token_budget: 5000 });
  assert(view.some((message) => message.content === question));
});

for (
  const [name, value] of Object.entries({
    max_tokens: 0,
    compact_threshold: 1.5,
    target_usage: "half",
    protected_recent: -0.1,
    protected_tool_results: 2.5,
    truncate_chars: null,
    compaction_notice_enabled: "false",
    compaction_notice_verbosity: "loud",
    compaction_notice_min_level: 9,
    compaction_notice_token_reserve: NaN,
    output_reserve_fraction: 2,
    max_tool_result_bytes: 10,
  })
) {
  Deno.test(`mount() refuses a ${name} of ${JSON.stringify(value)}`, async () => {
    const error = await assertRejects(() => open({ [name]: value }));
    assertEquals(errorCode(error), "module_invalid");
    assert(error.message.startsWith(`Cannot read config.${name}: must be `), error.message);
  });
}

Deno.test("max_tokens limits a request only if the plan sets it, also after the runtime filled in defaults", () => {
  const limit = (config: JsonObject) => parseConfig(withDefaults(config, CONFIG_SCHEMA) as JsonObject);
  assertEquals([limit({}).max_tokens, limit({}).max_tokens_is_limit], [200_000, false]);
  assertEquals(limit({ max_tokens: 9 }).max_tokens_is_limit, true);
});

Deno.test("mount() refuses a target that is not below the threshold, and names every wrong setting", async () => {
  const error = await assertRejects(() => open({ compact_threshold: 0.5, target_usage: 0.5 }));
  assertStringIncludes(error.message, "config.target_usage: must be below compact_threshold (0.5)");
  const two = await assertRejects(() => open({ max_tokens: -1, truncate_chars: -1 }));
  assertEquals((two as unknown as { details: { path: string }[] }).details.map((each) => each.path), [
    "config.max_tokens",
    "config.truncate_chars",
  ]);
});

Deno.test("an unread picture stays in a view that a long result makes too large", async () => {
  const { context } = await open({ max_tool_result_bytes: null });
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };
  const picture = [{ type: "text", text: "a picture" }, image];
  const messages = group({ a: "", b: words(5_000) });
  await addAll(context, [
    user("hi"),
    ...messages.map((message) => message.tool_call_id === "a" ? { ...message, content: picture } : message),
  ]);
  const view = await context.getMessagesForRequest({ token_budget: 2_500 });
  assertEquals(view.find(({ tool_call_id }) => tool_call_id === "a")?.content, picture);
  assertMatch(String(view.find(({ tool_call_id }) => tool_call_id === "b")?.content), /^\[truncated: /);
});
