/** A request that the provider refuses as too long is compacted and sent once more. */
import * as contextSimple from "../../modules/context-simple/mod.ts";
import { LLMError } from "../../src/sdk/llm_errors.ts";
import type { ScriptStep } from "../../src/testing/mock_provider.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { requestTokens } from "../../src/sdk/token_estimate.ts";
import type { Message } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { kit, type KitOptions, type TestModule, tool } from "../support/sessions.ts";

const CONTEXT: TestModule = { ...contextSimple, id: "context-simple" };

/** A tool whose result has about 4,000 tokens. */
const reads = tool("reads", () => Promise.resolve("some words of a result ".repeat(800)));

function refusal(message: string): ScriptStep {
  return { error: { type: "ContextLengthError", message, status_code: 400 } };
}

/** A session whose second request has three long results. */
function session(second: ScriptStep[], more: Partial<KitOptions> = {}) {
  const provider = new MockProvider([
    { tool_calls: [1, 2, 3].map(() => ({ name: "reads" })) },
    ...second,
  ]);
  return { provider, session: kit({ context: CONTEXT, providers: [provider], tools: [reads], ...more }) };
}

function tokensOf(messages: readonly Message[] | undefined): number {
  return requestTokens(messages ?? []);
}

Deno.test("a refused request is compacted to what the provider takes, and sent once more", async () => {
  const message = "prompt is too long: 12345 tokens > 8000 maximum";
  const { provider, session: run } = session([refusal(message), "done"]);
  const outcome = await run.run();
  assertEquals([outcome.status, outcome.output_text], ["completed", "done"]);
  assertEquals(run.data("provider:retry"), [{
    provider: "mock",
    attempt: 1,
    max_retries: 1,
    delay: 0,
    error_type: "ContextLengthError",
    error_message: message,
    request_id: "req_2",
    status_code: 400,
    limit_tokens: 8000,
    requested_tokens: 12345,
  }]);
  const names = run.turn();
  assertEquals(
    names.slice(names.indexOf("provider:retry"), names.lastIndexOf("content_block:start")),
    ["provider:retry", "context:pre_compact", "context:compaction", "context:post_compact"],
  );
  assertEquals(run.of("provider:error"), []);
  assertEquals(run.of("provider:request").length, 2); // the gate decided about this iteration already
  const [compaction] = run.data("context:compaction");
  assert(Number(compaction?.before_tokens) > 12_000 && Number(compaction?.after_tokens) < 7200);
  const [, refused, sent] = provider.requests;
  // the provider's count of the refused request scales the estimate of the second one
  const share = 12_345 / tokensOf(refused?.messages);
  assert(tokensOf(sent?.messages) * share <= 8000, String(tokensOf(sent?.messages)));
  assertEquals(sent?.tools, refused?.tools);
  assertEquals(run.messages().length, 6); // the history is complete
});

Deno.test("a provider that does not say what it takes gets at most 80 % of the refused request", async () => {
  const { provider, session: run } = session([refusal("the request is too long for the context"), "done"]);
  assertEquals((await run.run()).output_text, "done");
  const [, refused, sent] = provider.requests;
  assert(tokensOf(sent?.messages) <= 0.8 * tokensOf(refused?.messages));
  const [{ limit_tokens, requested_tokens } = {}] = run.data("provider:retry");
  assertEquals([limit_tokens, requested_tokens], [undefined, undefined]);
});

Deno.test("a second refusal ends the run with context_overflow and its numbers", async () => {
  const { provider, session: run } = session([
    refusal("prompt is too long: 12345 tokens > 8000 maximum"),
    refusal("prompt is too long: 8100 tokens > 8000 maximum"),
    "never",
  ]);
  const { status, error } = await run.run();
  assertEquals([status, error?.code], ["failed", "context_overflow"]);
  assertMatch(
    error?.message ?? "",
    /^Cannot fit the request: provider "mock" refused it twice as too long \(it takes 8000 tokens\): received about \d+ tokens, counted as 8100, after a compaction: prompt is too long: 8100 tokens > 8000 maximum; /,
  );
  assertEquals(run.of("provider:retry").length, 1);
  assertEquals(run.data("provider:error"), [{
    provider: "mock",
    error: { type: "ContextLengthError", msg: "prompt is too long: 8100 tokens > 8000 maximum" },
    retryable: false,
    status_code: 400,
    limit_tokens: 8000,
    requested_tokens: 8100,
  }]);
  assertEquals(provider.call_count, 3);
});

Deno.test("what must stay and does not fit ends the run before a second call", async () => {
  const provider = new MockProvider([refusal("prompt is too long: 5000 tokens > 300 maximum"), "never"]);
  const run = kit({ context: CONTEXT, providers: [provider], system: "Be brief. ".repeat(2000) });
  const { error } = await run.run();
  assertEquals(error?.code, "context_overflow");
  assertMatch(
    error?.message ?? "",
    /its messages may take \d+ tokens: received \d+ tokens that must stay.*; the provider refused the whole request: prompt is too long: 5000 tokens > 300 maximum$/,
  );
  assertEquals(provider.call_count, 1);
});

Deno.test("the next turn stays within what the provider takes, without another refusal", async () => {
  const refused = refusal("prompt is too long: 12345 tokens > 8000 maximum");
  const more = Array.from({ length: 8 }, () => [{ tool_calls: [{ name: "reads" }] }, "done"]).flat();
  const { provider, session: run } = session([refused, "done", ...more]);
  await run.run();
  for (let turn = 0; turn < 8; turn++) await run.run("again");
  assertEquals(run.of("provider:retry").length, 1);
  const scale = 12_345 / tokensOf(provider.requests[1]?.messages);
  for (const { messages } of provider.requests.slice(2)) assert(tokensOf(messages) * scale <= 8000);
});

Deno.test("a transient failure of the second request is retried", async () => {
  const busy: ScriptStep = { error: { type: "ProviderUnavailableError", message: "busy", status_code: 503 } };
  const { session: run } = session([refusal("prompt is too long"), busy, "done"]);
  let done = false;
  const ended = run.run().finally(() => done = true);
  for (let steps = 0; !done && steps < 200; steps++) await run.clock.advance(1000);
  assertEquals((await ended).output_text, "done");
  assertEquals(run.data("provider:retry").map((data) => data.error_type), [
    "ContextLengthError",
    "ProviderUnavailableError",
  ]);
});

Deno.test("a refusal after the first delta is not repeated", async () => {
  const provider = new MockProvider();
  let count = 0;
  provider.complete = (_request, options) => {
    count++;
    options?.onDelta?.({ block_index: 0, block_type: "text", delta: "six ti" });
    return Promise.reject(new LLMError("ContextLengthError", "prompt is too long"));
  };
  const run = kit({ context: CONTEXT, providers: [provider] });
  assertEquals((await run.run()).error?.code, "context_overflow");
  assertEquals([count, run.of("provider:retry").length, run.of("provider:error").length], [1, 0, 1]);
});

Deno.test("an error of a vendor's SDK that is no LLMError is recovered too", async () => {
  const steps: ScriptStep[] = [{
    error: Object.assign(new Error("This model's maximum context length is 8000 tokens."), { status: 400 }),
  }, "done"];
  const { session: run } = session(steps);
  assertEquals((await run.run()).output_text, "done");
  assertEquals(run.data("provider:retry").map((data) => [data.error_type, data.limit_tokens]), [
    ["ContextLengthError", 8000],
  ]);
});

Deno.test("a context that ignores the refusal ends the run with the second one", async () => {
  const provider = new MockProvider();
  provider.complete = () =>
    Promise.reject(new LLMError("ContextLengthError", "maximum context length is 8192 tokens"));
  const run = kit({ providers: [provider] });
  assertEquals((await run.run("hi")).error, {
    code: "context_overflow",
    message:
      'Cannot fit the request: provider "mock" refused it twice as too long (it takes 8192 tokens): received about 5 tokens, after a compaction: maximum context length is 8192 tokens; shorten the system prompt or the prompt, offer fewer tools, or use a model with a larger window',
  });
});

Deno.test("injections of hooks are in the request that is sent once more", async () => {
  const inject: TestModule = (coordinator) => {
    coordinator.hooks.register("provider:request", () => ({
      action: "inject_context",
      context_injection: "mind the gap",
      ephemeral: true,
    }), { name: "injects" });
  };
  const { provider, session: run } = session([refusal("prompt is too long"), "done"], { hooks: [inject] });
  await run.run();
  for (const { messages } of provider.requests) {
    assertEquals(messages.filter(({ content }) => content === "mind the gap").length, 1);
  }
});

Deno.test("a cancelled run does not send a refused request again", async () => {
  const provider = new MockProvider([refusal("prompt is too long"), "never"]);
  const complete = provider.complete.bind(provider);
  const run = kit({ context: CONTEXT, providers: [provider] });
  provider.complete = async (request, options) => {
    await run.session.cancel("graceful");
    return await complete(request, options);
  };
  assertEquals((await run.run()).status, "cancelled");
  assertEquals([provider.call_count, run.of("provider:retry").length], [1, 0]);
});
