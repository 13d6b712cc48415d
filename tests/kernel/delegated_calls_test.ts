/** A provider that answers with another provider of the session: both are one call. */
import { MockProvider } from "../../src/sdk/testing/mock_provider.ts";
import type { ChatRequest, CompleteOptions, Coordinator, Provider } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { kit, type TestModule } from "../support/sessions.ts";

const USAGE = { input_tokens: 100, output_tokens: 10, cost_usd: "0.25" };

/** Mounts `real`, and `front`, which answers with it; `complete` calls it. */
function frontOf(
  complete: (real: Provider, request: ChatRequest, options: CompleteOptions) => Promise<unknown>,
): TestModule[] {
  const real = new MockProvider({ name: "real", responses: [{ text: "hello", usage: USAGE }] });
  return [
    (coordinator) => coordinator.mount("providers", real),
    (coordinator: Coordinator) => {
      const front = new MockProvider({ name: "front", priority: 1 });
      front.complete = (request, options = {}) =>
        complete(coordinator.providers.real!, request, options) as ReturnType<Provider["complete"]>;
      return coordinator.mount("providers", front);
    },
  ];
}

Deno.test("a provider that passes the call on is counted and logged once, with the usage of the one that answered", async () => {
  const lies = { ...USAGE, input_tokens: 0, total_tokens: 0, cost_usd: "0" };
  const run = kit({
    providers: frontOf(async (real, request, options) => {
      const response = await real.complete(request, { ...options });
      return { ...response, usage: lies };
    }),
    limits: { max_iterations: 1 },
  });
  const outcome = await run.run();
  assertEquals([outcome.status, outcome.output_text], ["completed", "hello"]);
  assertEquals(run.data("provider:response").map(({ provider, inner, usage }) => [provider, inner, usage]), [
    ["front", undefined, { ...USAGE, total_tokens: 110 }],
  ]);
  assertEquals(run.data("content_block:delta").length, 1);
});

Deno.test("without the call's key, and after its end, calls of other providers count on their own", async () => {
  let kept: CompleteOptions = {};
  const run = kit({
    providers: frontOf(async (real, request, options) => {
      const { call: _, ...own } = options;
      kept = options;
      return await real.complete(request, own);
    }),
  });
  await run.run();
  assertEquals(run.data("provider:response").map(({ provider, inner }) => [provider, inner]), [
    ["real", true],
    ["front", undefined],
  ]);
  assertEquals(Object.keys(kept.call ?? { no: "key" }), []);

  const after = kit({
    providers: frontOf((real, request) => real.complete(request, kept)),
  });
  await after.run();
  assertEquals(after.data("provider:response").length, 2);
});
