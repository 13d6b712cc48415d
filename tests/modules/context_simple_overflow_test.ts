/**
 * `context-simple`: views after a provider refused one as too long
 * (src/docs/context.md#a-request-that-is-too-long).
 */
import type { ContextOverflow, JsonObject, Message, Provider } from "preamp";
import { PreampError, toolTokens } from "preamp";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { addAll, assertView, groups, open, system, tokensOf, user } from "../support/context.ts";

const UNKNOWN: ContextOverflow = { limit_tokens: null, requested_tokens: null };

/** A provider with this window and model. */
function providerOf(model: string, context_window = 200_000): Provider {
  return { name: "fake", getInfo: () => ({ defaults: { model, context_window } }) } as unknown as Provider; // as a view reads it
}

/** A context with about 12,000 tokens. */
async function filled(
  config: JsonObject = {},
): Promise<{ opened: Awaited<ReturnType<typeof open>>; history: Message[] }> {
  const opened = await open(config);
  const history = [system("Be brief."), user("go"), ...groups(30, 400), user("and now?")];
  await addAll(opened.context, history);
  return { opened, history };
}

for (const token_meter of ["estimate", "calibrated"]) {
  Deno.test(`a refused view is made to fit what the provider takes: ${token_meter}`, async () => {
    const { opened: { context, dataOf }, history } = await filled({ token_meter });
    const tools = [{ name: "read", description: "Reads a file", parameters: { type: "object" } }];
    const refused = await context.getMessagesForRequest({ tools });
    assertEquals(refused, history);
    for (const scale of [0.4, 1, 1.4, 5]) { // the provider's tokens per estimated one
      const { opened: { context }, history } = await filled({ token_meter });
      const refused = await context.getMessagesForRequest({ tools });
      const requested_tokens = Math.round(scale * (tokensOf(refused) + toolTokens(tools)));
      const limit_tokens = Math.round(requested_tokens / 2);
      const view = await context.getMessagesForRequest({
        tools,
        overflow: { limit_tokens, requested_tokens },
      });
      assertView(view, history, (limit_tokens / scale) - toolTokens(tools));
    }
    assertEquals(dataOf("context:compaction"), []);
  });
}

Deno.test("without numbers, with a limit alone, and with numbers that explain nothing, at most 80 % stay", async () => {
  const cases: [ContextOverflow, number][] = [
    [UNKNOWN, 0.8],
    [{ limit_tokens: null, requested_tokens: 15_000 }, 0.8],
    [{ limit_tokens: 1_000_000, requested_tokens: null }, 0.8],
    [{ limit_tokens: 1_000_000, requested_tokens: 10_000 }, 0.8],
    [{ limit_tokens: 3000, requested_tokens: null }, 2700 / 12_000],
    ...[NaN, 0, -5, Infinity].map((bad): [ContextOverflow, number] => [
      { limit_tokens: bad, requested_tokens: bad },
      0.8,
    ]),
  ];
  for (const [overflow, share] of cases) {
    const { opened: { context, events }, history } = await filled();
    const refused = tokensOf(await context.getMessagesForRequest());
    const view = await context.getMessagesForRequest({ overflow });
    assertView(view, history, Math.ceil(share * Math.max(refused, 12_000)));
    assertEquals(events.map(({ event }) => event), [
      "context:pre_compact",
      "context:compaction",
      "context:post_compact",
    ]);
  }
});

Deno.test("each further refusal makes the view smaller, until what must stay does not fit", async () => {
  const { opened: { context } } = await filled();
  let before = tokensOf(await context.getMessagesForRequest());
  await assertRejects(
    async () => {
      for (let count = 0; count < 100; count++) {
        const tokens = tokensOf(await context.getMessagesForRequest({ overflow: UNKNOWN }));
        assert(tokens < before, `${tokens} tokens after ${before}`);
        before = tokens;
      }
    },
    PreampError,
    "must stay",
  );
});

Deno.test("what a model takes is remembered, also by the next process; another model has its own limit", async () => {
  const [small, large] = [providerOf("small"), providerOf("large")];
  const { opened, history } = await filled();
  await opened.context.getMessagesForRequest({ provider: small });
  await opened.context.getMessagesForRequest({
    provider: small,
    overflow: { limit_tokens: 6000, requested_tokens: null },
  });
  const more = groups(40, 400, "more");
  await addAll(opened.context, more);
  const within = await opened.context.getMessagesForRequest({ provider: small });
  assertView(within, [...history, ...more], 5400);

  const second = await open({}, { state: JSON.parse(JSON.stringify(opened.state)) });
  await second.context.setMessages(await opened.context.getMessages());
  const again = groups(40, 400, "again");
  await addAll(second.context, again);
  assertView(
    await second.context.getMessagesForRequest({ provider: small }),
    [...history, ...more, ...again],
    5400,
  );
  await addAll(second.context, groups(40, 400, "large"));
  const unlimited = await second.context.getMessagesForRequest({ provider: large });
  assert(tokensOf(unlimited) > 6000, String(tokensOf(unlimited)));
});

Deno.test("the estimate learns the size of a refused request", async () => {
  const { opened: { context, status } } = await filled();
  const refused = tokensOf(await context.getMessagesForRequest());
  const requested_tokens = Math.round(refused * 1.5);
  const view = await context.getMessagesForRequest({
    overflow: { limit_tokens: requested_tokens - 100, requested_tokens },
  });
  assert(Math.abs(status().tokens / (tokensOf(view) * 1.5) - 1) < 0.05, `${status().tokens} tokens`);
});

Deno.test("a provider whose getInfo() fails gets views before and after a refusal", async () => {
  const failing = {
    name: "fake",
    getInfo: () => {
      throw new Error("no info");
    },
  } as unknown as Provider;
  const { opened: { context }, history } = await filled();
  assertEquals(await context.getMessagesForRequest({ provider: failing }), history);
  const view = await context.getMessagesForRequest({ provider: failing, overflow: UNKNOWN });
  assertView(view, history, 10_000);
  assertEquals(await context.getMessagesForRequest({ provider: failing }), view);
});
