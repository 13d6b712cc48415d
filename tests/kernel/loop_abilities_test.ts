/** Abilities of the loop: retries, fallback, throttling, native tools, structured output. */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { LLMError } from "../../src/sdk/llm_errors.ts";
import { mountLoop } from "../../src/sdk/loop/mount_loop.ts";
import { MockProvider, type ScriptStep } from "../../src/testing/mock_provider.ts";
import { ProviderInfo } from "../../src/sdk/providers.ts";
import type { JsonObject, Module } from "../../src/sdk/types.ts";
import { calls, hook, type Kit, kit, type KitOptions, tool, until } from "../support/sessions.ts";

const SLOW_DOWN: ScriptStep = {
  error: { type: "RateLimitError", message: "slow down", status_code: 429, retry_after: 2 },
};

/** Runs a session to its end; advances the clock whenever the session waits. */
async function runThrough(session: Kit, step_ms = 1_000): Promise<Awaited<ReturnType<Kit["run"]>>> {
  let done = false;
  const ended = session.run().finally(() => done = true);
  for (let steps = 0; !done && steps < 200; steps++) await session.clock.advance(step_ms);
  return await ended;
}

/** Creates a provider that fails in the middle of its answer. */
function breaksOff(name: string, error: Error): MockProvider {
  const provider = new MockProvider({ name });
  provider.complete = (_request, options) => {
    options?.onDelta?.({ block_index: 0, block_type: "text", delta: "six ti" });
    return Promise.reject(error);
  };
  return provider;
}

Deno.test("the loop retries a transient failure and emits provider:retry for each delay", async () => {
  const session = kit({ providers: [[SLOW_DOWN, SLOW_DOWN, "done"]] });
  const outcome = await runThrough(session);
  assertEquals([outcome.status, outcome.output_text], ["completed", "done"]);
  const entries = session.data("provider:retry");
  assertEquals(
    entries.map(({ delay: _, ...rest }) => rest),
    [1, 2].map((attempt) => ({
      provider: "mock",
      attempt,
      max_retries: 2,
      error_type: "RateLimitError",
      error_message: "slow down",
      request_id: `req_${attempt}`,
      status_code: 429,
      retry_after: 2,
    })),
  );
  // the backend's retry-after, times a factor in [0.5, 1.5)
  for (const { delay } of entries) {
    assert(typeof delay === "number" && delay >= 1 && delay < 3, String(delay));
  }
  assertEquals(session.of("provider:request").length, 1);
  assertEquals(session.of("provider:error"), []);
});

Deno.test("the loop stops after max_retries with the last failure", async () => {
  const session = kit({ providers: [[SLOW_DOWN]], loop: { max_retries: 1 } });
  assertEquals((await runThrough(session)).error?.code, "provider_rate_limited");
  assertEquals(session.of("provider:retry").length, 1);
  assertEquals(session.of("provider:error").length, 1);
});

Deno.test("the loop does not retry a permanent failure, or an answer whose text was streamed", async () => {
  const once: [string, KitOptions][] = [
    ["a refused request", {
      providers: [[{ error: { type: "LLMError", message: "no", status_code: 422, retryable: true } }]],
    }],
    ["a quota", {
      providers: [[{ error: { type: "QuotaExceededError", message: "spend limit", status_code: 429 } }]],
    }],
    ["a stream after its first words", {
      providers: [breaksOff("mock", new LLMError("StreamError", "cut off"))],
    }],
    ["a wait that is longer than the run may be", {
      providers: [[{ error: { type: "RateLimitError", message: "later", retry_after: 1_000 } }]],
    }],
    ["a provider that tries again by itself", {
      providers: [Object.assign(new MockProvider([SLOW_DOWN]), {
        getInfo: () => ProviderInfo({ id: "mock", capabilities: ["retries"] }),
      })],
    }],
  ];
  for (const [what, options] of once) {
    const session = kit(options);
    assertEquals((await runThrough(session)).status, "failed", what);
    assertEquals(session.data("provider:retry"), [], what);
  }
});

Deno.test("a stream that broke before its first text is retried once, not twice", async () => {
  const cut: ScriptStep = { error: { type: "StreamError", message: "cut off" } };
  const session = kit({ providers: [[cut, cut, "done"]], loop: { max_retries: 5 } });
  assertEquals((await runThrough(session)).status, "failed");
  assertEquals(session.of("provider:retry").length, 1);
});

Deno.test("cancelling ends the delay before a retry", async () => {
  const session = kit({ providers: [[SLOW_DOWN, "done"]] });
  const ended = session.run();
  await until(() => session.of("provider:retry").length === 1);
  await session.session.cancel("graceful");
  assertEquals((await ended).status, "cancelled");
  assertEquals(session.of("provider:error"), []);
});

Deno.test("with fallback, the next provider by priority answers after its own gate, and is used from then on", async () => {
  const gone = { error: { type: "ProviderUnavailableError", message: "down", status_code: 503 } } as const;
  const options: KitOptions = {
    providers: [
      new MockProvider({ name: "mock", responses: [gone], priority: 1 }),
      new MockProvider({ name: "last", responses: ["never"], priority: 9 }),
      new MockProvider({ name: "second", responses: [calls(["look"]), "done"], priority: 2 }),
    ],
    tools: [tool("look")],
    loop: { fallback: true, max_retries: 0 },
    hooks: [
      hook(
        "provider:request",
        (_, { provider }) =>
          provider === "second"
            ? { action: "inject_context", context_injection: "hello second", ephemeral: true }
            : { action: "inject_context", context_injection: "unread", ephemeral: true },
      ),
    ],
  };
  const session = kit(options);
  const outcome = await session.run();
  assertEquals([outcome.status, outcome.output_text], ["completed", "done"]);
  assertEquals(session.data("provider:request").map(({ provider, iteration }) => [provider, iteration]), [
    ["mock", 1],
    ["second", 2],
    ["second", 3],
  ]);
  assertEquals(session.data("provider:resolve"), [
    { provider: "second", model: null, reason: "provider mock failed" },
  ]);
  assertEquals(session.turn().filter((event) => event.startsWith("provider:")).slice(0, 4), [
    "provider:request",
    "provider:error",
    "provider:resolve",
    "provider:request",
  ]);
  // an injection for the first provider's request is in the second's
  const [request] = (options.providers![2] as MockProvider).requests;
  assertEquals(request!.messages.slice(1).map(({ content }) => content), ["unread", "hello second"]);
});

Deno.test("fallback follows the provider names of the config, and ends with the last failure", async () => {
  const down = (name: string, message: string) =>
    new MockProvider({ name, responses: [{ error: { type: "NetworkError", message } }] });
  const session = kit({
    providers: [down("mock", "one"), down("b", "two"), down("c", "three")],
    loop: { fallback: ["c", "unknown", "mock"], max_retries: 0 },
  });
  assertEquals((await session.run()).error, { code: "provider_unreachable", message: "three" });
  assertEquals(session.data("provider:error").map(({ provider }) => provider), ["mock", "c"]);
});

Deno.test("the loop does not fall back without the setting, for a permanent failure, or after streamed text", async () => {
  const other = () => new MockProvider({ name: "other", responses: ["done"] });
  const down = { error: { type: "NetworkError", message: "down" } } as const;
  const bad_key = { error: { type: "AuthenticationError", message: "bad key", status_code: 401 } } as const;
  for (
    const options of [
      { providers: [[down], other()], loop: { max_retries: 0 } },
      { providers: [[bad_key], other()], loop: { fallback: true, max_retries: 0 } },
      {
        providers: [breaksOff("mock", new LLMError("StreamError", "cut off")), other()],
        loop: { fallback: true },
      },
    ] satisfies KitOptions[]
  ) {
    const session = kit(options);
    assertEquals((await session.run()).status, "failed");
    assertEquals(session.of("provider:resolve"), []);
  }
});

Deno.test("min_delay_between_calls_ms delays a call after the end of the previous one", async () => {
  const session = kit({
    providers: [[calls(["slow"]), calls(["slow"]), "done"]],
    tools: [tool("slow", () => session.clock.after(300).then(() => "ok"))],
    loop: { min_delay_between_calls_ms: 500 },
  });
  const outcome = await runThrough(session, 100);
  assertEquals(outcome.status, "completed");
  const entries = session.data("orchestrator:rate_limit_delay");
  assertEquals(entries.map(({ configured_ms, iteration }) => [configured_ms, iteration]), [[500, 2], [
    500,
    3,
  ]]);
  for (const { delay_ms, elapsed_ms } of entries) {
    assertEquals(Number(delay_ms) + Number(elapsed_ms), 500);
    assert(Number(elapsed_ms) >= 300);
  }
});

Deno.test("a tool's native specification replaces fields of its own for its provider only", async () => {
  const provider = new MockProvider(["done"]);
  const { run } = kit({
    providers: [provider],
    tools: [tool("web_search", undefined, {
      native_specs: {
        mock: { type: "web_search_20250305", name: "other", max_uses: 3 },
        other: { type: "x" },
      },
    })],
  });
  await run();
  assertEquals(provider.requests[0]!.tools, [{
    name: "web_search",
    description: "The tool web_search",
    parameters: { type: "object", properties: {} },
    type: "web_search_20250305",
    max_uses: 3,
  }]);
});

const SCHEMA = { type: "object", properties: { sum: { type: "integer" } }, required: ["sum"] };

Deno.test("an answer matches response_format after tool calls and at most two repairs", async () => {
  const provider = new MockProvider([calls(["add"]), "It is 4.", '{"sum": "4"}', '{"sum": 4}']);
  const session = kit({
    providers: [provider],
    tools: [tool("add", () => Promise.resolve(4))],
    loop: { response_format: { type: "json_schema", schema: SCHEMA } },
  });
  const outcome = await session.run();
  assertEquals([outcome.status, outcome.output_text], ["completed", '{"sum": 4}']);
  const asked = session.messages().filter(({ metadata }) => metadata?.source === "orchestrator");
  assertEquals(asked.length, 2);
  assertMatch(String(asked[0]!.content), /the answer is not JSON/);
  assertMatch(String(asked[1]!.content), /sum: /);
  for (const request of provider.requests) {
    assertEquals(request.response_format, { type: "json_schema", schema: SCHEMA });
    assertMatch(String(request.messages.at(-1)!.content), /answer with JSON alone/);
  }
  assertEquals(session.messages().some(({ metadata }) => metadata?.ephemeral === true), false);
  assertEquals(session.of("prompt:complete").length, 1);
});

Deno.test("an answer that is still invalid after two repairs fails the run", async () => {
  const session = kit({
    providers: [["no", "no", "no", "no"]],
    loop: { response_format: { type: "json" } },
  });
  const { status, error } = await session.run();
  assertEquals([status, error?.code], ["failed", "provider_bad_response"]);
  assertEquals(session.of("provider:request").length, 3);
  assertEquals(session.data("orchestrator:complete").map(({ status }) => status), ["error"]);
});

Deno.test("a provider with native structured output gets no schema in the prompt", async () => {
  const provider = Object.assign(new MockProvider(['{"sum": 1}']), {
    getInfo: () => ProviderInfo({ id: "mock", capabilities: ["structured_output"] }),
  });
  const { run } = kit({
    providers: [provider],
    loop: { response_format: { type: "json_schema", json_schema: { name: "sum", schema: SCHEMA } } },
  });
  assertEquals((await run()).status, "completed");
  assertEquals(provider.requests[0]!.messages.length, 1);
  assertEquals(provider.requests[0]!.response_format, { type: "json_schema", schema: SCHEMA });
});

Deno.test("an answer that is truncated by the model's limit is incomplete, not repaired", async () => {
  const session = kit({
    providers: [[{ text: '{"sum":', finish_reason: "length" }]],
    loop: { response_format: { type: "json" } },
  });
  assertEquals((await session.run()).stop_reason, "max_output_tokens");
  assertEquals(session.of("provider:request").length, 1);
});

Deno.test("a config value of the wrong type fails the mount with the key in the message", async () => {
  for (
    const [loop, name] of [
      [{ fallback: "all" }, "fallback"],
      [{ max_retries: -1 }, "max_retries"],
      [{ min_delay_between_calls_ms: 0.5 }, "min_delay_between_calls_ms"],
      [{ response_format: { type: "xml" } }, "response_format"],
      [{ response_format: { type: "json_schema" } }, "response_format"],
    ] as [JsonObject, string][]
  ) {
    const error = await kit({ loop }).session.initialize().then(() => null, (error: Error) => error);
    assertMatch(error?.message ?? "", new RegExp(`config\\.${name}[.:]`));
  }
});

const events_loop: Module["mount"] = (coordinator, config) =>
  mountLoop(coordinator, config, {
    orchestrator: "loop-events",
    steering: false,
    max_parallel_tools: 1,
    selects_tools: true,
  });

Deno.test("tool:selecting lets hooks choose the tool and its input before tool:pre", async () => {
  const ran: [string, JsonObject][] = [];
  const note = (name: string) =>
    tool(name, (input) => {
      ran.push([name, input]);
      return Promise.resolve(name);
    });
  const gated: unknown[] = [];
  const session = kit({
    orchestrator: events_loop,
    providers: [[calls(["grep", { text: "x" }]), "done"]],
    tools: [note("grep"), note("search")],
    hooks: [
      hook("tool:selecting", () => ({ action: "continue", data: { tool_name: "search" } })),
      hook(
        "tool:selecting",
        () => ({ action: "continue", data: { tool_name: "other", tool_input: { q: "x" } } }),
      ),
      hook("tool:pre", (_, data) => {
        gated.push([data.tool_name, data.tool_input]);
        return null;
      }),
    ],
  });
  assertEquals((await session.run()).status, "completed");
  assertEquals(ran, [["search", { q: "x" }]]);
  assertEquals(gated, [["search", { q: "x" }]]);
  assertEquals(session.turn().filter((event) => event.startsWith("tool:")), [
    "tool:selecting",
    "tool:selected",
    "tool:pre",
    "tool:post",
  ]);
  assertEquals(session.data("tool:selected"), [{
    tool_name: "search",
    tool_call_id: "c1",
    tool_input: { q: "x" },
    parallel_group_id: "grp_1",
    decisions: [{ tool_name: "search" }, { tool_name: "other", tool_input: { q: "x" } }],
  }]);
});

Deno.test("tool:selecting can deny before tool:pre; without a result the call continues", async () => {
  const session = kit({
    orchestrator: events_loop,
    providers: [[calls(["rm"], ["ls"]), "done"]],
    tools: [tool("rm"), tool("ls")],
    hooks: [
      hook(
        "tool:selecting",
        (_, { tool_name }) =>
          tool_name === "rm" ? { action: "continue", data: { deny: true, reason: "not here" } } : null,
      ),
    ],
  });
  assertEquals((await session.run()).status, "completed");
  assertEquals(session.data("tool:pre").map(({ tool_name }) => tool_name), ["ls"]);
  assertEquals(
    session.messages().filter(({ role }) => role === "tool").map(({ content }) => content),
    ["Denied by hook: not here", "ok"],
  );
});

Deno.test("execution:end and orchestrator:complete are emitted exactly once, however a turn ends", async () => {
  const ends: Record<string, [KitOptions, string]> = {
    answered: [{}, "success"],
    prompt_denied: [
      { hooks: [hook("prompt:submit", () => ({ action: "deny", reason: "no" }))] },
      "incomplete",
    ],
    request_denied: [
      { hooks: [hook("provider:request", () => ({ action: "deny", reason: "no" }))] },
      "incomplete",
    ],
    tool_ceiling: [
      { providers: [[calls(["a"])]], tools: [tool("a")], limits: { max_tool_calls: 1 } },
      "incomplete",
    ],
    iterations: [
      { providers: [[calls(["a"])]], tools: [tool("a")], limits: { max_iterations: 2 } },
      "incomplete",
    ],
    provider_failed: [{ providers: [[{ error: { message: "x" } }]] }, "error"],
    no_form: [{ providers: [["x"]], loop: { response_format: { type: "json" } } }, "error"],
    empty: [{ providers: [[{ text: "" }]] }, "incomplete"],
    cancelled: [{
      providers: [[calls(["stop"]), "done"]],
      tools: [async (coordinator) =>
        await coordinator.mount(
          "tools",
          tool("stop", () => {
            coordinator.requestCancel();
            return Promise.resolve("ok");
          }),
        )],
    }, "cancelled"],
  };
  for (const [name, [options, status]] of Object.entries(ends)) {
    const session = kit(options);
    await runThrough(session);
    assertEquals(session.data("orchestrator:complete").map((data) => data.status), [status], name);
    for (const event of ["execution:start", "execution:end"]) assertEquals(session.of(event).length, 1, name);
    assertEquals(session.of("cancel:completed").length, name === "cancelled" ? 1 : 0, name);
  }
});
