import * as providerReplay from "../../modules/provider-replay/mod.ts";
import type { LLMError } from "../../src/sdk/llm_errors.ts";
import { TestCoordinator } from "../../src/testing/coordinator.ts";
import type { JsonObject } from "../../src/sdk/types.ts";
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { kit, type KitOptions } from "../support/sessions.ts";
import type { Service } from "../support/runs.ts";
import { builtin, play } from "../runs/play.ts";
import { SCENARIOS } from "../runs/scenarios.ts";

async function eventsOf(name: string): Promise<{ events: JsonObject[]; service: Service }> {
  const { entries, service } = await play(SCENARIOS[name]!);
  return { events: JSON.parse(JSON.stringify(entries)), service };
}

/** Runs the loop with the recorded answers and advances the clock until it ends. */
async function runWith(config: JsonObject, options: KitOptions = {}) {
  const session = kit({ providers: [builtin(providerReplay, config)], ...options });
  let done = false;
  const ended = session.run().finally(() => done = true);
  for (let steps = 0; !done && steps < 300; steps++) await session.clock.advance(1_000);
  return { ...session, outcome: await ended };
}

Deno.test("provider-replay streams the recorded answers", async () => {
  const { events } = await eventsOf("a tool call with approval");
  const { outcome, data } = await runWith({ events }, {
    tools: (SCENARIOS["a tool call with approval"]!.plan.tools)!,
  });
  assertEquals([outcome.status, outcome.output_text], ["completed", "6 × 7 is 42."]);
  assertEquals(data("content_block:delta").map(({ delta }) => delta), ["6 × 7 is 42."]);
  assertEquals(data("provider:response").map(({ usage }) => (usage as JsonObject).input_tokens), [40, 60]);
  assertEquals(data("tool:post").map(({ result }) => (result as JsonObject).output), ["42"]);
});

Deno.test("provider-replay fails in the recorded attempts that failed", async () => {
  const { events } = await eventsOf("a retry");
  const { outcome, data } = await runWith({ recording: { events } });
  assertEquals([outcome.status, outcome.output_text], ["completed", "at last"]);
  assertEquals(
    data("provider:retry").map(({ error_type, status_code, retry_after }) => [
      error_type,
      status_code,
      retry_after,
    ]),
    [["RateLimitError", 429, 3], ["ProviderUnavailableError", 503, undefined]],
  );
});

Deno.test("provider-replay ignores facts of a recorded failure that are no numbers", async () => {
  const { events } = await eventsOf("a retry");
  for (const { event, data } of events as { event: string; data: JsonObject }[]) {
    if (event === "provider:retry") Object.assign(data, { status_code: "429", retry_after: "soon" });
  }
  const coordinator = new TestCoordinator();
  await providerReplay.mount(coordinator, { recording: { events } });
  const error = await assertRejects(() => coordinator.providers.replay!.complete({ messages: [] }));
  const { status_code, retry_after } = error as LLMError;
  assertEquals([error.name, status_code, retry_after], ["RateLimitError", null, null]);
});

Deno.test("provider-replay fails after the last recorded answer, and replays a single provider when configured", async () => {
  const { events } = await eventsOf("another provider answers");
  assertEquals((await runWith({ events, provider: "other" })).outcome.output_text, "from the other");
  const { outcome } = await runWith({
    events: (await eventsOf("a tool call with approval")).events.slice(0, 20),
  }, {
    tools: (SCENARIOS["a tool call with approval"]!.plan.tools)!,
  });
  assertMatch(outcome.error!.message, /Cannot answer call 2: the recording has 1 answers/);
});

Deno.test("provider-replay does not mount without a log", async () => {
  for (const config of [{}, { events: [] }, { events: [1] }, { recording: {} }] as JsonObject[]) {
    const { session, data } = kit({ providers: [builtin(providerReplay, config), ["done"]] });
    await session.initialize();
    assertEquals(data("module:skipped").map(({ reason }) => reason), ["mount_failed"]);
  }
});
