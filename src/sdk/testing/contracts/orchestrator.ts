/** The orchestrator contract as a test suite. */
import type { Orchestrator } from "../../contracts.ts";
import { errorMessage } from "../../errors.ts";
import type { JsonObject } from "../../json.ts";
import { type Message, textOf } from "../../messages.ts";
import { assertToolPairs, toolPairFindings } from "../assertions.ts";
import type { TestCoordinator } from "../coordinator.ts";
import { MockContextManager } from "../mock_context.ts";
import { MockProvider, type ScriptStep } from "../mock_provider.ts";
import { MockTool } from "../mock_tool.ts";
import { casesOf, type CreateSubject, expect, isCodeError, type SuiteOptions, withSubject } from "./suite.ts";

/** Options of {@link testOrchestrator}. */
export interface OrchestratorSuiteOptions extends SuiteOptions {
  /** Provider calls after which a loop counts as infinite; default 60. */
  max_calls?: number;
}

/** Inputs of a turn. */
interface Turn {
  prompt?: string;
  script?: readonly ScriptStep[];
  tools?: readonly MockTool[];
  /** Called after mounting, before the turn. */
  prepare?: (coordinator: TestCoordinator) => void;
  /** Whether the loop receives the coordinator; default true. */
  with_coordinator?: boolean;
}

/** Result of a turn. */
interface Outcome {
  text: string;
  thrown: unknown;
  provider: MockProvider;
  messages: Message[];
  coordinator: TestCoordinator;
  events: string[];
  /** Data of the `orchestrator:complete` events. */
  completes: JsonObject[];
}

const TWO_CALLS = {
  tool_calls: [{ name: "first", arguments: { n: 1 } }, { name: "second", arguments: { n: 2 } }],
};

/**
 * Registers the cases that every orchestrator must pass. `create` makes a new module or orchestrator per
 * case.
 */
export function testOrchestrator(
  name: string,
  create: CreateSubject<Orchestrator>,
  options: OrchestratorSuiteOptions = {},
): void {
  const test = casesOf(name, options);
  const turn = (inputs: Turn, check: (outcome: Outcome) => void) => () =>
    withSubject(create, "orchestrator", options, async ({ coordinator }) => {
      expect(
        coordinator.orchestrator,
        "No orchestrator was mounted and mount() did not return an Orchestrator instance",
      );
      check(await runTurn(coordinator.orchestrator, coordinator, inputs, options.max_calls ?? 60));
    });
  const twoTools = () => [new MockTool("first", "one"), new MockTool("second", "two")];

  test("mount() mounts an orchestrator whose execute is a function", () =>
    withSubject(create, "orchestrator", options, ({ coordinator }) => {
      expect(typeof coordinator.orchestrator?.execute === "function", "execute must be a function");
    }));
  test(
    "execute() resolves to the provider's text",
    turn({ script: ["It is 4."] }, (outcome) => {
      succeeded(outcome);
      expect(
        outcome.text === "It is 4.",
        `the answer must be the provider's text: received ${JSON.stringify(outcome.text)}`,
      );
      expect(
        outcome.provider.call_count === 1,
        `one answer takes one call: received ${outcome.provider.call_count}`,
      );
    }),
  );
  test(
    "execute() stores the prompt, then the answer",
    turn({ prompt: "2 + 2?", script: ["It is 4."] }, (outcome) => {
      const stored = outcome.messages.map((message) => [message.role, textOf(message.content)].join(": "));
      expect(stored.join(" | ") === "user: 2 + 2? | assistant: It is 4.", `stored: ${stored.join(" | ")}`);
    }),
  );
  test(
    "execute() handles an empty prompt",
    turn({ prompt: "" }, ({ thrown }) => {
      expect(!isCodeError(thrown), `execute crashed: ${errorMessage(thrown)}`);
    }),
  );
  test(
    "execute() works without a coordinator",
    turn({ with_coordinator: false, script: ["Yes."] }, (outcome) => {
      succeeded(outcome);
      expect(outcome.text === "Yes.", "the answer must be the provider's text");
    }),
  );
  test(
    "execute() emits the events of its turn in order",
    turn({ script: ["Yes."] }, ({ events }) => {
      const expected_events = [
        "execution:start",
        "prompt:submit",
        "provider:request",
        "provider:response",
        "execution:end",
        "orchestrator:complete",
      ];
      const seen = events.filter((event) => expected_events.includes(event));
      expect(
        seen.join(", ") === expected_events.join(", "),
        `expected ${expected_events.join(", ")}: received ${seen.join(", ")}`,
      );
    }),
  );
  test(
    "execute() completes a good turn with success",
    turn({ script: ["Yes."] }, (outcome) => completed(outcome, "success")),
  );
  test(
    "execute() runs tools and answers each call once, in order",
    turn({ script: [TWO_CALLS, "Done."], tools: twoTools() }, (outcome) => {
      succeeded(outcome);
      assertToolPairs(outcome.messages);
      const results = outcome.messages.filter((message) => message.role === "tool").map((message) =>
        textOf(message.content)
      );
      expect(
        results.join(", ") === "one, two",
        `results must be the tools' outputs in call order: received ${results.join(", ")}`,
      );
      expect(outcome.text === "Done.", "the answer must be the provider's last text");
    }),
  );
  test(
    "execute() shows the provider every result",
    turn({ script: [TWO_CALLS, "Done."], tools: twoTools() }, ({ provider }) => {
      const last = provider.requests.at(-1);
      expect(last, "the provider must be called again after the tools");
      assertToolPairs(last.messages);
      expect(
        last.messages.filter((message) => message.role === "tool").length === 2,
        "the second request must hold both results",
      );
    }),
  );
  test(
    "execute() emits tool:pre and tool:post with the call's id",
    turn({ script: [TWO_CALLS, "Done."], tools: twoTools() }, ({ coordinator }) => {
      for (const event of ["tool:pre", "tool:post"]) {
        const ids = coordinator.hooks.getEvents(event).map(([, data]) => data.tool_call_id);
        expect(
          ids.join(", ") === "call_1, call_2",
          `${event} must be emitted for each call: received ${ids.join(", ") || "none"}`,
        );
      }
    }),
  );
  test(
    "execute() answers a call of an unknown tool",
    turn({ script: [{ tool_calls: [{ name: "nowhere" }] }, "Done."] }, (outcome) => {
      succeeded(outcome);
      assertToolPairs(outcome.messages);
      expect(resultTexts(outcome).length === 1, "the call must be answered with an error");
    }),
  );
  test(
    "execute() answers a call whose tool throws",
    turn(
      {
        script: [TWO_CALLS, "Done."],
        tools: [new MockTool({ name: "first", error: new Error("no disk") }), new MockTool("second", "two")],
      },
      (outcome) => {
        succeeded(outcome);
        assertToolPairs(outcome.messages);
        expect(
          resultTexts(outcome)[0]?.includes("no disk"),
          "the result must contain the tool's error",
        );
        expect(outcome.events.includes("tool:error"), "tool:error must be emitted");
      },
    ),
  );
  const denied = twoTools();
  test(
    "execute() does not run a call that tool:pre denied",
    turn({
      script: [TWO_CALLS, "Done."],
      tools: denied,
      prepare: ({ hooks }) => {
        hooks.register(
          "tool:pre",
          (_, data) => data.tool_name === "first" ? { action: "deny", reason: "not here" } : null,
        );
      },
    }, (outcome) => {
      succeeded(outcome);
      expect(denied[0]?.call_count === 0, "the denied tool ran");
      expect(denied[1]?.call_count === 1, "the other tool must run");
      assertToolPairs(outcome.messages);
      expect(
        resultTexts(outcome)[0] === "Denied by hook: not here",
        `the result must be "Denied by hook: not here": received ${resultTexts(outcome)[0]}`,
      );
    }),
  );
  test(
    "execute() calls no provider when prompt:submit is denied",
    turn({ prepare: deny("prompt:submit") }, (outcome) => {
      expect(outcome.provider.call_count === 0, "the provider was called");
      expect(outcome.messages.length === 0, "nothing may be stored");
      completed(outcome, "incomplete");
    }),
  );
  test(
    "execute() calls no provider when provider:request is denied",
    turn({ prepare: deny("provider:request") }, (outcome) => {
      expect(outcome.provider.call_count === 0, "the provider was called");
      expect(outcome.completes.length === 1, "orchestrator:complete must be emitted once");
    }),
  );
  test(
    "execute() ends with error when the provider fails",
    turn({ script: [{ error: { type: "InvalidRequestError", message: "bad" } }] }, (outcome) => {
      expect(outcome.thrown, "a failure of the provider must come out of execute");
      completed(outcome, "error");
      const ends = outcome.events.filter((event) => event === "execution:end").length;
      expect(ends === 1, `execution:end must be emitted once on every path: received ${ends}`);
    }),
  );
  test(
    "execute() ends when the model calls tools endlessly",
    turn({ script: [{ tool_calls: [{ name: "first" }] }], tools: twoTools() }, (outcome) => {
      const limit = options.max_calls ?? 60;
      expect(
        outcome.provider.call_count < limit,
        `still calling after ${limit} calls: the loop has no bound`,
      );
      assertToolPairs(outcome.messages);
      expect(outcome.completes.length === 1, "orchestrator:complete must be emitted once");
    }),
  );
  test(
    "execute() ends when the model keeps answering nothing",
    turn({ script: [{}] }, ({ provider, completes }) => {
      expect(
        provider.call_count <= 4,
        `an empty answer is tried again at most twice: received ${provider.call_count} calls`,
      );
      expect(completes.length === 1, "orchestrator:complete must be emitted once");
    }),
  );
  test("execute() stops after the tools when cancelled gracefully", cancelled(false));
  test("execute() answers every call when cancelled immediately", cancelled(true));

  function cancelled(immediate: boolean): () => Promise<void> {
    return () =>
      withSubject(create, "orchestrator", options, async ({ coordinator }) => {
        expect(coordinator.orchestrator, "No orchestrator was mounted");
        const first = new MockTool({
          name: "first",
          execute: () => (coordinator.requestCancel(immediate), "one"),
        });
        const inputs = { script: [TWO_CALLS, "Never said."], tools: [first, new MockTool("second", "two")] };
        const outcome = await runTurn(coordinator.orchestrator, coordinator, inputs, options.max_calls ?? 60);
        expect(outcome.provider.call_count === 1, "the provider was called after the cancellation");
        const findings = toolPairFindings(outcome.messages);
        expect(findings.length === 0, `every call must have exactly one result: ${findings.join("; ")}`);
        completed(outcome, "cancelled");
      });
  }
}

async function runTurn(
  loop: Orchestrator,
  coordinator: TestCoordinator,
  inputs: Turn,
  max_calls: number,
): Promise<Outcome> {
  const script = inputs.script ?? ["Yes."];
  const last = script.at(-1)!; // the script is not empty
  const padding = Array.from({ length: Math.max(0, max_calls - script.length) }, () => last);
  const provider = new MockProvider({ responses: [...script, ...padding], after: "error" });
  const context = new MockContextManager();
  await coordinator.mount("providers", provider);
  await coordinator.mount("context", context);
  for (const tool of inputs.tools ?? []) await coordinator.mount("tools", tool);
  inputs.prepare?.(coordinator);
  const { providers, tools, hooks } = coordinator;
  const rest = inputs.with_coordinator === false ? [] : [{ coordinator }] as const;
  let text = "";
  let thrown: unknown;
  try {
    text = await loop.execute(inputs.prompt ?? "Hello", context, providers, tools, hooks, ...rest);
  } catch (error) {
    thrown = error ?? new Error("threw nothing");
  }
  const events = hooks.getEvents().map(([event]) => event);
  const completes = hooks.getEvents("orchestrator:complete").map(([, data]) => data);
  return { text, thrown, provider, messages: context.messages, coordinator, events, completes };
}

function succeeded({ thrown, text }: Outcome): void {
  expect(thrown === undefined, `execute failed: ${errorMessage(thrown)}`);
  expect(typeof text === "string" && text, "execute must resolve to a text that is not empty");
}

function completed({ completes, events }: Outcome, status: string): void {
  expect(
    completes.length === 1,
    `orchestrator:complete must be emitted exactly once: received ${completes.length}`,
  );
  const [data] = completes;
  expect(data?.status === status, `the turn must complete with ${status}: received ${data?.status}`);
  expect(Number.isSafeInteger(data.turn_count), "orchestrator:complete must contain turn_count");
  expect(typeof data.orchestrator === "string", "orchestrator:complete must contain the orchestrator's name");
  expect(events.at(-1) === "orchestrator:complete", "orchestrator:complete must be the last event");
}

function resultTexts({ messages }: Outcome): string[] {
  return messages.filter((message) => message.role === "tool").map((message) => textOf(message.content));
}

function deny(event: string): (coordinator: TestCoordinator) => void {
  return ({ hooks }) => {
    hooks.register(event, () => ({ action: "deny", reason: "not here" }));
  };
}
