/** Model calls that break off after a part of their answer: what counts for the run's limits. */
import { LLMError, type RunLimits } from "preamp";
import { MockProvider } from "preamp/testing";
import { assertEquals } from "../assert.ts";
import { calls, kit, tool, until } from "../support/sessions.ts";

const PART = { input_tokens: 15_000, output_tokens: 0, total_tokens: 15_000, cost_usd: "0.01" };
const broken = () => ({ error: new LLMError("ProviderUnavailableError", "It broke", { usage: PART }) });

/** Runs a loop whose first provider breaks off and whose second one answers. */
async function runWithFallback(limits: Partial<RunLimits>) {
  const { run, data } = kit({
    limits,
    loop: { fallback: true, max_retries: 0 },
    providers: [
      new MockProvider({ name: "mock", responses: [broken()], priority: 1 }),
      new MockProvider({ name: "second", responses: ["done"], priority: 2 }),
    ],
  });
  const { status, stop_reason } = await run();
  assertEquals(data("provider:error").map(({ usage }) => usage), [PART]);
  return [status, stop_reason];
}

Deno.test("a call of the loop that breaks off counts with the usage in its provider:error", async () => {
  assertEquals((await runWithFallback({ max_total_tokens: 14_000 }))[1], "limit:max_total_tokens");
  assertEquals((await runWithFallback({ max_cost_usd: "0.01" }))[1], "limit:max_cost_usd");
  assertEquals((await runWithFallback({}))[0], "completed");
});

Deno.test("a call that breaks off does not count when no entry of the log has its usage", async () => {
  const request = { messages: [{ role: "user" as const, content: "safe?" }] };
  const by_hook = kit({
    limits: { max_total_tokens: 14_000 },
    providers: [new MockProvider({ responses: [calls(["t"]), broken(), "done"] })],
    tools: [tool("t")],
    hooks: [(coordinator) => {
      coordinator.hooks.register("tool:pre", async () => {
        const failure = await coordinator.providers.mock!.complete(request).catch((error) => error);
        assertEquals(failure.message, "It broke");
        return null;
      });
    }],
  });
  const by_retry = kit({
    limits: { max_total_tokens: 14_000 },
    loop: { max_retries: 1 },
    providers: [new MockProvider({ responses: [broken(), "done"] })],
  });
  for (const { run, entries, clock } of [by_hook, by_retry]) {
    const running = run();
    await until(() => entries.some(({ event }) => event === "provider:retry" || event === "tool:pre"));
    await clock.advance(60_000);
    const { status, output_text } = await running;
    assertEquals([status, output_text], ["completed", "done"]);
    assertEquals(entries.some(({ event }) => event === "provider:error"), false);
  }
});

Deno.test("a stream that a cancellation or the end of the time breaks off does not count", async () => {
  for (const [end, stop_reason] of [["cancel", "cancelled"], ["time", "limit:max_duration_s"]]) {
    const provider = new MockProvider();
    provider.complete = (_request, options) => {
      const { onDelta, signal } = options!; // those of the loop
      onDelta!({ block_index: 0, block_type: "text", delta: "a part" });
      const failure = new LLMError("AbortError", "It was cancelled", { usage: PART });
      return new Promise((_, reject) => signal!.addEventListener("abort", () => reject(failure)));
    };
    const { run, data, session, clock } = kit({ limits: { max_duration_s: 60 }, providers: [provider] });
    const running = run();
    await until(() => data("content_block:delta").length > 0);
    await (end === "cancel" ? session.cancel("immediate") : clock.advance(60_000));
    assertEquals((await running).stop_reason, stop_reason);
    assertEquals([data("llm:stream_aborted").length, data("provider:error")], [1, []]);
  }
});
