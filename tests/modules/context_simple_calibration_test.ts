/**
 * `context-simple`: tokens counted by estimate and by reported usage
 * (src/docs/context.md#token-counting).
 */
import { type Message, PreampError, textOf } from "preamp";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { Calibration } from "../../src/sdk/context/calibration.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import heldOut from "../fixtures/o200k_held_out.json" with { type: "json" };
import { addAll, answer, groups, open, system, tokensOf, user } from "../support/context.ts";

/** Returns o200k's count of messages of text, with the same overhead as the estimate's. */
function o200k(messages: readonly Message[]): number {
  return messages.reduce((sum, { content }) => sum + 4 + countTokens(textOf(content)), 0);
}

for (const [kind, samples] of Map.groupBy(heldOut, (sample) => sample.kind)) {
  Deno.test(`status() is within 2 % of o200k after ten requests of ${kind}`, async () => {
    const { context, answered, status } = await open();
    const tools = [{ name: "read", description: "Reads a file", parameters: { type: "object" } }];
    const sent: Message[] = [];
    let error = 1;
    for (let request = 0; request <= 10; request++) {
      const { text } = samples[request % samples.length]!;
      const added = [user(text), answer(`${request}: ${text}`)];
      await addAll(context, added);
      sent.push(...added);
      await context.getMessagesForRequest({ tools, token_budget: 1_000_000 });
      error = status().tokens / o200k(sent) - 1;
      answered(o200k(sent) + 30); // the tools: what the provider makes of them
    }
    assert(Math.abs(error) <= 0.02, `off by ${(error * 100).toFixed(1)} %`);
  });
}

Deno.test("getMessagesForRequest() compacts by reported tokens, so that a model that counts more tokens does not overflow", async () => {
  const [plain, heavy] = [await open({ token_meter: "estimate" }), await open()];
  for (const opened of [plain, heavy]) await opened.context.addMessage(system("Be brief."));
  for (let request = 0; request < 60; request++) {
    for (const opened of [plain, heavy]) {
      await addAll(opened.context, [user(`go ${request}`), ...groups(1, 300, `r${request}`)]);
      const view = await opened.context.getMessagesForRequest({ token_budget: 10_000 });
      const real = Math.round(tokensOf(view) * 1.5); // this model's tokenizer makes half as many again
      if (opened === heavy) assert(real <= 10_000, `request ${request} takes ${real} tokens`);
      opened.answered(real);
    }
  }
  assert(heavy.status().compactions > plain.status().compactions);
});

Deno.test("getMessagesForRequest() ignores a usage that a provider cannot have counted", async () => {
  const { context, answered, status } = await open();
  const history = [user("hi"), ...groups(10, 300)];
  await addAll(context, history);
  await context.getMessagesForRequest();
  answered(10);
  await context.getMessagesForRequest();
  answered(10_000_000);
  await context.getMessagesForRequest();
  assertEquals(status().tokens, tokensOf(history));
});

Deno.test("a restarted session counts by the logged usages: the same views, byte for byte, and the same compactions", async () => {
  const first = await open();
  const usages: { messages: number; input_tokens: number }[] = [];
  const token_budget = 9000;
  let history = 0;
  const step = async (opened: typeof first, turn: number, log: boolean) => {
    const added = [user(`turn ${turn}`), ...groups(1, 200 + turn % 7 * 40, `t${turn}`)];
    await addAll(opened.context, added);
    const view = await opened.context.getMessagesForRequest({ token_budget });
    const input_tokens = Math.round(tokensOf(view) * 1.31);
    if (log) {
      history += added.length;
      usages.push({ messages: history, input_tokens });
    }
    opened.answered(input_tokens);
    return JSON.stringify(view);
  };
  let kept = usages.length;
  for (let turn = 0; turn < 47; turn++) {
    const { compactions } = first.status();
    await step(first, turn, true);
    if (first.status().compactions > compactions) kept = usages.length - 1;
  }
  assert(first.status().compactions > 0 && kept < usages.length - 2);
  const state = JSON.parse(JSON.stringify(first.state));
  const second = await open({}, { state, usages: usages.slice(kept) });
  await second.context.setMessages(await first.context.getMessages());
  for (let turn = 47; turn < 120; turn++) {
    assertEquals(await step(second, turn, false), await step(first, turn, false), `turn ${turn}`);
    assertEquals(second.status(), first.status());
  }
  assert(first.status().compactions > 2);
});

Deno.test("token_meter: exact is refused with the values that it may have", async () => {
  const error = await assertRejects(() => open({ token_meter: "exact" }), PreampError);
  assertStringIncludes(error.message, "token_meter");
  assertStringIncludes(error.message, "calibrated");
});

Deno.test("Calibration turns tokens into estimates and back", () => {
  const calibration = new Calibration();
  assertEquals([calibration.tokensOf(500), calibration.estimateOf(500)], [500, 500]);
  calibration.observe({ view: 1000, extras: 200, reported: 1400 });
  calibration.observe({ view: 3000, extras: 200, reported: 4000 });
  assertEquals(calibration.tokensOf(3000), 3800);
  for (const view of [100, 3000, 9000]) {
    assert(Math.abs(calibration.estimateOf(calibration.tokensOf(view)) - view) <= 1);
  }
  const copy = new Calibration();
  copy.restore(calibration.save()!);
  assertEquals(copy.tokensOf(7777), calibration.tokensOf(7777));
});
