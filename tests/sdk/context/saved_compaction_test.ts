/** Decisions of a compaction that are kept in `session_state`. */
import { assertEquals } from "../../assert.ts";
import { addAll, answer, assertView, groups, open, system, user, words } from "../../support/context.ts";

Deno.test("session_state is written with a compaction only, and a restarted session gives the same view byte for byte", async () => {
  const { context, state } = await open();
  const first = [system("s"), user("hi"), ...groups(60, 300), user(words(100)), answer("ok"), user("more")];
  await addAll(context, first);
  await context.getMessagesForRequest({ token_budget: 100_000 });
  assertEquals(state, {});
  await context.getMessagesForRequest({ token_budget: 6000 });
  await addAll(context, groups(3, 50, "later"));
  const kept = JSON.parse(JSON.stringify(state));
  const view = await context.getMessagesForRequest({ token_budget: 6000 });
  assertEquals(state, kept);

  const again = await open({}, { state: kept });
  await again.context.setMessages(await context.getMessages());
  assertEquals(
    JSON.stringify(await again.context.getMessagesForRequest({ token_budget: 6000 })),
    JSON.stringify(view),
  );
  assertEquals(again.dataOf("context:compaction"), []);
  assertEquals(again.status().compactions, 1);
});

Deno.test("decisions of another history are ignored", async () => {
  const { context, state } = await open();
  await addAll(context, [user("hi"), ...groups(60, 300)]);
  await context.getMessagesForRequest({ token_budget: 6000 });
  const other = [user("something else"), ...groups(60, 30, "other")];
  const again = await open({}, { state });
  await again.context.setMessages(other);
  assertEquals(await again.context.getMessagesForRequest({ token_budget: 100_000 }), other);
  for (
    const garbage of [7, {}, { version: 1, removed: "all" }, {
      version: 1,
      messages: 1,
      fingerprint: 0,
      removed: [[0]],
    }]
  ) {
    const third = await open({}, { state: { "context-simple": garbage } });
    await third.context.setMessages(other);
    assertEquals(await third.context.getMessagesForRequest({ token_budget: 100_000 }), other);
  }
});

Deno.test("a compaction stands when session_state is full, and warns that it lasts for this run only", async () => {
  const state = new Proxy({}, {
    set() {
      throw new RangeError("Cannot set session_state: a session keeps at most 65536 bytes");
    },
  });
  const { context, dataOf } = await open({}, { state });
  const history = [user("hi"), ...groups(60, 300)];
  await addAll(context, history);
  assertView(await context.getMessagesForRequest({ token_budget: 6000 }), history, 6000);
  assertEquals(dataOf("user:notification").length, 1);
});
