/** A loop of a stranger's that only calls: the kernel makes the log of the built-in loop. */
import { assistantMessage, chooseProvider } from "../../src/sdk/loop.ts";
import type { Coordinator, Orchestrator } from "../../src/sdk/types.ts";
import { LLMError } from "../../src/sdk/llm_errors.ts";
import { MockContextManager, MockProvider } from "preamp/testing";
import { assertEquals } from "../assert.ts";
import { calls, kit, type KitOptions, tool } from "../support/sessions.ts";

/** A loop that calls models and tools until an answer has no call. */
async function ownLoop(coordinator: Coordinator): Promise<void> {
  const execute: Orchestrator["execute"] = async (prompt, context, providers) => {
    await context.addMessage({ role: "user", content: String(prompt) });
    const { provider } = chooseProvider(providers);
    while (true) {
      const messages = await context.getMessagesForRequest({ provider });
      const response = await provider.complete({ messages }, { max_retries: 2 });
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

const loop = (execute: Orchestrator["execute"]) => async (coordinator: Coordinator) =>
  await coordinator.mount("orchestrator", { execute });

const passing = { type: "LLMError" as const, message: "no", status_code: 503, retryable: true };

Deno.test("a loop that only calls has the log of the built-in one", async () => {
  const plan = (): KitOptions => ({ providers: [[calls(["t"]), "it is done"]], tools: [tool("t")] });
  const own = kit({ ...plan(), orchestrator: ownLoop });
  const builtin = kit(plan());
  assertEquals((await own.run()).output_text, "it is done");
  await builtin.run();
  assertEquals(own.turn(), builtin.turn());
  for (const event of ["provider:request", "content_block:end", "provider:response", "tool:post"]) {
    assertEquals(own.data(event), builtin.data(event), event);
  }
});

Deno.test("a passing failure is repeated, the last one is reported and thrown", async () => {
  for (const failures of [2, 3]) {
    const script = [...Array.from({ length: failures }, () => ({ error: passing })), "answered"];
    const { run, data, clock } = kit({ providers: [script], orchestrator: ownLoop });
    const ended = run();
    await clock.advance(60_000);
    const outcome = await ended;
    assertEquals([outcome.status, data("provider:retry").length, data("provider:error").length], [
      ...(failures === 2 ? ["completed", 2, 0] as const : ["failed", 2, 1] as const),
    ]);
  }
});

Deno.test("no retry waits beyond the time of the run", async () => {
  for (const [max_duration_s, retries] of [[60, 1], [1, 0]] as const) {
    const { run, data, clock } = kit({
      providers: [[{ error: { ...passing, retry_after: 5 } }, "answered"]],
      limits: { max_duration_s },
      orchestrator: ownLoop,
    });
    const ended = run();
    await clock.advance(60_000);
    await ended;
    assertEquals(data("provider:retry").length, retries);
  }
});

Deno.test("a request that is too long is shortened once, within the same request", async () => {
  for (const refusals of [1, 2]) {
    const asked: number[] = [];
    const provider = new MockProvider({ responses: ["short enough"] });
    const answer = provider.complete.bind(provider);
    provider.complete = (request, options) => {
      if (asked.push(request.messages.length) > refusals) return answer(request, options);
      return Promise.reject(new LLMError("ContextLengthError", "prompt is too long: 9 tokens > 5 maximum"));
    };
    const { run, data } = kit({
      providers: [provider],
      orchestrator: loop(async (_prompt, _context, { mock }) => {
        const message = { role: "user", content: "hi" } as const;
        const shorten = () => Promise.resolve({ messages: [message] });
        const response = await mock!.complete({ messages: [message, message] }, { shorten });
        return String(response.content[0]?.text);
      }),
    });
    const { status, error } = await run();
    assertEquals([status, error?.code, asked], [
      ...(refusals === 1 ? ["completed", undefined] as const : ["failed", "context_overflow"] as const),
      [2, 1],
    ]);
    const events = ["provider:request", "provider:retry", "provider:error"].map((event) =>
      data(event).length
    );
    assertEquals(events, [1, 1, refusals - 1]);
    assertEquals(data("provider:retry")[0]?.requested_tokens, 9);
  }
});

Deno.test("a gate that a loop emits is that of its next model call, whichever of both comes first", async () => {
  const { run, data } = kit({
    providers: [["one", "two"]],
    hooks: [({ hooks }) => {
      hooks.register("provider:request", () => ({
        action: "inject_context",
        context_injection: "be brief",
        ephemeral: true,
      }));
    }],
    orchestrator: loop(async (_prompt, context, providers, _tools, hooks) => {
      const provider = providers.mock!;
      await hooks.emit("provider:request", { provider: "mock" });
      await hooks.emit("provider:request", { provider: "mock" });
      const view = await context.getMessagesForRequest({ provider });
      await provider.complete({ messages: view });
      await context.getMessagesForRequest({ provider });
      await hooks.emit("provider:request", { provider: "mock" });
      await provider.complete({ messages: [] });
      return String(view.length);
    }),
  });
  const { output_text } = await run();
  assertEquals([output_text, data("provider:request").length, data("provider:response").length], ["1", 2, 2]);
});

Deno.test("a provider whose info throws answers, and no call asks it for that again", async () => {
  const provider = new MockProvider({ responses: ["one", "two"] });
  let asked = 0;
  provider.getInfo = () => {
    asked++;
    throw new Error("no info");
  };
  const { run, warnings } = kit({ providers: [provider], orchestrator: ownLoop });
  assertEquals((await run()).output_text, "one");
  const before = asked;
  assertEquals([(await run()).output_text, asked], ["two", before]);
  assertEquals(warnings.filter(({ code }) => code === "provider_info_failed").length, 1);
});

Deno.test("a context manager that refuses a broken answer does not hide why it broke", async () => {
  const provider = new MockProvider();
  provider.complete = (_request, options) => {
    options?.onDelta?.({ block_index: 0, block_type: "text", delta: "half" });
    return Promise.reject(new LLMError("StreamError", "it broke"));
  };
  const { run, warnings } = kit({
    providers: [provider],
    context: async (coordinator) => {
      const context = new MockContextManager();
      const add = context.addMessage.bind(context);
      context.addMessage = (message) =>
        message.metadata?.broken_off === true ? Promise.reject(new Error("full")) : add(message);
      await coordinator.mount("context", context);
    },
  });
  const { status, error, output_text } = await run();
  assertEquals([status, error?.message.includes("it broke"), output_text], ["failed", true, "half"]);
  assertEquals(warnings.filter(({ code }) => code === "context_failed").map(({ message }) => message), [
    "full",
  ]);
});
