/** A loop of a stranger's, made of the exported parts: its log is that of the built-in loop. */
import { assistantMessage, callModel, chooseProvider } from "../../../src/sdk/loop.ts";
import type { Coordinator, Orchestrator } from "../../../src/sdk/types.ts";
import { assertEquals } from "../../assert.ts";
import { calls, kit, type KitOptions, tool } from "../../support/sessions.ts";

/** A loop that calls models and tools until an answer has no call. `used_ms`: time that the turn has used. */
async function loopAfter(coordinator: Coordinator, used_ms: number): Promise<void> {
  const started_ms = coordinator.clock.monotonic() - used_ms;
  const execute: Orchestrator["execute"] = async (prompt, context, providers, _tools, hooks) => {
    await context.addMessage({ role: "user", content: String(prompt) });
    const chosen = chooseProvider(providers);
    for (let iteration = 1;; iteration++) {
      const asked = await hooks.emit("provider:request", { provider: chosen.name, iteration });
      await coordinator.processHookResult(asked, "provider:request");
      const messages = await context.getMessagesForRequest({ provider: chosen.provider });
      const options = { hooks, coordinator, iteration, started_ms };
      const response = await callModel(chosen, { messages }, options);
      await context.addMessage(assistantMessage(response));
      if (!response.tool_calls) return String(response.content[0]?.text);
      const facts = { parallel_group_id: coordinator.newId("grp") };
      for (const call of response.tool_calls) {
        await context.addMessage(await coordinator.callTool(call, facts));
      }
    }
  };
  await coordinator.mount("orchestrator", { execute });
}

const ownLoop = (coordinator: Coordinator) => loopAfter(coordinator, 0);

Deno.test("callModel() and callTool() make a loop with the log of the built-in one", async () => {
  const plan = (): KitOptions => ({ providers: [[calls(["t"]), "it is done"]], tools: [tool("t")] });
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

Deno.test("callModel() does not wait for a retry beyond the time of the turn", async () => {
  const error = { type: "LLMError" as const, message: "no", status_code: 503, retryable: true };
  for (const [left_ms, retries] of [[60_000, 1], [1, 0]] as const) {
    const { run, data, clock } = kit({
      providers: [[{ error }, "answered"]],
      limits: { max_duration_s: 300 },
      orchestrator: (coordinator) => loopAfter(coordinator, 300_000 - left_ms),
    });
    const ended = run();
    await clock.advance(60_000);
    await ended;
    assertEquals(data("provider:retry").length, retries);
  }
});
