/** The orchestrator contract as a test suite. */
import type { Orchestrator } from "../../sdk/contracts.ts";
import { errorMessage } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { type Message, textOf } from "../../sdk/messages.ts";
import { assertToolPairs, toolPairFindings } from "../assertions.ts";
import type { TestCoordinator } from "../coordinator.ts";
import { MockContextManager, MockTool } from "../mocks.ts";
import { MockProvider, type ScriptStep } from "../mock_provider.ts";
import {
  type Cases,
  type CreateSubject,
  expect,
  isCodeError,
  registerCases,
  type SuiteOptions,
  withSubject,
} from "./suite.ts";

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
  prepare?: (coordinator: TestCoordinator) => unknown;
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
  max_calls: number;
}

const TWO_CALLS = {
  tool_calls: [{ name: "first", arguments: { n: 1 } }, { name: "second", arguments: { n: 2 } }],
};

/** Runs a turn on the loop of a case. */
type RunTurn = (inputs: Turn) => Promise<Outcome>;

/**
 * Registers the cases that every orchestrator must pass. `create` makes a new module or orchestrator per
 * case.
 */
export function testOrchestrator(
  name: string,
  create: CreateSubject<Orchestrator>,
  options: OrchestratorSuiteOptions = {},
): void {
  const max_calls = options.max_calls ?? 60;
  registerCases<RunTurn>(
    name,
    options,
    CASES,
    (check) =>
      withSubject(create, "orchestrator", options, ({ coordinator }) => {
        const { orchestrator: loop } = coordinator;
        expect(loop, "No orchestrator was mounted and mount() did not return an Orchestrator instance");
        expect(typeof loop.execute === "function", "execute must be a function");
        return check((inputs) => runTurn(loop, coordinator, inputs, max_calls));
      }),
  );
}

const twoTools = () => [new MockTool("first", "one"), new MockTool("second", "two")];

const CASES: Cases<RunTurn> = {
  "mount() mounts an orchestrator whose execute is a function"() {},
  async "execute() resolves to the provider's text"(run) {
    const outcome = await run({ script: ["It is 4."] });
    succeeded(outcome);
    const { text, provider: { call_count } } = outcome;
    expect(text === "It is 4.", `the answer must be the provider's text: received ${JSON.stringify(text)}`);
    expect(call_count === 1, `one answer takes one call: received ${call_count}`);
  },
  async "execute() stores the prompt, then the answer"(run) {
    const { messages } = await run({ prompt: "2 + 2?", script: ["It is 4."] });
    const stored = messages.map((message) => `${message.role}: ${textOf(message.content)}`).join(" | ");
    expect(stored === "user: 2 + 2? | assistant: It is 4.", `stored: ${stored}`);
  },
  async "execute() handles an empty prompt"(run) {
    const { thrown } = await run({ prompt: "" });
    expect(!isCodeError(thrown), `execute crashed: ${errorMessage(thrown)}`);
  },
  async "execute() works without a coordinator"(run) {
    const outcome = await run({ with_coordinator: false, script: ["Yes."] });
    succeeded(outcome);
    expect(outcome.text === "Yes.", "the answer must be the provider's text");
  },
  async "execute() emits the events of its turn in order"(run) {
    const { events } = await run({ script: ["Yes."] });
    const expected = [
      "execution:start",
      "prompt:submit",
      "provider:request",
      "provider:response",
      "execution:end",
      "orchestrator:complete",
    ];
    const seen = events.filter((event) => expected.includes(event)).join(", ");
    expect(seen === expected.join(", "), `expected ${expected.join(", ")}: received ${seen}`);
  },
  async "execute() completes a good turn with success"(run) {
    completed(await run({ script: ["Yes."] }), "success");
  },
  async "execute() runs tools and answers each call once, in order"(run) {
    const outcome = await run({ script: [TWO_CALLS, "Done."], tools: twoTools() });
    succeeded(outcome);
    assertToolPairs(outcome.messages);
    const results = resultTexts(outcome).join(", ");
    expect(results === "one, two", `results must be the tools' outputs in call order: received ${results}`);
    expect(outcome.text === "Done.", "the answer must be the provider's last text");
  },
  async "execute() shows the provider every result"(run) {
    const { provider } = await run({ script: [TWO_CALLS, "Done."], tools: twoTools() });
    const last = provider.requests.at(-1);
    expect(last, "the provider must be called again after the tools");
    assertToolPairs(last.messages);
    const results = last.messages.filter((message) => message.role === "tool");
    expect(results.length === 2, "the second request must hold both results");
  },
  async "execute() emits tool:pre and tool:post with the call's id"(run) {
    const { coordinator } = await run({ script: [TWO_CALLS, "Done."], tools: twoTools() });
    for (const event of ["tool:pre", "tool:post"]) {
      const ids = coordinator.hooks.getEvents(event).map(([, data]) => data.tool_call_id).join(", ");
      expect(ids === "call_1, call_2", `${event} must be emitted for each call: received ${ids || "none"}`);
    }
  },
  async "execute() answers a call of an unknown tool"(run) {
    const outcome = await run({ script: [{ tool_calls: [{ name: "nowhere" }] }, "Done."] });
    succeeded(outcome);
    assertToolPairs(outcome.messages);
    expect(resultTexts(outcome).length === 1, "the call must be answered with an error");
  },
  async "execute() answers a call whose tool throws"(run) {
    const first = new MockTool({ name: "first", error: new Error("no disk") });
    const tools = [first, new MockTool("second", "two")];
    const outcome = await run({ script: [TWO_CALLS, "Done."], tools });
    succeeded(outcome);
    assertToolPairs(outcome.messages);
    expect(resultTexts(outcome)[0]?.includes("no disk"), "the result must contain the tool's error");
    expect(outcome.events.includes("tool:error"), "tool:error must be emitted");
  },
  async "execute() does not run a call that tool:pre denied"(run) {
    const tools = twoTools();
    const prepare = ({ hooks }: TestCoordinator) => {
      hooks.register(
        "tool:pre",
        (_, data) => data.tool_name === "first" ? { action: "deny", reason: "not here" } : null,
      );
    };
    const outcome = await run({ script: [TWO_CALLS, "Done."], tools, prepare });
    succeeded(outcome);
    expect(tools[0]?.call_count === 0, "the denied tool ran");
    expect(tools[1]?.call_count === 1, "the other tool must run");
    assertToolPairs(outcome.messages);
    const [result] = resultTexts(outcome);
    const wanted = "Denied by hook: not here";
    expect(result === wanted, `the result must be "${wanted}": received ${result}`);
  },
  async "execute() calls no provider when prompt:submit is denied"(run) {
    const outcome = await run({ prepare: deny("prompt:submit") });
    expect(outcome.provider.call_count === 0, "the provider was called");
    expect(outcome.messages.length === 0, "nothing may be stored");
    completed(outcome, "incomplete");
  },
  async "execute() calls no provider when provider:request is denied"(run) {
    const { provider, completes } = await run({ prepare: deny("provider:request") });
    expect(provider.call_count === 0, "the provider was called");
    expect(completes.length === 1, "orchestrator:complete must be emitted once");
  },
  async "execute() ends with error when the provider fails"(run) {
    const outcome = await run({ script: [{ error: { type: "InvalidRequestError", message: "bad" } }] });
    expect(outcome.thrown, "a failure of the provider must come out of execute");
    completed(outcome, "error");
    const ends = outcome.events.filter((event) => event === "execution:end").length;
    expect(ends === 1, `execution:end must be emitted once on every path: received ${ends}`);
  },
  async "execute() ends when the model calls tools endlessly"(run) {
    const outcome = await run({ script: [{ tool_calls: [{ name: "first" }] }], tools: twoTools() });
    const { provider: { call_count }, max_calls } = outcome;
    expect(call_count < max_calls, `still calling after ${max_calls} calls: the loop has no bound`);
    assertToolPairs(outcome.messages);
    expect(outcome.completes.length === 1, "orchestrator:complete must be emitted once");
  },
  async "execute() ends when the model keeps answering nothing"(run) {
    const { provider: { call_count }, completes } = await run({ script: [{}] });
    expect(call_count <= 4, `an empty answer is tried again at most twice: received ${call_count} calls`);
    expect(completes.length === 1, "orchestrator:complete must be emitted once");
  },
  "execute() stops after the tools when cancelled gracefully": (run) => checkCancelled(run, false),
  "execute() answers every call when cancelled immediately": (run) => checkCancelled(run, true),
};

async function checkCancelled(run: RunTurn, immediate: boolean): Promise<void> {
  let cancel = () => {};
  const first = new MockTool({ name: "first", execute: () => (cancel(), "one") });
  const outcome = await run({
    script: [TWO_CALLS, "Never said."],
    tools: [first, new MockTool("second", "two")],
    prepare: (coordinator) => cancel = () => coordinator.requestCancel(immediate),
  });
  expect(outcome.provider.call_count === 1, "the provider was called after the cancellation");
  const findings = toolPairFindings(outcome.messages);
  expect(findings.length === 0, `every call must have exactly one result: ${findings.join("; ")}`);
  completed(outcome, "cancelled");
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
  return { text, thrown, provider, messages: context.messages, coordinator, events, completes, max_calls };
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
