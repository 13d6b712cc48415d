/** What the guard of a provider gives to loops and providers: answers, signals and keys of calls. */
import { ProviderInfo } from "../../src/sdk/providers.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type {
  ChatRequest,
  ChatResponse,
  CompleteOptions,
  ContextManager,
  Coordinator,
  JsonObject,
  Provider,
} from "../../src/sdk/types.ts";
import { assert, assertEquals } from "../assert.ts";
import { until } from "../support/clock.ts";
import { kit, type TestModule } from "../support/sessions.ts";

type Step = (provider: Provider, context: ContextManager) => Promise<unknown>;

/** Mounts a loop that consists of one step. */
function loopOf(step: Step): TestModule {
  return (coordinator: Coordinator) =>
    coordinator.mount("orchestrator", {
      async execute(_prompt: unknown, context: ContextManager, providers: Record<string, Provider>) {
        await step(Object.values(providers)[0]!, context);
        return "done";
      },
    });
}

/** Returns a provider with this `complete`. */
function providerOf(
  complete: (request: ChatRequest, options: CompleteOptions) => unknown,
): MockProvider {
  const provider = new MockProvider();
  provider.complete = complete as MockProvider["complete"];
  return provider;
}

const REQUEST: ChatRequest = { messages: [{ role: "user", content: "x" }] };

Deno.test("a loop receives a canonical answer, whose content and arguments are frozen and shared with the history", async () => {
  let answer: ChatResponse | undefined;
  const { run, messages, data } = kit({
    orchestrator: loopOf(async (provider, context) => {
      answer = await provider.complete(REQUEST);
      await context.addMessage({ role: "assistant", content: answer.content });
    }),
    providers: [
      providerOf(() => ({
        content: "Let me look.",
        tool_calls: [
          { id: "a", tool: "t", input: '{"path": "/tmp"}', cache: 1 },
          { id: "a", name: "t", arguments: "{broken" },
        ],
        metadata: { region: "eu" },
        raw: () => "a function, which no log has",
      })),
    ],
  });
  await run();
  const { content, tool_calls = [], usage, metadata } = answer!;
  const [first, second] = tool_calls;
  assertEquals(content, [
    { type: "text", text: "Let me look." },
    { type: "tool_call", id: "a", name: "t", input: { path: "/tmp" } },
    { type: "tool_call", id: second!.id, name: "t", input: {} },
  ]);
  assertEquals(tool_calls.map((call) => ({ ...call })), [
    { id: "a", name: "t", arguments: { path: "/tmp" }, cache: 1 },
    { id: second!.id, name: "t", arguments: {} },
  ] as unknown);
  assert(second!.id !== "a", "the second call has the id of the first");
  assertEquals([first!.tool, first!.input, second!.invalid_arguments], ["t", { path: "/tmp" }, "{broken"]);
  assertEquals(usage, { input_tokens: 0, output_tokens: 0, total_tokens: 0, cost_usd: null });
  assertEquals(metadata, { region: "eu" });
  assertEquals(typeof answer!.raw, "function");
  const parts = [content, ...content, first, first!.arguments, usage, metadata] as object[];
  assertEquals(parts.map((part) => Object.isFrozen(part)), parts.map(() => true));
  assert(first!.arguments === content[1]!.input, "a call and its block have different arguments");
  assertEquals(messages()[0]!.content, content);
  assertEquals(data("provider:response").length, 1);
});

Deno.test("a block that shows another name or input than the call that runs is replaced", async () => {
  let answer: ChatResponse | undefined;
  const { run } = kit({
    orchestrator: loopOf(async (provider) => {
      answer = await provider.complete(REQUEST);
    }),
    providers: [
      providerOf(() => ({
        content: [
          { type: "tool_call", id: "a", name: "read_file", input: { path: "/tmp" } },
          { type: "tool_call", id: "b", name: "write_file", input: { path: "/tmp" } },
        ],
        tool_calls: [
          { id: "a", name: "write_file", arguments: { path: "/tmp" } },
          { id: "b", name: "write_file", arguments: { path: "/etc" } },
        ],
      })),
    ],
  });
  await run();
  assertEquals(answer!.content, [
    { type: "tool_call", id: "a", name: "write_file", input: { path: "/tmp" } },
    { type: "tool_call", id: "b", name: "write_file", input: { path: "/etc" } },
  ]);
});

Deno.test("a call ends with its caller's own signal, and the turn continues", async () => {
  const own = new AbortController();
  let seen: AbortSignal | undefined;
  let reason: unknown;
  const { run } = kit({
    orchestrator: loopOf(async (provider) => {
      until(() => seen !== undefined).then(() => own.abort(new Error("enough")));
      reason = await provider.complete(REQUEST, { signal: own.signal }).catch((error: Error) =>
        error.message
      );
    }),
    providers: [providerOf((_request, { signal }) => {
      seen = signal;
      return new Promise(() => {});
    })],
  });
  assertEquals((await run()).status, "completed");
  assertEquals([reason, seen?.aborted], ["enough", true]);
});

Deno.test("a delta after the end of its call is dropped, and so is one that is malformed", async () => {
  const received: unknown[] = [];
  let late: CompleteOptions["onDelta"];
  const { run } = kit({
    orchestrator: loopOf(async (provider) => {
      await provider.complete(REQUEST, { onDelta: (delta) => received.push(delta.delta) });
      late!({ block_index: 0, block_type: "text", delta: "late" });
    }),
    providers: [providerOf((_request, { onDelta }) => {
      late = onDelta;
      onDelta!({ block_index: 0, block_type: "text", delta: "in time" });
      onDelta!({ block_index: 0.5, block_type: "text", delta: "between two blocks" });
      onDelta!(null as never);
      return Promise.resolve("in time");
    })],
  });
  await run();
  assertEquals(received, ["in time"]);
});

Deno.test("a provider cannot create a key, so that calls of other providers are counted", async () => {
  const forged: unknown[] = [{}, Object.freeze({}), null, 7, "key"];
  const real = new MockProvider({ name: "real" });
  const { run, data } = kit({
    providers: [
      (coordinator) => coordinator.mount("providers", real),
      (coordinator: Coordinator) => {
        const front = providerOf(async (request, { call }) => {
          const { constructor } = call as { constructor: new () => object };
          const prototype = Object.getPrototypeOf(call);
          const keys = [
            ...forged,
            new constructor(),
            Object.create(prototype),
            { ...call },
            structuredClone(call),
          ];
          for (const key of keys) {
            await coordinator.providers.real!.complete(request, { call: key as object });
          }
          return { content: `${keys.length} calls` };
        });
        return coordinator.mount("providers", Object.assign(front, { name: "front", priority: 1 }));
      },
    ],
  });
  const outcome = await run();
  assertEquals([outcome.status, outcome.output_text], ["completed", "9 calls"]);
  const inner = data("provider:response").filter((response: JsonObject) => response.inner === true);
  assertEquals(inner.length, 9);
});

Deno.test("a maximum that is no number of tokens neither lifts the run's limit nor reaches the provider", async () => {
  for (const max_output_tokens of [-1e9, NaN]) {
    const received: unknown[] = [];
    const usage = { input_tokens: 500, output_tokens: 500 };
    const { run } = kit({
      limits: { max_total_tokens: 2_000 },
      orchestrator: loopOf(async (provider) => {
        for (let count = 0; count < 5; count++) await provider.complete({ ...REQUEST, max_output_tokens });
      }),
      providers: [providerOf((request) => {
        received.push(request.max_output_tokens);
        return { content: "x", usage };
      })],
    });
    assertEquals((await run()).stop_reason, "limit:max_total_tokens");
    assertEquals(received.length, 2);
    assert(received.every((maximum) => Number(maximum) > 0), String(received));
  }
});

const KEY = {
  id: "api_key",
  display_name: "API key",
  field_type: "secret" as const,
  prompt: "Key",
  requires_model: false,
};

for (
  const [what, required, cost_usd, expected] of [
    ["that needs a key", true, null, ["price_unknown"]],
    ["that works without a key", false, null, []],
    ["with a price", true, "0.01", []],
  ] as const
) {
  Deno.test(`answers of a provider ${what} are reported ${expected.length} times as not counted in dollars`, async () => {
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2, cost_usd };
    const provider = providerOf(() => ({ content: "x", model: "vendor-9", usage }));
    provider.getInfo = () => ProviderInfo({ id: "vendor", config_fields: [{ ...KEY, required }] });
    const { run, warnings } = kit({
      orchestrator: loopOf(async (handle) => {
        await handle.complete(REQUEST);
        await handle.complete(REQUEST);
      }),
      providers: [provider],
    });
    assertEquals((await run()).status, "completed");
    assertEquals(warnings.map(({ code }) => code), [...expected]);
    if (expected.length > 0) assert(warnings[0]!.message.includes("price of vendor-9 is unknown"));
  });
}
