/** A loop of a stranger's, made of the exported parts: its log is that of the built-in loop. */
import { assistantMessage, callModel, chooseProvider, runToolCalls } from "../../../src/sdk/loop.ts";
import type { Coordinator, Orchestrator } from "../../../src/sdk/types.ts";
import { assertEquals } from "../../assert.ts";
import { calls, kit, type PlanOptions, tool } from "../../support/sessions.ts";

/** A loop that calls models and tools until an answer has no call. */
async function ownLoop(coordinator: Coordinator): Promise<void> {
  const { cancellation, session_id } = coordinator;
  const execute: Orchestrator["execute"] = async (prompt, context, providers, tools, hooks) => {
    await context.addMessage({ role: "user", content: String(prompt) });
    const chosen = chooseProvider(providers);
    for (let iteration = 1;; iteration++) {
      const asked = await hooks.emit("provider:request", { provider: chosen.name, iteration });
      await coordinator.processHookResult(asked, "provider:request");
      const messages = await context.getMessagesForRequest({ provider: chosen.provider });
      const response = await callModel(chosen, { messages }, { hooks, coordinator, iteration });
      await context.addMessage(assistantMessage(response));
      if (!response.tool_calls) return String(response.content[0]?.text);
      const batch = await runToolCalls(response.tool_calls, {
        tools,
        hooks,
        max_parallel: 1,
        parallel_group_id: coordinator.newId("grp"),
        session_id,
        signal: cancellation.signal,
        process: (emission, event) => coordinator.processHookResult(emission, event),
        keep() {},
      });
      for (const message of batch.messages) await context.addMessage(message);
    }
  };
  await coordinator.mount("orchestrator", { execute });
}

Deno.test("callModel() and runToolCalls() make a loop with the log of the built-in one", async () => {
  const plan = (): PlanOptions => ({ providers: [[calls(["t"]), "it is done"]], tools: [tool("t")] });
  const own = kit({ ...plan(), orchestrator: ownLoop });
  const builtin = kit(plan());
  assertEquals((await own.run()).output_text, "it is done");
  await builtin.run();
  const optional = ["prompt:submit", "prompt:complete"];
  const kept = (names: string[]) => names.filter((name) => !optional.includes(name));
  assertEquals(kept(own.turn()), kept(builtin.turn()));
  for (const event of ["content_block:end", "provider:response", "tool:post"]) {
    assertEquals(own.data(event), builtin.data(event), event);
  }
});

Deno.test("callModel() repeats a passing failure, reports the last one and throws it", async () => {
  const error = { type: "LLMError" as const, message: "no", status_code: 503, retryable: true };
  for (const failures of [2, 3]) {
    const script = [...Array.from({ length: failures }, () => ({ error })), "answered"];
    const { run, data, clock } = kit({ providers: [script], orchestrator: ownLoop });
    const ended = run();
    await clock.advance(60_000);
    const outcome = await ended;
    assertEquals([outcome.status, data("provider:retry").length, data("provider:error").length], [
      ...(failures === 2 ? ["completed", 2, 0] as const : ["failed", 2, 1] as const),
    ]);
  }
});
