import { createLoop } from "../../src/sdk/loop/loop.ts";
import { ProviderInfo } from "../../src/sdk/providers.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { JsonObject, Orchestrator, Provider } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertThrows } from "../assert.ts";
import { calls, hook, kit, tool, until } from "../support/sessions.ts";
import { brief, CALL, END, START, TEXT } from "../support/turn_events.ts";

Deno.test("prompt:complete counts code points and splits none of them", async () => {
  for (
    const [answer, preview] of [["é😀", "é😀"], ["😀".repeat(200), "😀".repeat(200)], [
      "😀".repeat(201),
      "😀".repeat(200),
    ]] as const
  ) {
    const { run, data } = kit({ providers: [[answer]] });
    await run("a question");
    assertEquals(data("prompt:complete"), [{ response_preview: preview, length: [...answer].length }]);
  }
});

Deno.test("a turn with a text has its events, messages and outcome", async () => {
  const { run, turn, messages, data } = kit({ providers: [["the answer"]] });
  const outcome = await run("a question");
  assertEquals(outcome, {
    status: "completed",
    stop_reason: "end_turn",
    output_text: "the answer",
    output: [{ type: "text", text: "the answer" }],
    error: null,
  });
  assertEquals(turn(), [...START, ...TEXT, ...END]);
  assertEquals(brief(messages()), [["user", "a question"], ["assistant", "the answer"]]);
  assertEquals(data("execution:start"), [{ prompt: "a question" }]);
  assertEquals(data("provider:request"), [{ provider: "mock", iteration: 1 }]);
  assertEquals(data("prompt:complete"), [{ response_preview: "the answer", length: 10 }]);
  assertEquals(data("execution:end"), [{ response: "the answer", status: "completed" }]);
  assertEquals(data("orchestrator:complete"), [
    { orchestrator: "loop-streaming", turn_count: 1, status: "success" },
  ]);
});

Deno.test("entries of a turn have turn_id and iteration, others do not", async () => {
  const { run, session, entries } = kit({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t")],
    system: "Be brief.",
  });
  await run();
  await session.cleanup("completed");
  const moments = entries.map((entry) => [entry.event, entry.turn_id, entry.iteration]);
  assertEquals(
    moments.filter(([event]) =>
      ["session:start", "prompt:submit", "provider:response", "orchestrator:complete", "session:end"]
        .includes(String(event))
    ),
    [
      ["session:start", undefined, undefined],
      ["prompt:submit", "turn_1", undefined],
      ["provider:response", "turn_1", 1],
      ["provider:response", "turn_1", 2],
      ["orchestrator:complete", "turn_1", 2],
      ["session:end", undefined, undefined],
    ],
  );
  assertEquals(entries.filter((entry) => entry.event === "context:message")[0], {
    event: "context:message",
    session_id: "ses_1",
    data: { index: 0, message: { role: "system", content: "Be brief.", metadata: { source: "plan" } } },
  });
});

Deno.test("the last event of a turn has its turn_id, also when a handler of it emits an event", async () => {
  const { run, entries } = kit({
    hooks: [(coordinator) => {
      coordinator.hooks.register("orchestrator:complete", async () => {
        await coordinator.hooks.emit("hook-0:report", {});
      });
    }],
  });
  await run();
  const last = entries.slice(-2).map(({ event, turn_id, iteration }) => [event, turn_id, iteration]);
  assertEquals(last, [["hook-0:report", "turn_1", 1], ["orchestrator:complete", "turn_1", 1]]);
});

Deno.test("module:skipped contains the location in the module's files", async () => {
  const placeOf = () => "https://m.example/mod.ts:3:7";
  const { run, data } = kit({ opened: { placeOf }, tools: [() => Promise.reject(new Error("no key"))] });
  await run();
  assertEquals(data("module:skipped").map(({ message }) => message), [
    "https://m.example/mod.ts:3:7: no key",
  ]);
});

Deno.test("a denied prompt ends the turn before anything is stored", async () => {
  const provider = new MockProvider();
  const { run, turn, data, of, messages } = kit({
    providers: [provider],
    hooks: [hook("prompt:submit", () => ({ action: "deny", reason: "off topic" }))],
  });
  const outcome = await run();
  assertEquals(outcome, {
    status: "denied",
    stop_reason: "denied",
    output_text: "Operation denied: off topic",
    output: [{ type: "text", text: "Operation denied: off topic" }],
    error: { code: "denied", message: "off topic" },
  });
  assertEquals(turn(), ["execution:start", "prompt:submit", "execution:end", "orchestrator:complete"]);
  assertEquals(of("prompt:submit")[0]?.verdict, {
    action: "deny",
    hook_name: "test-hook",
    reason: "off topic",
  });
  assertEquals(data("execution:end"), [{ response: "Operation denied: off topic", status: "completed" }]);
  assertEquals(data("orchestrator:complete"), [
    { orchestrator: "loop-streaming", turn_count: 0, status: "incomplete" },
  ]);
  assertEquals([provider.call_count, messages()], [0, []]);
});

Deno.test("a denied request ends the turn without a call", async () => {
  const provider = new MockProvider({ responses: [calls(["t"]), "done"] });
  const { run, turn } = kit({
    providers: [provider],
    tools: [tool("t")],
    hooks: [
      hook(
        "provider:request",
        (_event, data) => data.iteration === 2 ? { action: "deny", reason: "enough" } : null,
      ),
    ],
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.output_text], ["denied", "Operation denied: enough"]);
  assertEquals(provider.call_count, 1);
  assertEquals(turn(), [
    ...START,
    ...CALL,
    ...[
      "tool:pre",
      "tool:post",
      "context:message",
      "provider:request",
      "execution:end",
      "orchestrator:complete",
    ],
  ]);
});

Deno.test("a steering text joins the next request; a blank one is refused; none is left for the next turn", async () => {
  const provider = new MockProvider({ responses: [calls(["t"]), "done", "second"] });
  const { run, session, turn, data, entries } = kit({
    providers: [provider],
    tools: [tool("t", () => {
      steer("look here");
      assertThrows(() => steer("  \n"), Error, "must not be blank");
    })],
    hooks: [
      hook("orchestrator:complete", () => void assertThrows(() => steer("late"), Error, "is ending")),
    ],
  });
  const steer = (text: string) => (session.getCapability("session.steer") as (text: string) => void)(text);
  await run();
  assertEquals(turn(), [
    ...START,
    ...CALL,
    ...["tool:pre", "tool:post", "context:message", "orchestrator:steering_injected", "context:message"],
    ...TEXT,
    ...END,
  ]);
  assertEquals(data("orchestrator:steering_injected"), [
    { orchestrator: "loop-streaming", content: "look here", iteration: 2, queued_remaining: 0 },
  ]);
  assertEquals(brief(provider.requests[1]!.messages).at(-1), ["user", "look here"]);
  entries.length = 0;
  await run("again");
  assertEquals(data("orchestrator:steering_injected"), []);
});

Deno.test("a steering text before the turn and one during the last answer are both delivered", async () => {
  let asked = 0;
  const { run, session, data } = kit({
    providers: [[() => {
      if (++asked === 1) (session.getCapability("session.steer") as (text: string) => void)("one more thing");
      return `answer ${asked}`;
    }]],
  });
  await session.initialize();
  (session.getCapability("session.steer") as (text: string) => void)("early");
  assertEquals((await run()).output_text, "answer 2");
  assertEquals(data("orchestrator:steering_injected").map(({ content }) => content), [
    "early",
    "one more thing",
  ]);
});

Deno.test("the capability session.last_usage returns the usage of each answer to the loop", async () => {
  const last = () => (session.getCapability("session.last_usage") as () => unknown)();
  const seen: unknown[] = [];
  const usage = (input_tokens: number) => ({ input_tokens, output_tokens: 1 });
  const { run, session } = kit({
    providers: [[
      () => {
        seen.push(last());
        return { tool_calls: [{ name: "t", arguments: {} }], usage: usage(30) };
      },
      () => {
        seen.push(last());
        return { text: "done", usage: usage(40) };
      },
    ]],
    tools: [tool("t", () => seen.push(last()))],
  });
  await session.initialize();
  assertEquals(last(), null);
  await run();
  assertEquals([...seen, last()], [
    null,
    { answer: 1, input_tokens: 30 },
    { answer: 1, input_tokens: 30 },
    { answer: 2, input_tokens: 40 },
  ]);
});

Deno.test("an orchestrator of five arguments works", async () => {
  const config = {
    orchestrator: "five",
    max_iterations: -1,
    max_parallel_tools: 1,
    steering: false,
    request: {},
  };
  const { run, data } = kit({
    orchestrator: async (coordinator) => {
      const loop = createLoop(config, undefined, coordinator);
      const five: Orchestrator = {
        execute: (prompt, context, providers, tools, hooks) =>
          loop.execute(prompt, context, providers, tools, hooks),
      };
      await coordinator.mount("orchestrator", five);
    },
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t")],
  });
  assertEquals((await run()).status, "completed");
  assertEquals(data("orchestrator:complete").length, 1);
});

Deno.test("a hook may rewrite the prompt", async () => {
  const { run, messages, data } = kit({
    hooks: [
      hook("prompt:submit", (_event, data) => ({ action: "modify", data: { ...data, prompt: "rewritten" } })),
    ],
  });
  await run("original");
  assertEquals(brief(messages())[0], ["user", "rewritten"]);
  assertEquals(data("prompt:submit"), [{ prompt: "rewritten" }]);
});

Deno.test("a graceful cancel before the request calls no model", async () => {
  const provider = new MockProvider({ responses: ["never"] });
  const made = kit({
    providers: [provider],
    hooks: [hook("provider:request", async () => {
      await made.session.cancel("graceful");
      return null;
    })],
  });
  assertEquals((await made.run()).status, "cancelled");
  assertEquals(provider.requests, []);
});

/** Creates a provider that throws errors like a vendor's SDK. */
function vendor(fields: JsonObject, message: string): Provider {
  return {
    name: "vendor",
    getInfo: () => ProviderInfo({ id: "vendor", display_name: "Vendor" }),
    listModels: () => Promise.resolve([]),
    complete: () => Promise.reject(Object.assign(new Error(message), fields)),
    parseToolCalls: () => [],
  };
}

for (
  const [status, message, type, code] of [
    [401, "401 Incorrect API key provided", "AuthenticationError", "provider_auth"],
    [403, "403 Country not supported", "AccessDeniedError", "provider_auth"],
    [400, "400 messages must not be empty", "InvalidRequestError", "provider_bad_response"],
  ] as const
) {
  Deno.test(`an error with the status ${status} fails the run as ${code}: ${type}`, async () => {
    const { run, data } = kit({ providers: [vendor({ status }, message)] });
    const { status: ended, error } = await run();
    assertEquals([ended, error], ["failed", { code, message }]);
    assertEquals(data("provider:error"), [{
      provider: "vendor",
      error: { type, msg: message },
      retryable: false,
      status_code: status,
    }]);
  });
}

Deno.test("an error with a transient status is retried after the delay of its headers", async () => {
  const fields = { status: 429, headers: new Headers({ "retry-after": "120" }) };
  const { run, data, clock } = kit({
    providers: [vendor(fields, "429 slow down")],
    loop: { max_retries: 1 },
  });
  const running = run();
  await until(() => data("provider:retry").length === 1);
  const { delay, error_type } = data("provider:retry")[0]!;
  assert(Number(delay) >= 60, String(delay)); // 120 s with jitter of a half at least
  assertEquals(error_type, "RateLimitError");
  clock.advance(200_000);
  assertEquals((await running).error?.code, "provider_rate_limited");
});
