/** `context-summarizing`: a summary in addition to the mechanical view, limited and optional. */
import { type ChatRequest, errorCode, estimateTokens, type JsonObject, type Message } from "preamp";
import { MockProvider, testContext, TestCoordinator } from "preamp/testing";
import * as contextSimple from "../../modules/context-simple/mod.ts";
import * as contextSummarizing from "../../modules/context-summarizing/mod.ts";
import { chunksOf } from "../../modules/context-summarizing/mod.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { addAll, assertView, groups, system, tokensOf, user, withoutNotice } from "../support/context.ts";

testContext("context-summarizing", () => contextSummarizing);

const BUDGET = 6000;

/** A session with a provider that answers with `answer`, and its requests. */
async function open(
  answer: (call: number) => string | Promise<string>,
  config: JsonObject = {},
  state: JsonObject = {},
) {
  const coordinator = new TestCoordinator({ session_state: state });
  const asked: ChatRequest[] = [];
  const provider = new MockProvider();
  const reporting = Object.assign(Object.create(provider), {
    name: "mock",
    getInfo: () => ({ ...provider.getInfo(), defaults: { context_window: 8000 } }),
    complete: async (request: ChatRequest) => {
      asked.push(request);
      return { content: [{ type: "text", text: await answer(asked.length) }] };
    },
  });
  await coordinator.mount("providers", reporting, "mock");
  await contextSummarizing.mount(coordinator, config);
  const { context } = coordinator;
  assert(context);
  const view = async () => await context.getMessagesForRequest({ token_budget: BUDGET, provider: reporting });
  return { context, coordinator, asked, view, state: coordinator.session_state };
}

const history = (): Message[] => [system("Be brief."), user("start"), ...groups(50, 200), user("and now?")];

function summaryIn(view: readonly Message[]): string | undefined {
  const found = view.filter((message) => message.metadata?.source === "context-summary");
  assert(found.length <= 1, "one summary at the most");
  return found[0] && String(found[0].content);
}

Deno.test("a compaction that leaves something out is summarised once; the view keeps its prefix and fits", async () => {
  const { context, asked, view } = await open((call) => `summary ${call}`, { summary_max_calls: 1 });
  await addAll(context, history());
  let before = withoutNotice(await view());
  assert(summaryIn(before)?.endsWith("summary 1"));
  assertEquals(asked.length, 1);
  for (let request = 0; request < 5; request++) {
    await addAll(context, groups(1, 50, `r${request}`));
    const next = withoutNotice(await view());
    assertEquals(JSON.stringify(next.slice(0, before.length)), JSON.stringify(before));
    assert(tokensOf(next) <= BUDGET);
    before = next;
  }
  assertEquals(asked.length, 1, "the summary is kept");
  assert((await context.getMessages()).every((message) => message.metadata?.source !== "context-summary"));
});

Deno.test("the next compaction's summary is written from the one before and the new part alone", async () => {
  const { context, asked, view } = await open((call) => `summary ${call}`, { summary_max_calls: 1 });
  await addAll(context, history());
  await view();
  await addAll(context, groups(40, 200, "later"));
  assert(summaryIn(await view())?.endsWith("summary 2"));
  const prompt = JSON.stringify(asked[1]?.messages);
  assert(prompt.includes("Summary so far:\\nsummary 1"));
  assert(!prompt.includes("start"), "what was summarised is not sent again");
});

Deno.test("its own requests fit: parts of a quarter of the window, at most summary_max_calls of them", async () => {
  const { context, asked, view } = await open(() => "short", {
    summary_max_calls: 3,
    summary_max_tokens: 300,
  });
  await addAll(context, [
    user("start"),
    ...groups(200, 200),
    user("x".repeat(40_000)),
    ...groups(60, 200, "b"),
    user("end"),
  ]);
  await view();
  assertEquals(asked.length, 3);
  for (const { messages, max_output_tokens } of asked) {
    assert(tokensOf(messages) <= 8000 / 4 + 700, `${tokensOf(messages)} tokens`);
    assertEquals(max_output_tokens, 300);
  }
});

Deno.test("a summary longer than summary_max_tokens is cut", async () => {
  const { context, view } = await open(() => "blah ".repeat(5000), { summary_max_tokens: 100 });
  await addAll(context, history());
  assert(estimateTokens(summaryIn(await view()) ?? "") <= 100 + 40);
});

for (
  const [name, answer] of Object.entries<() => string | Promise<string>>({
    "fails": () => Promise.reject(new Error("no such model")),
    "gives no text": () => "  ",
    "never answers": () => new Promise<string>(() => {}),
  })
) {
  Deno.test(`a model that ${name} leaves the mechanical view, byte for byte, and one warning`, async () => {
    const { context, coordinator, view } = await open(answer, { summary_timeout_s: 5 });
    const simple = new TestCoordinator();
    await contextSimple.mount(simple, {});
    for (const each of [context, simple.context]) await addAll(each!, history());
    for (let round = 0; round < 3; round++) {
      const made = view();
      if (name === "never answers") {
        await (coordinator.clock as { advance?: (ms: number) => unknown }).advance?.(5001);
      }
      assertEquals(
        JSON.stringify(await made),
        JSON.stringify(await simple.context!.getMessagesForRequest({ token_budget: BUDGET })),
      );
      for (const each of [context, simple.context]) await addAll(each!, groups(30, 200, `round${round}`));
    }
    const warnings = coordinator.hooks.getEvents().filter(([event]) => event === "user:notification");
    assertEquals(warnings.length, 1);
  });
}

Deno.test("the summary comes back with the session, without a call", async () => {
  const first = await open((call) => `summary ${call}`);
  await addAll(first.context, history());
  const view = await first.view();
  const state = JSON.parse(JSON.stringify(first.state));
  const second = await open(() => Promise.reject(new Error("must not be asked")), {}, state);
  await second.context.setMessages(await first.context.getMessages());
  assertEquals(JSON.stringify(await second.view()), JSON.stringify(view));
  assertEquals(second.asked.length, 0);
});

Deno.test("views obey the invariants with a summary in them", async () => {
  const { context, view } = await open((call) => `summary ${call}: ${"fact ".repeat(100)}`);
  const messages = history();
  await addAll(context, messages);
  for (let request = 0; request < 40; request++) {
    const added = groups(1, 150, `r${request}`);
    messages.push(...added);
    await addAll(context, added);
    assertView(
      (await view()).filter((message) => message.metadata?.source !== "context-summary"),
      messages,
      BUDGET,
    );
  }
});

Deno.test("chunksOf() cuts messages into parts that fit, and one that is too long on its own", () => {
  const parts = chunksOf([user("y".repeat(100_000)), ...groups(20, 300)], 500);
  assert(parts.length > 3);
  for (const part of parts) assert(estimateTokens(part) <= 520, `${estimateTokens(part)}`);
});

Deno.test("mount() refuses invalid settings", async () => {
  for (const config of [{ summary_max_calls: 0 }, { summary_provider: 7 }, { summary_timeout_s: "long" }]) {
    const error = await assertRejects(() =>
      contextSummarizing.mount(new TestCoordinator(), config as JsonObject)
    );
    assertEquals(errorCode(error), "module_invalid");
  }
});
