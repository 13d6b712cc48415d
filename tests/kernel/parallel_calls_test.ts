/** Loops that make several calls at once, leave calls running, or report usage themselves. */
import { LLMError } from "preamp";
import { MockProvider } from "preamp/testing";
import { assertEquals } from "../assert.ts";
import { calls, kit, type KitOptions, type TestModule, tool } from "../support/sessions.ts";
import type { HookRegistry, JsonObject, Orchestrator, Provider, Tool, Usage } from "../../src/sdk/types.ts";

const ASKED = { messages: [{ role: "user" as const, content: "hi" }] };
const USAGE = { input_tokens: 90, output_tokens: 10, total_tokens: 100, cost_usd: "0.1" };

interface Given {
  readonly mock: Provider;
  readonly tools: Readonly<Record<string, Tool>>;
  readonly hooks: HookRegistry;
}

function runLoop(execute: (given: Given) => Promise<string>, options: KitOptions = {}) {
  const loop: Orchestrator = {
    async execute(prompt, context, { mock }, tools, hooks) {
      await context.addMessage({ role: "user", content: prompt });
      return await execute({ mock: mock!, tools, hooks });
    },
  };
  const orchestrator: TestModule = async (coordinator) => await coordinator.mount("orchestrator", loop);
  return kit({ ...options, orchestrator });
}

Deno.test("each answer to calls that a loop makes at once is reported, with its own usage, and counts", async () => {
  const responses = ["one", "two", "three", "four"].map((text, index) => ({
    text,
    usage: { ...USAGE, input_tokens: index, total_tokens: 10 + index },
  }));
  const { run, data, run_limits } = runLoop(async ({ mock }) => {
    const answers = await Promise.allSettled(responses.map(() => mock.complete(ASKED)));
    return answers.map(({ status }) => status).sort().join();
  }, { providers: [responses], limits: { max_iterations: 3 } });
  const { stop_reason, output_text } = await run();
  assertEquals([stop_reason, output_text], [
    "limit:max_iterations",
    "fulfilled,fulfilled,fulfilled,rejected",
  ]);
  const reported = data("provider:response").map(({ usage, response }) => [usage, response]);
  assertEquals(reported.map(([usage]) => usage), responses.slice(0, 3).map(({ usage }) => usage));
  assertEquals(run_limits.tokens_left, 1_000_000 - 33);
});

Deno.test("a tool call that runs while another answer arrives is reported when it ends", async () => {
  const { run, data } = runLoop(async ({ mock, tools }) => {
    await mock.complete(ASKED);
    const working = tools.work!.execute({});
    await Promise.all([working, mock.complete(ASKED)]);
    return "done";
  }, { providers: [[calls(["work"]), "ok"]], tools: [tool("work")] });
  await run();
  assertEquals(data("tool:post").map(({ tool_call_id }) => tool_call_id), ["c1"]);
});

Deno.test("calls that a loop leaves running are aborted when it returns, before the end of the turn", async () => {
  const aborted: string[] = [];
  const hang = (name: string, signal: AbortSignal) =>
    new Promise<never>(() => signal.addEventListener("abort", () => aborted.push(name)));
  const provider = new MockProvider({ responses: ["the end"] });
  const answer = provider.complete.bind(provider);
  let count = 0;
  provider.complete = (request, options) =>
    ++count === 1 ? hang("provider", options!.signal!) : answer(request, options);
  const { run, turn, data } = runLoop(async ({ mock, tools }) => {
    mock.complete(ASKED).catch(() => {});
    Promise.resolve(tools.slow!.execute({})).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve));
    return "early";
  }, {
    providers: [provider],
    tools: [tool("slow", (_, context) => hang("tool", context!.signal))],
    hooks: [(coordinator) => {
      coordinator.hooks.register("execution:end", async () => {
        await coordinator.providers.mock!.complete(ASKED); // the handlers of the last events may call models
      });
    }],
  });
  const { status, output_text } = await run();
  assertEquals([status, output_text, aborted], ["completed", "early", ["provider", "tool"]]);
  assertEquals(data("tool:error").map(({ error }) => error), [
    { type: "interrupted", msg: "The turn ended before the call" },
  ]);
  assertEquals(turn().slice(-5), [
    "tool:error",
    "prompt:complete",
    "provider:response",
    "execution:end",
    "orchestrator:complete",
  ]);
});

Deno.test("usage that a loop states itself counts, and cannot lower or hide what its calls used", async () => {
  const lie = { input_tokens: -1_000, output_tokens: 0, total_tokens: -1_000, cost_usd: "-1" };
  const failure = { provider: "own", error: { type: "Odd", msg: "" }, retryable: false, status_code: null };
  const { run, data, run_limits } = runLoop(async ({ mock, hooks }) => {
    const own = { provider: "own", tool_calls: false };
    await hooks.emit("provider:response", { ...own, usage: { ...USAGE, total_tokens: 7 } });
    await hooks.emit("provider:response", { ...own, usage: lie });
    await mock.complete(ASKED);
    await hooks.emit("provider:error", { ...failure, usage: lie });
    await hooks.emit("provider:error", { ...failure, usage: { ...lie, cost_usd: "0.5" } });
    await hooks.emit("provider:error", { ...failure, provider: "mock", usage: USAGE }); // the kernel reports its calls
    return "done";
  }, { providers: [[{ text: "hi", usage: USAGE }]] });
  await run();
  const none = { input_tokens: 0, output_tokens: 0, total_tokens: 0, cost_usd: null };
  assertEquals(data("provider:response").map(({ usage }) => usage), [
    USAGE,
    none,
    USAGE,
  ]);
  assertEquals(data("provider:error").map(({ usage }) => usage), [none, { ...none, cost_usd: "0.5" }]);
  assertEquals(run_limits.tokens_left, 1_000_000 - 200);
});

Deno.test("answers of a loop's own model count beside those of providers; only a repeated event is dropped", async () => {
  const own = { provider: "own", tool_calls: false, usage: USAGE };
  const { run, data, run_limits } = runLoop(async ({ mock, hooks }) => {
    const { usage } = await mock.complete(ASKED);
    const answer = { provider: "mock", tool_calls: false, usage };
    await hooks.emit("provider:response", answer);
    await hooks.emit("provider:response", answer);
    await hooks.emit("provider:response", { ...answer, usage: { ...usage } });
    const { input_tokens, output_tokens } = usage!;
    await hooks.emit("provider:response", { usage: { input_tokens, output_tokens } });
    await hooks.emit("provider:response", {});
    await hooks.emit("provider:response", own);
    await hooks.emit("provider:response", own);
    return "done";
  }, { providers: [[{ text: "hi", usage: USAGE }]] });
  await run();
  assertEquals(data("provider:response").map(({ provider }) => provider), ["mock", "own", "own"]);
  assertEquals(run_limits.tokens_left, 1_000_000 - 300);
});

Deno.test("each failure of calls that a loop makes at once is reported with the usage of its own part", async () => {
  const provider = new MockProvider();
  provider.complete = (request, options) => {
    const { content } = request.messages[0]!;
    options?.onDelta?.({ block_index: 0, block_type: "text", delta: String(content).repeat(100) });
    return Promise.reject(new LLMError("StreamError", `${content} broke`));
  };
  const { run, data } = runLoop(async ({ mock }) => {
    const ask = (content: string) => mock.complete({ messages: [{ role: "user", content }] }).catch(() => {});
    await Promise.all([ask("short "), ask("a much longer part ")]);
    return "done";
  }, { providers: [provider] });
  await run();
  const parts = data("provider:error").map(({ error, usage }) => [
    (error as JsonObject).msg,
    (usage as Usage).output_tokens > 400,
  ]);
  assertEquals(parts, [["short  broke", false], ["a much longer part  broke", true]]);
});

Deno.test("a loop cannot state the answer of a mounted model as that of another module", async () => {
  const { run, data } = runLoop(async ({ mock, hooks }) => {
    await mock.complete(ASKED);
    await hooks.emit("provider:response", { provider: "mock", module_id: "hooks-other", usage: USAGE });
    await hooks.emit("provider:error", { provider: "mock", module_id: "hooks-other", error: {} });
    return "done";
  }, { providers: [[{ text: "hi", usage: USAGE }]] });
  await run();
  assertEquals([data("provider:response").length, data("provider:error").length], [1, 0]);
});
