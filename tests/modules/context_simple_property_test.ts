/**
 * `context-simple` over random histories: the guarantees of src/docs/context.md hold for every one of them,
 * in `deno task test` for 15,000, with `PROPERTY_RUNS=most` for 100,000.
 * `PROPERTY_SEED=1 PROPERTY_RUNS=500 deno test …` tries others.
 */
import fc from "fast-check";
import { errorCode, type Message, toPlainObject } from "preamp";
import { assert, assertEquals } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import {
  addAll,
  answer,
  assertView,
  group,
  groups,
  open,
  type Opened,
  system,
  tokensOf,
  user,
  withoutNotice,
  words,
} from "../support/context.ts";

const SCRIPTS = [
  "word and word ",
  "函数返回一个值。",
  '{"key": [1, 22, 333]}, ',
  "iVBORw0KGgoAAAANSUhEUg",
  "🎉 ok ",
];

const text = fc.record({
  script: fc.constantFrom(...SCRIPTS),
  times: fc.oneof(fc.nat(4), fc.nat(60), fc.nat(600)),
})
  .map(({ script, times }) => script.repeat(times));

let ids = 0;
const calls = fc.array(text, { minLength: 1, maxLength: 4 }).map((results) =>
  group(Object.fromEntries(results.map((result) => [`id_${ids++}`, result])))
);

const media = fc.record({ said: text, bytes: fc.nat(5000) }).map(({ said, bytes }): Message => ({
  role: "user",
  content: [{ type: "text", text: said }, { type: "image", source: { data: "A".repeat(bytes) } }],
}));

/** Invalid messages as transcripts may contain them; without human and system messages. */
const broken = fc.constantFrom<unknown>(
  {},
  null,
  { role: "narrator", content: "once" },
  { role: "assistant", content: null },
  { role: "assistant", content: "", tool_calls: [] },
  { role: "tool", content: "without a call" },
  { role: "tool", tool_call_id: "lost", content: "without a call" },
  { role: "assistant", content: [7, null, { type: "text", text: "one of three" }], _truncated: true },
  { role: "user", content: "a reminder", metadata: { source: "hook", hook_name: "todo" } },
);

const step: fc.Arbitrary<unknown[]> = fc.oneof(
  { weight: 4, arbitrary: calls },
  { weight: 2, arbitrary: text.map((said) => [user(said)]) },
  { weight: 2, arbitrary: text.map((said) => [answer(said)]) },
  { weight: 1, arbitrary: media.map((message) => [message]) },
  { weight: 1, arbitrary: broken.map((message) => [message]) },
  { weight: 1, arbitrary: calls.map(([first]) => [first]) }, // a call that is never answered
);

const history = fc.array(step, { maxLength: 25 });
const budget = fc.integer({ min: 600, max: 12_000 });
const knobs = fc.record({
  protected_tool_results: fc.nat(6),
  protected_recent: fc.constantFrom(0, 0.1, 0.3, 1),
  truncate_chars: fc.constantFrom(0, 40, 250),
  compaction_notice_token_reserve: fc.constantFrom(0, 200, 800),
});

/** Returns the view, or null when the request overflows. */
async function viewOf({ context }: Opened, token_budget: number): Promise<Message[] | null> {
  try {
    return await context.getMessagesForRequest({ token_budget });
  } catch (error) {
    assertEquals(errorCode(error), "context_overflow");
    return null;
  }
}

/** Returns a history as `getMessages()` must return it; invalid messages were stored as plain data too. */
function plainText(messages: readonly unknown[]): string {
  return JSON.stringify(messages.map((message) => toPlainObject(message)));
}

/**
 * Returns the minimum tokens of a history: systems, last human message, and the calls at its end with short
 * results.
 */
function leastTokens(messages: readonly unknown[]): number {
  const known = messages.filter((message): message is Message =>
    typeof message === "object" && message !== null
  );
  const systems = known.filter((message) => message.role === "system");
  const humans = known.filter((message) => message.role === "user" && message.metadata === undefined);
  return tokensOf([...systems, ...humans.slice(-1)]);
}

Deno.test("every view of every random history obeys the invariants or is a context_overflow", async () => {
  await fc.assert(
    fc.asyncProperty(history, budget, knobs, async (steps, token_budget, config) => {
      const opened = await open(config);
      const messages: unknown[] = [system("Be brief.")];
      await addAll(opened.context, messages);
      let before: Message[] = [];
      for (const added of steps) {
        const { compactions } = opened.status();
        await addAll(opened.context, added);
        messages.push(...added);
        const view = await viewOf(opened, token_budget);
        if (view) assertView(view, messages as Message[], token_budget);
        else assert(leastTokens(messages) + 600 > token_budget, "an overflow that need not be");
        const now = opened.status().compactions;
        assert(now <= compactions + 1, "one compaction per request is enough");
        if (now === compactions && before.length > 0 && view) {
          const own = withoutNotice(view); // the messages are handed out, not copied: the same object is the same bytes
          assert(before.every((message, index) => own[index] === message), "the prefix changed");
        }
        if (view) before = withoutNotice(view);
      }
      assertEquals(
        JSON.stringify(await opened.context.getMessages()),
        plainText(messages),
        "the history changed",
      );
    }),
    propertyOptions(500, 15_000, 100_000),
  );
});

Deno.test("while a history grows each view begins with the one before, but for the requests that compact", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(calls, text.map((said) => [user(said)])), { maxLength: 30 }),
      budget,
      async (steps, token_budget) => {
        const opened = await open();
        let before: Message[] | null = null;
        for (const added of steps) {
          await addAll(opened.context, added);
          const compactions = opened.status().compactions;
          const view = await viewOf(opened, token_budget);
          if (!view) return;
          if (before && opened.status().compactions === compactions) {
            assertEquals(JSON.stringify(withoutNotice(view).slice(0, before.length)), JSON.stringify(before));
          }
          before = withoutNotice(view);
        }
        const names = ["context:pre_compact", "context:compaction", "context:post_compact"];
        const reported_events = opened.events.map((each) => each.event).filter((event) =>
          names.includes(event)
        );
        assertEquals(
          reported_events,
          Array.from({ length: opened.status().compactions }, () => names).flat(),
        );
      },
    ),
    propertyOptions(100, 2000, 8000),
  );
});

Deno.test("the same history and budgets give the same views, and a restart in the middle changes none of them", async () => {
  await fc.assert(
    fc.asyncProperty(history, history, budget, async (early, late, token_budget) => {
      const first = await open();
      for (const added of early) {
        await addAll(first.context, added);
        await viewOf(first, token_budget);
      }
      const second = await open({}, { state: JSON.parse(JSON.stringify(first.state)) });
      await second.context.setMessages(await first.context.getMessages());
      for (const added of late) {
        await addAll(first.context, added);
        await addAll(second.context, added);
        const [one, two] = [await viewOf(first, token_budget), await viewOf(second, token_budget)];
        assertEquals(JSON.stringify(two), JSON.stringify(one));
      }
      assertEquals(second.status().compactions, first.status().compactions);
      assertEquals(second.state, first.state);
    }),
    propertyOptions(50, 1000, 4000),
  );
});

/** Histories with which Amplifier's context compacts in nearly every request. */
const STORMS: Record<string, { start: Message[]; budget: number; most: number }> = {
  "a delegation prompt of 95 % of the budget": { start: [user(words(9500))], budget: 10_500, most: 20 },
  "a system prompt of 80 % of the budget": {
    start: [system(words(8000)), user("go")],
    budget: 10_500,
    most: 8,
  },
  "five protected results of 18 % each": {
    start: [user("go"), ...groups(5, 1800, "p")],
    budget: 10_500,
    most: 8,
  },
  "one result at the end of 90 %": { start: [user("go"), ...groups(1, 9300, "p")], budget: 10_500, most: 4 },
  "forty long user messages": {
    start: Array.from({ length: 40 }, (_, index) => [user(`${index} ${words(240)}`), answer("ok")]).flat(),
    budget: 10_500,
    most: 3,
  },
};

for (const [name, { start, budget: token_budget, most }] of Object.entries(STORMS)) {
  Deno.test(`no storm from ${name}: few compactions in 40 requests, and each frees tokens`, async () => {
    const opened = await open();
    await opened.context.setMessages(start);
    const history = [...start];
    for (let request = 0; request < 40; request++) {
      const added = groups(1, 60, `r${request}`);
      await addAll(opened.context, added);
      history.push(...added);
      const view = await opened.context.getMessagesForRequest({ token_budget });
      assertView(view, history, token_budget);
    }
    const reports = opened.dataOf("context:compaction");
    assert(reports.length <= most, `${reports.length} compactions`);
    for (const report of reports) assert(Number(report.after_tokens) < Number(report.before_tokens));
    for (let request = 0; request < 10; request++) {
      await opened.context.getMessagesForRequest({ token_budget });
    }
    assertEquals(opened.dataOf("context:compaction").length, reports.length, "asking again compacts no more");
    assert(opened.dataOf("user:notification").length <= 1);
  });
}
