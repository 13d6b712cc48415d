/** Scenarios for suites that must hold for all kinds of runs: event schemas, replay, recovery. */
import * as contextSimple from "../../modules/context-simple/mod.ts";
import * as hooksApproval from "../../modules/hooks-approval/mod.ts";
import * as loopEvents from "../../modules/loop-events/mod.ts";
import * as providerMock from "../../modules/provider-mock/mod.ts";
import * as toolCalculator from "../../modules/tool-calculator/mod.ts";
import * as toolTodo from "../../modules/tool-todo/mod.ts";
import { createLoop } from "../../src/sdk/loop/loop.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { RESERVED_EVENTS } from "../../src/sdk/event_table.ts";
import type { Coordinator, JsonObject } from "../../src/sdk/types.ts";
import { PNG } from "../support/images.ts";
import { hook, type TestModule, tool } from "../support/sessions.ts";
import { CALLER } from "../support/runs.ts";
import { builtin, mock, type Scenario } from "./play.ts";

function call(name: string, args: JsonObject = {}): JsonObject {
  return { name, arguments: args };
}

/** Content of a result with an image. */
export const PICTURE = [
  { type: "text", text: "before" },
  { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
];

/** Returns the step of a request that the model refuses. */
function tooLong(size: number, limit: number): JsonObject {
  const message = `prompt is too long: ${size} tokens > ${limit} maximum`;
  return { error: { type: "ContextLengthError", message, status_code: 400 } };
}

const calculator = builtin(toolCalculator);

const SIMPLE = builtin(contextSimple);

const ask = builtin(hooksApproval, { rules: [{ tool: "calculator", action: "ask" }] });

const sixTimesSeven = mock(
  { tool_calls: [call("calculator", { expression: "6*7" })], usage: { input_tokens: 40, output_tokens: 12 } },
  { text: "6 × 7 is 42.", usage: { input_tokens: 60, output_tokens: 10 } },
);

/** A slow tool that ends early when its call is aborted. */
export function slow(name: string, ms: number): TestModule {
  return async (coordinator) =>
    await coordinator.mount(
      "tools",
      tool(name, async (_, context) => {
        await coordinator.clock.after(ms, context?.signal);
        return `${name} done`;
      }),
    );
}

const answer = (decision: string): NonNullable<Scenario["react"]> => (entry, { decide }) =>
  entry.event === "approval:required" ? decide(entry, decision) : undefined;

const STREAMING = createLoop({
  orchestrator: "keeps-state",
  max_iterations: -1,
  max_parallel_tools: 1,
  steering: false,
  request: {},
});

/** A loop that keeps state under its id and under another key, before a tool call and at its end. */
const keepsState: TestModule = async (coordinator) => {
  const { hooks, session_state } = coordinator;
  hooks.register("provider:response", (_, { inner }) => {
    if (inner === true) return;
    session_state["loop-test:answers"] = Number(session_state["loop-test:answers"] ?? 0) + 1;
    session_state.answered = true;
  });
  hooks.register("tool:pre", () => void (session_state.calling = true), { priority: -1 });
  coordinator.registerCleanup(() => void (session_state["loop-test:ended"] = true));
  await coordinator.mount("orchestrator", STREAMING);
};

/** Emits events that only the emitting module knows, at each tool call. */
function emitsOwn({ hooks }: Coordinator, by: string): void {
  hooks.register("tool:pre", async () => {
    await hooks.emit("suite:step", { by });
    await hooks.emitAndCollect("suite:step", { by });
    await hooks.emit("user:notification", { message: "a step", level: "info" });
    return null;
  });
}

/** A provider that streams the beginning of an answer. */
const streamsAndWaits: TestModule = async (coordinator) => {
  const provider = new MockProvider();
  provider.complete = async (_request, { onDelta, signal } = {}) => {
    onDelta?.({ block_index: 0, block_type: "text", delta: "the beginning" });
    await coordinator.clock.after(90_000, signal);
    return { content: [] };
  };
  await coordinator.mount("providers", provider);
};

/** All scenarios. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "a text answer": { plan: { context: SIMPLE, providers: [mock("Hello there, friend.")] } },
  "an answer with thinking": {
    plan: { context: SIMPLE, providers: [mock({ thinking: "a good question", text: "Yes." })] },
  },
  "a tool call with approval": {
    plan: {
      context: SIMPLE,
      system: "Be brief.",
      providers: [sixTimesSeven],
      tools: [calculator],
      hooks: [ask],
      limits: { max_tool_calls: 5 },
    },
    react: answer("allow"),
  },
  "a denied approval": {
    plan: { context: SIMPLE, providers: [sixTimesSeven], tools: [calculator], hooks: [ask] },
    react: answer("deny"),
  },
  "a limit that a person raises": {
    plan: {
      context: SIMPLE,
      providers: [sixTimesSeven],
      tools: [calculator],
      limits: { max_tool_calls: 0, on_limit: "pause" },
    },
    react: answer("allow"),
  },
  "an approval without an answer": {
    plan: {
      context: SIMPLE,
      providers: [sixTimesSeven],
      tools: [calculator],
      hooks: [ask],
      limits: { max_duration_s: 100_000 },
    },
    step_ms: 60_000,
  },
  "two concurrent tools, the later one first": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("slow"), call("quick"), call("slow")] }, "done")],
      tools: [slow("slow", 500), slow("quick", 100)],
    },
  },
  "a picture from a tool, while another call waits for approval": {
    plan: {
      context: SIMPLE,
      providers: [
        mock({ tool_calls: [call("picture"), call("calculator", { expression: "6*7" })] }, "A picture."),
      ],
      tools: [
        tool("picture", () => Promise.resolve({ success: true, output: "seen", content: PICTURE })),
        calculator,
      ],
      hooks: [ask],
    },
    react: answer("allow"),
  },
  "two concurrent approvals": {
    plan: {
      context: SIMPLE,
      providers: [
        mock({ tool_calls: [1, 2].map((n) => call("calculator", { expression: `${n}+1` })) }, "done"),
      ],
      tools: [calculator],
      hooks: [ask],
    },
    react: (entry, { decide }) =>
      entry.event === "approval:required"
        ? decide(
          entry,
          (entry.data.tool_input as { expression: string }).expression === "1+1" ? "deny" : "allow",
        )
        : undefined,
  },
  "tools that fail in every way": {
    plan: {
      context: SIMPLE,
      providers: [
        mock({
          tool_calls: [
            call("nowhere"),
            call("calculator", { expression: 3 }),
            { name: "calculator", arguments: "not json" },
            call("calculator", { expression: "1/0" }),
            call("throws"),
            call("refuses"),
          ],
        }, "done"),
      ],
      tools: [
        calculator,
        tool("throws", () => Promise.reject(new RangeError("too far"))),
        tool("refuses", () => Promise.resolve({ success: false, error: { message: "not today" } })),
      ],
      loop: { max_parallel_tools: 1 },
    },
  },
  "hooks that deny, modify and inject": {
    plan: {
      context: SIMPLE,
      providers: [
        mock(
          { tool_calls: [call("a", { n: 1 }), call("b"), call("c")] },
          { tool_calls: [call("c")] },
          "done",
        ),
      ],
      tools: [tool("a"), tool("b"), tool("c", () => Promise.resolve({ found: [1, 2] }))],
      hooks: [
        hook(
          "tool:pre",
          (_, data) =>
            data.tool_name === "a"
              ? { action: "modify", data: { ...data, tool_input: { n: 2 } } }
              : data.tool_name === "b"
              ? {
                action: "deny",
                reason: "not b",
                user_message: "b was denied",
                user_message_level: "warning",
              }
              : null,
        ),
        hook(
          "tool:post",
          (_, data) =>
            data.tool_name === "c"
              ? { action: "inject_context", context_injection: "look closer", ephemeral: true }
              : { action: "modify", data: { ...data, result: "changed" } },
        ),
        hook(
          "provider:request",
          (_, { iteration }) =>
            iteration === 2
              ? { action: "inject_context", context_injection: "remember", context_injection_role: "user" }
              : null,
        ),
        hook("prompt:submit", (_, data) => ({ action: "modify", data: { ...data, prompt: "hello again" } })),
      ],
    },
  },
  "a denied prompt": {
    plan: { context: SIMPLE, hooks: [hook("prompt:submit", () => ({ action: "deny", reason: "no" }))] },
  },
  "a denied provider request": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("a")] }, "never")],
      tools: [tool("a")],
      hooks: [
        hook(
          "provider:request",
          (_, { iteration }) => iteration === 2 ? { action: "deny", reason: "enough" } : null,
        ),
      ],
    },
  },
  "the limit of tool calls": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("a"), call("a")] }, "never")],
      tools: [tool("a")],
      limits: { max_tool_calls: 1 },
    },
  },
  "the loop's own limit": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("a")] }, { tool_calls: [call("a")] }, "that is all")],
      tools: [tool("a")],
      loop: { max_iterations: 2 },
    },
  },
  "empty answers": { plan: { context: SIMPLE, providers: [mock({ text: "" }, { text: "" }, { text: "" })] } },
  "a provider that fails": {
    plan: {
      context: SIMPLE,
      providers: [mock(...[1, 2].map(() => ({
        error: { type: "AuthenticationError", message: "bad key", status_code: 401 },
      })))],
    },
  },
  "a provider call that its provider aborts": {
    plan: { context: SIMPLE, providers: [mock({ error: { type: "AbortError", message: "gone" } }, "never")] },
  },
  "the run's limit, without room for a wrap-up": {
    plan: {
      context: SIMPLE,
      providers: [mock({ text: "let me see", tool_calls: [call("a")] }, "never")],
      tools: [tool("a")],
      limits: { max_iterations: 1 },
    },
  },
  "a stream that breaks": {
    plan: {
      context: SIMPLE,
      providers: [mock({ text: "It is quite", error: { type: "StreamError", message: "cut off" } })],
    },
  },
  "a retry": {
    plan: {
      context: SIMPLE,
      providers: [
        mock(
          { error: { type: "RateLimitError", message: "slow down", status_code: 429, retry_after: 3 } },
          { error: { type: "ProviderUnavailableError", message: "busy", status_code: 503 } },
          "at last",
        ),
      ],
    },
  },
  "a request that is too long": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("big"), call("big"), call("big")] }, tooLong(9000, 4000), "done")],
      tools: [
        tool("big", () => Promise.resolve("some words of a result ".repeat(400)), { idempotent: true }),
      ],
    },
  },
  "a request that stays too long": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("big")] }, tooLong(9000, 8000), tooLong(4100, 4000), "never")],
      tools: [tool("big", () => Promise.resolve("some words of a result ".repeat(1000)))],
    },
  },
  "another provider answers": {
    plan: {
      context: SIMPLE,
      providers: [
        mock({ error: { type: "NetworkError", message: "gone" } }),
        { ...builtin(providerMock, { responses: ["from the other"] }), instance_id: "other" } as TestModule,
      ],
      loop: { fallback: true, max_retries: 0 },
    },
  },
  "throttled provider calls": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("slow")] }, "done")],
      tools: [slow("slow", 200)],
      loop: { min_delay_between_calls_ms: 30_000 },
    },
  },
  "structured output, repaired": {
    plan: {
      context: SIMPLE,
      providers: [
        mock({ tool_calls: [call("calculator", { expression: "2+2" })] }, "It is 4.", '{"sum": 4}'),
      ],
      tools: [calculator],
      loop: {
        response_format: {
          type: "json_schema",
          schema: { type: "object", properties: { sum: { type: "integer" } }, required: ["sum"] },
        },
      },
    },
  },
  "a steer during a tool": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("slow")] }, "as you say")],
      tools: [slow("slow", 500)],
    },
    react: async ({ event }, { runs, run_id }) => {
      if (event !== "tool:pre") return;
      await runs.steer(CALLER, run_id, "be quick");
      await runs.steer(CALLER, run_id, "and polite");
    },
  },
  "a graceful cancel during a tool": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("slow")] }, "never")],
      tools: [slow("slow", 500)],
    },
    react: ({ event }, { runs, run_id }) =>
      event === "tool:pre" ? runs.cancel(CALLER, run_id, "graceful") : undefined,
  },
  "an immediate cancel during tools": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("slow"), call("quick")] }, "never")],
      tools: [slow("slow", 50_000), slow("quick", 50)],
    },
    react: ({ event }, { runs, run_id }) =>
      event === "tool:post" ? runs.cancel(CALLER, run_id, "immediate") : undefined,
  },
  "an immediate cancel during a model call": {
    plan: { context: SIMPLE, providers: [mock({ delay_ms: 90_000, text: "never" })] },
    react: ({ event }, { runs, run_id }) =>
      event === "provider:request" ? runs.cancel(CALLER, run_id, "immediate") : undefined,
  },
  "an immediate cancel while an answer streams": {
    plan: { context: SIMPLE, providers: [streamsAndWaits] },
    react: ({ event }, { runs, run_id }) =>
      event === "content_block:delta" ? runs.cancel(CALLER, run_id, "immediate") : undefined,
  },
  "the timeout of the run": {
    plan: {
      context: SIMPLE,
      providers: [mock({ delay_ms: 90_000, text: "never" })],
      limits: { max_duration_s: 20 },
    },
    step_ms: 1_000,
  },
  "a tool that is too slow": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("slow")] }, "done")],
      tools: [slow("slow", 500_000)],
      limits: { max_duration_s: 100_000 },
    },
    step_ms: 10_000,
  },
  "a second run of a session": {
    plan: {
      context: SIMPLE,
      system: "Be brief.",
      providers: [mock("first", { tool_calls: [call("todo", { action: "list" })] }, "second")],
      tools: [builtin(toolTodo)],
    },
    before: { prompt: "the first prompt" },
    request: { prompt: "the second prompt" },
  },
  "hooks select the tool": {
    plan: {
      orchestrator: builtin(loopEvents),
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("a", { n: 1 }), call("b")] }, "done")],
      tools: [tool("a"), tool("b"), tool("c")],
      hooks: [hook("tool:selecting", (_, { tool_name }) => ({
        action: "continue",
        data: tool_name === "a" ? { tool_name: "c", tool_input: { n: 2 } } : { deny: true, reason: "not b" },
      }))],
    },
  },
  "events of modules, progress, and a hook that calls a provider": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("reports")] }, "done"), {
        ...builtin(providerMock, { responses: ["a second opinion"] }),
        instance_id: "judge",
      } as TestModule],
      tools: [async (coordinator) =>
        await coordinator.mount(
          "tools",
          tool("reports", async (_, context) => {
            context?.progress("half way");
            context?.output?.("written\n");
            await coordinator.hooks.emit("reports:something", { n: 1 });
            return "reported";
          }),
        )],
      hooks: [(coordinator) => {
        coordinator.hooks.register("tool:post", async () => {
          const judge = coordinator.providers.judge!;
          const { content } = await judge.complete({ messages: [{ role: "user", content: "well?" }] });
          await coordinator.hooks.emit("judge:verdict", { content });
          coordinator.session_state.judged = true;
          return null;
        });
      }],
    },
  },
  "events of the loop's and the context's own, which a tool emits too": {
    plan: {
      async orchestrator(coordinator) {
        emitsOwn(coordinator, "loop");
        await coordinator.mount("orchestrator", STREAMING);
      },
      async context(coordinator) {
        emitsOwn(coordinator, "context");
        await contextSimple.mount(coordinator, {});
      },
      providers: [mock({ tool_calls: [call("emits")] }, "done")],
      tools: [async (coordinator) => {
        const emits = tool("emits", async () => await coordinator.hooks.emit("suite:step", { by: "tool" }));
        await coordinator.mount("tools", emits);
      }],
    },
  },
  "events that a hook may not emit": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("t")] }, "done")],
      tools: [tool("t")],
      hooks: [({ hooks }) => {
        hooks.register("tool:pre", async () => {
          for (const event of RESERVED_EVENTS) {
            await hooks.emit(event, {});
            await hooks.emitAndCollect(event, {});
          }
          return null;
        });
      }],
    },
  },
  "fields that are named like secrets, in a call, its approval and its result": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("login", { user: "ann", password: "tulips" })] }, "Welcome.")],
      tools: [tool("login", () => Promise.resolve({ secret: "roses", token: 5, auth: { scheme: "x" } }))],
      hooks: [builtin(hooksApproval, { rules: [{ tool: "login", action: "ask" }] })],
    },
    request: { metadata: { token: 7 } },
    react: answer("allow"),
  },
  "a known secret in a call, its approval, its result and the answer": {
    plan: {
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("login", { phrase: "open-sesame" })] }, "It is open-sesame.")],
      tools: [tool("login", () => Promise.resolve("open-sesame it is"))],
      hooks: [builtin(hooksApproval, { rules: [{ tool: "login", action: "ask" }] })],
      secrets: ["open-sesame"],
    },
    react: answer("allow"),
  },
  "modules that clean up, and one that fails to": {
    plan: {
      context: SIMPLE,
      providers: [mock("Goodbye.")],
      tools: [async (coordinator) => {
        await coordinator.mount("tools", tool("idle", () => Promise.resolve("nothing")));
        coordinator.registerCleanup(() => {
          throw new Error("the door is stuck");
        });
        return () => {};
      }],
      hooks: [(coordinator) => {
        coordinator.hooks.register("session:start", () => null, { name: "first" });
        return Promise.resolve(() => {});
      }],
    },
  },
  "a model that gives the calls of each answer the same id": {
    plan: {
      context: SIMPLE,
      providers: [[
        { tool_calls: [{ id: "call_0", name: "echo", arguments: { n: 1 } }] },
        { tool_calls: [{ id: "call_0", name: "echo", arguments: { n: 2 } }] },
        { text: "done" },
      ]],
      tools: [tool("echo", ({ n }) => Promise.resolve(`It is ${n}.`))],
      hooks: [hook(
        "tool:post",
        (_, { tool_input }) =>
          (tool_input as { n: number }).n === 2 ? { action: "deny", reason: "enough" } : null,
      )],
    },
  },
  "a loop and other modules that keep state": {
    plan: {
      orchestrator: keepsState,
      context: SIMPLE,
      providers: [mock({ tool_calls: [call("a")] }, "done"), {
        ...builtin(providerMock, { responses: ["a second opinion"] }),
        instance_id: "judge",
      } as TestModule],
      tools: [tool("a")],
      hooks: [(coordinator) => {
        coordinator.hooks.register("tool:pre", async () => {
          coordinator.session_state.seen = true;
          await coordinator.providers.judge!.complete({ messages: [{ role: "user", content: "well?" }] });
          return null;
        });
      }],
    },
  },
  "a compacted history": {
    plan: {
      context: SIMPLE,
      providers: [
        builtin(providerMock, {
          context_window: 4_000,
          max_output_tokens: 500,
          responses: [...Array.from({ length: 8 }, () => ({ tool_calls: [call("long")] })), "done"],
        }),
      ],
      tools: [tool("long", () => Promise.resolve("word ".repeat(900)))],
    },
  },
};
