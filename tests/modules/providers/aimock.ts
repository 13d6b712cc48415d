/** Tests of a provider against aimock, whose answers and faults others wrote. */
import { type ChaosConfig, LLMock } from "@copilotkit/aimock";
import type { Server } from "node:http";
import type { ChatRequest, JsonObject, LLMError, Provider, StreamDelta } from "preamp";
import { FakeClock, TestCoordinator } from "preamp/testing";
import { assert, assertEquals } from "../../assert.ts";
import type { Vendor } from "./faults.ts";

const TOOLS = [{ name: "lookup", parameters: { type: "object", properties: { key: { type: "string" } } } }];

/** aimock on loopback with answers to "greet", "look" and "limit"; ended with the scope. */
export class StartedMock extends LLMock implements AsyncDisposable {
  static async start(
    call_id: string,
    error: { message: string; type?: string; code?: string },
  ): Promise<StartedMock> {
    const mock = new StartedMock({ port: 0, host: "127.0.0.1", logLevel: "silent" });
    mock.onMessage("greet", { content: "Grüße an die 世界! 👋🏽", reasoning: "They want a greeting." });
    mock.onMessage("look", {
      content: "I look.",
      toolCalls: [{ name: "lookup", arguments: '{"key":"ä"}', id: call_id }, {
        name: "lookup",
        arguments: '{"key":"b"}',
      }],
    });
    mock.onMessage("limit", { error, status: 429, retryAfter: 9 });
    await mock.start();
    return mock;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { server } = this["serverInstance"] as { server: Server };
    const stopped = this.stop();
    server.closeAllConnections(); // else it may wait until the client gives up its idle ones, which takes 90 s
    await stopped;
  }
}

async function withMock(
  { name, module }: Vendor,
  body: (provider: Provider, mock: LLMock) => Promise<void>,
): Promise<void> {
  await using mock = await StartedMock.start("toolu_a", { message: "Slow down", type: "rate_limit_error" });
  const coordinator = new TestCoordinator({ clock: new FakeClock() });
  await module.mount(coordinator, { api_key: "sk-test", base_url: mock.url, max_retries: 0 });
  await body(coordinator.providers[name]!, mock);
}

/** Resolves to the answer, whole and streamed; both must be equal but for generated ids. */
export async function ask(provider: Provider, question: string) {
  const request: ChatRequest = { messages: [{ role: "user", content: question }], tools: TOOLS };
  const whole = await provider.complete(request);
  const deltas: StreamDelta[] = [];
  const streamed = await provider.complete(request, { onDelta: (delta) => deltas.push(delta) });
  assertEquals(shape(streamed.content), shape(whole.content));
  assertEquals(streamed.finish_reason, whole.finish_reason);
  return { answer: streamed, deltas };
}

/** Returns type, text or name, and input of each block. */
export function shape(content: readonly JsonObject[]): unknown[] {
  return content.map(({ type, text, thinking, name, input }) => [type, text ?? thinking ?? name, input]);
}

/** Resolves to the error of a call that must fail. */
export async function failureOf(provider: Provider, question: string, stream: boolean): Promise<LLMError> {
  const request: ChatRequest = { messages: [{ role: "user", content: question }] };
  const outcome = await provider.complete(request, stream ? { onDelta: () => {} } : {}).then(
    () => null,
    (error: LLMError) => error,
  );
  assert(outcome, "the call succeeded");
  return outcome;
}

const CHAOS: readonly [fault: ChaosConfig, types: readonly string[]][] = [
  [{ dropRate: 1 }, ["ProviderUnavailableError"]],
  [{ malformedRate: 1 }, ["StreamError", "LLMError"]],
  [{ disconnectRate: 1 }, ["NetworkError", "StreamError"]],
];

/**
 * Registers the tests of a vendor.
 *
 * @param sends What aimock sends in the vendor's format: thinking, and the ids of calls that it was given.
 */
export function testAimock(vendor: Vendor, sends: { thinking: boolean; ids: boolean }): void {
  Deno.test(`${vendor.name}, aimock: text and thinking, whole and streamed`, () =>
    withMock(vendor, async (provider) => {
      const { answer, deltas } = await ask(provider, "greet me");
      assertEquals(shape(answer.content), [
        ...(sends.thinking ? [["thinking", "They want a greeting.", undefined]] : []),
        ["text", "Grüße an die 世界! 👋🏽", undefined],
      ]);
      const streamed = deltas.filter(({ block_type }) => block_type === "text").map(({ delta }) => delta)
        .join(
          "",
        );
      assertEquals(streamed, "Grüße an die 世界! 👋🏽");
    }));

  Deno.test(`${vendor.name}, aimock: tool calls, whole and streamed`, () =>
    withMock(vendor, async (provider) => {
      const { answer } = await ask(provider, "look it up");
      assertEquals(answer.finish_reason, "tool_calls");
      assertEquals(answer.tool_calls?.map(({ name, arguments: input }) => [name, input]), [
        ["lookup", { key: "ä" }],
        ["lookup", { key: "b" }],
      ]);
      if (sends.ids) assertEquals(answer.tool_calls?.[0]?.id, "toolu_a");
    }));

  Deno.test(`${vendor.name}, aimock: a rate limit says when to try again`, () =>
    withMock(vendor, async (provider) => {
      for (const stream of [false, true]) {
        const { type, retry_after, retryable, message } = await failureOf(provider, "limit", stream);
        assertEquals([type, retry_after, retryable, message], ["RateLimitError", 9, true, "Slow down"]);
      }
    }));

  for (const [fault, types] of CHAOS) {
    Deno.test(`${vendor.name}, aimock: ${Object.keys(fault)} fails as one of ${types}, whole and streamed`, () =>
      withMock(vendor, async (provider, mock) => {
        mock.setChaos(fault);
        for (const stream of [false, true]) {
          const { type, message } = await failureOf(provider, "greet me", stream);
          assert(types.includes(type), `${stream}: ${type}: ${message}`);
        }
      }));
  }
}
