/** The notice at the end of a compacted view. */
import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { addAll, assertView, group, groups, isNotice, open, user } from "../../support/context.ts";

Deno.test("a compacted view ends with a user-role notice that is not in the history, and has none while calls run", async () => {
  const { context } = await open();
  await addAll(context, [user("hi"), ...groups(40, 300)]);
  const token_budget = 8000;
  const view = await context.getMessagesForRequest({ token_budget });
  assertEquals(view.at(-1)?.role, "user");
  assertEquals(view.at(-1)?.metadata, { source: "context-compaction", ephemeral: true });
  assertEquals(view.filter(isNotice).length, 1);
  assert(!(await context.getMessages()).some(isNotice));
  await addAll(context, group({ running: null }));
  assert(!(await context.getMessagesForRequest({ token_budget })).some(isNotice));
  await context.addMessage({ role: "tool", tool_call_id: "running", content: "done" });
  assert(isNotice((await context.getMessagesForRequest({ token_budget })).at(-1)));
});

Deno.test("the notice follows compaction_notice_verbosity and is absent below its level", async () => {
  const text = async (config: Record<string, unknown>) => {
    const { context } = await open(config);
    await addAll(context, [user("hi"), ...groups(40, 300)]);
    return (await context.getMessagesForRequest({ token_budget: 8000 })).filter(isNotice).map((each) =>
      String(each.content)
    );
  };
  const [minimal, normal, verbose] = await Promise.all(
    ["minimal", "normal", "verbose"].map((word) => text({ compaction_notice_verbosity: word })),
  );
  assert((minimal?.[0]?.length ?? 0) < (normal?.[0]?.length ?? 0));
  assertStringIncludes(normal?.[0] ?? "", "messages left out");
  assertStringIncludes(verbose?.[0] ?? "", "of 8");
  assertEquals(await text({ compaction_notice_min_level: 8 }), []);
  assertEquals(await text({ compaction_notice_enabled: false }), []);
});

Deno.test("getMessagesForRequest() warns and still compacts when the notice's reserve is the whole budget", async () => {
  const { context, dataOf, status } = await open({ compaction_notice_token_reserve: 5000 });
  const history = [user("hi"), ...groups(40, 300)];
  await addAll(context, history);
  const view = await context.getMessagesForRequest({ token_budget: 4000 });
  assertView(view, history, 4000);
  assertEquals(status().compactions, 1);
  assertEquals(dataOf("user:notification").map((data) => data.level), ["warning"]);
});
