/** The tokens that a request may have, seen through `context-simple`. */
import { toolTokens } from "preamp";
import { assertEquals } from "../../assert.ts";
import { open, providerOf, tokensOf, user } from "../../support/context.ts";

Deno.test("the budget is window - half of max_output - 4096 - tool schemas - injections, with the full reserve if configured", async () => {
  const provider = providerOf(100_000, 4096);
  const { context, status, answered } = await open();
  await reportedUsage(context, answered);
  await context.getMessagesForRequest({ provider });
  assertEquals(status().budget, 100_000 - 2048 - 4096);
  const tools = [{ name: "calculator", description: "adds", parameters: { type: "object" } }];
  const injections = [user("a reminder")];
  await context.getMessagesForRequest({ provider, tools, injections });
  assertEquals(status().budget, 93_856 - toolTokens(tools) - tokensOf(injections));
  const full = await open({ output_reserve_fraction: 1 });
  await reportedUsage(full.context, full.answered);
  await full.context.getMessagesForRequest({ provider });
  assertEquals(full.status().budget, 100_000 - 4096 - 4096);
});

Deno.test("the margin of the budget is a tenth of the window until a usage was reported", async () => {
  const { context, status, answered } = await open();
  await context.getMessagesForRequest({ provider: providerOf(100_000, 4096) });
  assertEquals(status().budget, 100_000 - 2048 - 10_000);
  await reportedUsage(context, answered);
  await context.getMessagesForRequest({ provider: providerOf(100_000, 4096) });
  assertEquals(status().budget, 100_000 - 2048 - 4096);
});

/** A first request that the provider answered with its usage. */
async function reportedUsage(
  context: Awaited<ReturnType<typeof open>>["context"],
  answered: Awaited<ReturnType<typeof open>>["answered"],
): Promise<void> {
  await context.addMessage(user("hello"));
  const view = await context.getMessagesForRequest({ token_budget: 1000 });
  answered(tokensOf(view));
}

Deno.test("the margin is a tenth of a small window, and a part remains of a window smaller than its answers", async () => {
  const { context, status } = await open();
  await context.getMessagesForRequest({ provider: providerOf(10_000, 1000) });
  assertEquals(status().budget, 10_000 - 500 - 1000);
  await context.getMessagesForRequest({ provider: providerOf(4000, 16_000) });
  assertEquals(status().budget, 1000);
});

Deno.test("token_budget wins over the provider, and a configured max_tokens limits the provider's window", async () => {
  const provider = providerOf(100_000, 4096);
  const { context, status } = await open({ max_tokens: 50_000 });
  await context.getMessagesForRequest({ provider, token_budget: 70_000 });
  assertEquals(status().budget, 70_000);
  await context.getMessagesForRequest({ provider });
  assertEquals(status().budget, 50_000);
  const { context: free, status: freeStatus, answered } = await open();
  await reportedUsage(free, answered);
  await free.getMessagesForRequest({ provider: providerOf(1_000_000, 4096) });
  assertEquals(freeStatus().budget, 1_000_000 - 2048 - 4096, "the default of max_tokens is not a limit");
});

Deno.test("the budget comes from max_tokens when the provider's info fails", async () => {
  const provider = {
    ...providerOf(0, 0),
    getInfo: () => {
      throw new Error("not yet");
    },
  };
  const { context, status } = await open({ max_tokens: 1234 });
  await context.getMessagesForRequest({ provider });
  assertEquals(status().budget, 1234);
});
