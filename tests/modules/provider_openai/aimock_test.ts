/** `provider-openai` against aimock, whose answers and faults others wrote, through both APIs. */
import type { ChaosConfig, LLMock } from "@copilotkit/aimock";
import type { Provider } from "preamp";
import { FakeClock, TestCoordinator } from "preamp/testing";
import { assert, assertEquals } from "../../assert.ts";
import { mount } from "../../../modules/provider-openai/mod.ts";
import { ask, failureOf, shape, StartedMock } from "../providers/aimock.ts";
import { joined } from "./kit.ts";

/** Calls `body` with a provider of each API whose server is aimock, with its answers. */
async function withMock(
  body: (provider: Provider, mock: LLMock, api: string) => Promise<void>,
): Promise<void> {
  for (const api of ["responses", "chat"]) {
    await using mock = await StartedMock.start("call_a", {
      message: "Slow down",
      code: "rate_limit_exceeded",
    });
    const coordinator = new TestCoordinator({ clock: new FakeClock() });
    await mount(coordinator, {
      api,
      model: "gpt-5",
      api_key: "sk-test",
      base_url: `${mock.url}/v1`,
      max_retries: 0,
    });
    await body(coordinator.providers.openai!, mock, api);
  }
}

Deno.test("aimock's text and reasoning are read", () =>
  withMock(async (provider) => {
    const { answer, deltas } = await ask(provider, "greet");
    assertEquals(shape(answer.content), [
      ["thinking", "They want a greeting.", undefined],
      ["text", "Grüße an die 世界! 👋🏽", undefined],
    ]);
    assertEquals(answer.finish_reason, "stop");
    assertEquals(joined(deltas), { 0: "They want a greeting.", 1: "Grüße an die 世界! 👋🏽" });
    assert(answer.usage !== undefined);
  }));

Deno.test("aimock's calls are read", () =>
  withMock(async (provider) => {
    const { answer } = await ask(provider, "look");
    const [first] = answer.content; // aimock reasons without a summary in Responses
    const rest = first!.type === "thinking" ? answer.content.slice(1) : answer.content;
    assertEquals(shape(rest), [
      ["text", "I look.", undefined],
      ["tool_call", "lookup", { key: "ä" }],
      ["tool_call", "lookup", { key: "b" }],
    ]);
    assertEquals([answer.finish_reason, answer.tool_calls?.[0]?.id], ["tool_calls", "call_a"]);
  }));

Deno.test("aimock's errors are read", () =>
  withMock(async (provider) => {
    const error = await failureOf(provider, "limit", false);
    assertEquals([error.type, error.message, error.retry_after], ["RateLimitError", "Slow down", 9]);
  }));

/** Faults of aimock, and the failure that each is. */
const FAULTS: readonly (readonly [ChaosConfig, readonly string[]])[] = [
  [{ dropRate: 1 }, ["ProviderUnavailableError"]],
  [{ malformedRate: 1 }, ["StreamError", "InvalidRequestError"]],
  [{ disconnectRate: 1 }, ["NetworkError", "StreamError"]],
  [{ rateLimitRate: 1 }, ["RateLimitError"]],
];

for (const [chaos, types] of FAULTS) {
  Deno.test(`aimock's fault ${Object.keys(chaos)} is a ${types.join(" or ")}`, () =>
    withMock(async (provider, mock) => {
      mock.setChaos(chaos);
      for (const stream of [false, true]) {
        const error = await failureOf(provider, "greet", stream);
        assert(types.includes(error.type), `${error.type}: ${error.message}`);
      }
    }));
}
