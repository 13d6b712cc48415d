/** The orchestrator contract as a test suite. Each case runs a turn in a session of the kernel. */
import type { Orchestrator } from "../../sdk/contracts.ts";
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import type { HookHandler } from "../../sdk/hooks.ts";
import { jsonEqual, type JsonObject } from "../../sdk/json.ts";
import { type Message, textOf } from "../../sdk/messages.ts";
import { assertToolPairs } from "../assertions.ts";
import { FakeApproval, MockTool, type ScriptedAnswer } from "../mocks.ts";
import { MockProvider, type ScriptStep } from "../mock_provider.ts";
import { replaceLoop, TestSession, type TestSessionOptions, type TurnOutcome } from "../session.ts";
import {
  type Cases,
  type CreateSubject,
  expect,
  isCodeError,
  registerCases,
  required,
  sessionOptions,
  type SuiteOptions,
} from "./suite.ts";

/** Options of {@link testOrchestrator}. */
export interface OrchestratorSuiteOptions extends SuiteOptions {
  /** Model calls of a turn in which the model never stops calling tools; default 60. */
  max_calls?: number;
}

/** Inputs of a turn. */
interface Turn extends Pick<TestSessionOptions, "limits"> {
  prompt?: string;
  script?: readonly ScriptStep[];
  tools?: readonly MockTool[];
  /** Handlers by event. */
  handlers?: Readonly<Record<string, HookHandler>>;
  /** Answers to approvals. */
  answers?: readonly ScriptedAnswer[];
  /** Receives the session before the turn. */
  prepare?: (session: TestSession) => void;
  /** Whether the loop receives the coordinator; default true. */
  with_coordinator?: boolean;
}

/** What a loop did itself. The kernel adds to the log what a loop leaves out. */
interface Deeds {
  /** Messages that it stored. */
  readonly stored: Message[];
  /** Events that it emitted. */
  readonly emitted: string[];
  /** Names of the tools that it called. */
  readonly called: string[];
  /** Number of its model calls that the kernel refused: denied, cancelled or over a limit. */
  refused: number;
  /** The error of `execute`. */
  thrown?: unknown;
}

/** Result of a turn. */
interface Result extends TurnOutcome, Deeds {
  provider: MockProvider;
  /** The history. */
  messages: Message[];
  session: TestSession;
}

/** The loop of a case. */
interface Subject {
  /** Opens a session with the loop. */
  open(inputs?: Turn): Promise<Opened>;
  /** Runs a turn. */
  run(inputs: Turn): Promise<Result>;
}

interface Opened {
  session: TestSession;
  provider: MockProvider;
  deeds: Deeds;
}

const TWO_CALLS = {
  tool_calls: [{ name: "first", arguments: { n: 1 } }, { name: "second", arguments: { n: 2 } }],
};
const ENDLESS = { tool_calls: [{ name: "first", arguments: {} }] };

/**
 * Registers the cases that every orchestrator must pass. `create` makes a new module or orchestrator per
 * case. A loop that passes meets no gate, limit or denial on a server that it has not met here.
 */
export function testOrchestrator(
  name: string,
  create: CreateSubject<Orchestrator>,
  options: OrchestratorSuiteOptions = {},
): void {
  const max_calls = options.max_calls ?? 60;
  const cases = { ...CASES, [ENDS]: ({ run }: Subject) => checkEndless(run, max_calls) };
  registerCases<Subject>(name, options, cases, async (check) => {
    const sessions: TestSession[] = [];
    const open = async (inputs: Turn = {}) => {
      const opened = await openSession(create, options, inputs);
      sessions.push(opened.session);
      return opened;
    };
    try {
      await check({ open, run: async (inputs) => await runTurn(await open(inputs), inputs) });
    } finally {
      for (const session of sessions) await session.close();
    }
  });
}

const twoTools = () => [new MockTool("first", "one"), new MockTool("second", "two")];
const deny: HookHandler = () => ({ action: "deny", reason: "not here" });
const ENDS = "execute() ends when the model calls tools endlessly";

const CASES: Cases<Subject> = {
  async "mount() mounts an orchestrator whose execute is a function"({ open }) {
    await open();
  },
  async "execute() resolves to the provider's text"({ run }) {
    const result = await run({ script: ["It is 4."] });
    succeeded(result);
    const { output_text: text, provider: { call_count } } = result;
    expect(text === "It is 4.", `the answer must be the provider's text: received ${JSON.stringify(text)}`);
    expect(call_count === 1, `one answer takes one call: received ${call_count}`);
  },
  async "execute() stores the prompt, then the answer"({ run }) {
    const { messages } = await run({ prompt: "2 + 2?", script: ["It is 4."] });
    const stored = messages.map((message) => `${message.role}: ${textOf(message.content)}`).join(" | ");
    expect(stored === "user: 2 + 2? | assistant: It is 4.", `stored: ${stored}`);
  },
  async "execute() handles an empty prompt"({ run }) {
    const { thrown } = await run({ prompt: "" });
    expect(!isCodeError(thrown), `execute crashed: ${errorMessage(thrown)}`);
  },
  async "execute() works without a coordinator"({ run }) {
    const result = await run({ with_coordinator: false, script: ["Yes."] });
    succeeded(result);
    expect(result.output_text === "Yes.", "the answer must be the provider's text");
  },
  async "execute() emits the events of its turn in order"({ run }) {
    const { session } = await run({ script: ["Yes."] });
    const expected = [
      "execution:start",
      "prompt:submit",
      "provider:request",
      "provider:response",
      "execution:end",
      "orchestrator:complete",
    ];
    const seen = session.getEvents().map(([event]) => event).filter((event) => expected.includes(event));
    expect(jsonEqual(seen, expected), `expected ${expected.join(", ")}: received ${seen.join(", ")}`);
  },
  async "execute() completes a good turn with success"({ run }) {
    ended(await run({ script: ["Yes."] }), "completed", "success");
  },
  async "execute() runs tools and answers each call once, in order"({ run }) {
    const result = await run({ script: [TWO_CALLS, "Done."], tools: twoTools() });
    succeeded(result);
    paired(result);
    const results = resultTexts(result).join(", ");
    expect(results === "one, two", `results must be the tools' outputs in call order: received ${results}`);
    expect(result.output_text === "Done.", "the answer must be the provider's last text");
  },
  async "execute() shows the provider every result"({ run }) {
    const result = await run({ script: [TWO_CALLS, "Done."], tools: twoTools() });
    const last = result.provider.requests.at(-1);
    expect(last, "the provider must be called again after the tools");
    assertToolPairs(last.messages);
    const results = last.messages.filter((message) => message.role === "tool");
    expect(results.length === 2, "the second request must hold both results");
    paired(result);
  },
  async "execute() emits tool:pre and tool:post with the call's id"({ run }) {
    const { session } = await run({ script: [TWO_CALLS, "Done."], tools: twoTools() });
    for (const event of ["tool:pre", "tool:post"]) {
      const ids = session.getEvents(event).map(([, data]) => data.tool_call_id).join(", ");
      expect(ids === "call_1, call_2", `${event} must be emitted for each call: received ${ids || "none"}`);
    }
  },
  async "execute() answers a call of an unknown tool"({ run }) {
    const result = await run({ script: [{ tool_calls: [{ name: "nowhere" }] }, "Done."] });
    succeeded(result);
    paired(result);
    expect(resultTexts(result).length === 1, "the call must be answered with an error");
  },
  async "execute() answers a call whose tool throws"({ run }) {
    await checkFailure(run, new MockTool({ name: "first", error: new Error("no disk") }), "tool:error");
  },
  async "execute() answers a call whose tool fails"({ run }) {
    const failure = { success: false, error: { message: "no disk" } };
    await checkFailure(run, new MockTool({ name: "first", return_value: failure }), "tool:post");
  },
  async "execute() answers a call whose input does not fit the tool's schema"({ run }) {
    const properties = { n: { type: "integer" } };
    const first = new MockTool({
      name: "first",
      input_schema: { type: "object", properties, required: ["n"] },
    });
    const calls = { tool_calls: [{ name: "first", arguments: { n: "many" } }] };
    const result = await run({ script: [calls, "Done."], tools: [first] });
    succeeded(result);
    paired(result);
    expect(first.call_count === 0, "the tool ran");
    expect(resultTexts(result)[0], "the result must say what is wrong");
  },
  async "execute() does not run a call that tool:pre denied"({ run }) {
    const tools = twoTools();
    const denyFirst: HookHandler = (event, data) => data.tool_name === "first" ? deny(event, data) : null;
    const result = await run({
      script: [TWO_CALLS, "Done."],
      tools,
      handlers: { "tool:pre": denyFirst },
    });
    checkDenied(result, "not here", tools);
    expect(tools[1]?.call_count === 1, "the other tool must run");
  },
  async "execute() runs a call with the input that tool:pre changed"({ run }) {
    const [first] = twoTools();
    const change: HookHandler = (_, data) => ({
      action: "modify",
      data: { ...data, tool_input: { n: 7 } },
    });
    const calls = { tool_calls: [{ name: "first", arguments: { n: 1 } }] };
    const result = await run({
      script: [calls, "Done."],
      tools: [first!], // of two
      handlers: { "tool:pre": change },
    });
    succeeded(result);
    const [{ input = {} } = {}, ...more] = first!.calls;
    const fits = more.length === 0 && jsonEqual(input, { n: 7 });
    expect(fits, `the tool must be called once, with {"n":7}: received ${JSON.stringify(first!.calls)}`);
  },
  async "execute() stores a result as tool:post changed it"({ run }) {
    const change: HookHandler = (_, data) => ({
      action: "modify",
      data: { ...data, result: { success: true, output: "[redacted]" } },
    });
    const result = await run({
      script: [ENDLESS, "Done."],
      tools: twoTools(),
      handlers: { "tool:post": change },
    });
    const [text] = resultTexts(result);
    expect(text === "[redacted]", `the result must be "[redacted]": received ${text}`);
  },
  async "execute() runs a call when a person allows it"({ run }) {
    const tools = twoTools();
    const result = await run({
      script: [ENDLESS, "Done."],
      tools,
      handlers: { "tool:pre": () => ({ action: "ask_user", approval_prompt: "Run it?" }) },
      answers: ["Allow"],
    });
    succeeded(result);
    expect(tools[0]?.call_count === 1, "the allowed tool must run");
  },
  async "execute() does not run a call that a person denies"({ run }) {
    const tools = twoTools();
    const result = await run({
      script: [ENDLESS, "Done."],
      tools,
      handlers: { "tool:pre": () => ({ action: "ask_user", approval_prompt: "Run it?" }) },
      answers: ["Deny"],
    });
    checkDenied(result, "User denied: Run it?", tools);
  },
  async "execute() calls no provider when prompt:submit is denied"({ run }) {
    const result = await run({ handlers: { "prompt:submit": deny } });
    notCalled(result, "prompt:submit");
    expect(result.messages.length === 0, "nothing may be stored");
    ended(result, "denied", "incomplete");
  },
  async "execute() calls no provider when a person denies the prompt"({ run }) {
    const ask: HookHandler = () => ({ action: "ask_user", approval_prompt: "Continue?" });
    const result = await run({ handlers: { "prompt:submit": ask }, answers: ["Deny"] });
    notCalled(result, "prompt:submit");
    expect(result.status === "denied", `the turn must be denied: received ${result.status}`);
  },
  async "execute() calls no provider when provider:request is denied"({ run }) {
    const result = await run({ handlers: { "provider:request": deny } });
    notCalled(result, "provider:request");
    expect(result.status === "denied", `the turn must be denied: received ${result.status}`);
  },
  async "execute() ends when a later provider:request is denied"({ run }) {
    let requests = 0;
    const denySecond: HookHandler = (event, data) => ++requests > 1 ? deny(event, data) : null;
    const result = await run({
      script: [TWO_CALLS, "Never said."],
      tools: twoTools(),
      handlers: { "provider:request": denySecond },
    });
    const { provider: { call_count }, status } = result;
    expect(call_count === 1, `the provider was called after the denial: ${call_count} calls`);
    expect(status === "denied", `the turn must be denied: received ${status}`);
    stoppedAtOnce(result, "provider:request");
    paired(result);
  },
  async "execute() ends with error when the provider fails"({ run }) {
    const result = await run({ script: [{ error: { type: "InvalidRequestError", message: "bad" } }] });
    const is_out = result.thrown !== undefined && result.error?.message.includes("bad");
    expect(is_out, "a failure of the provider must come out of execute");
    ended(result, "failed", "error");
  },
  async "execute() ends when max_iterations is reached"({ run }) {
    const result = await run({ script: [ENDLESS], tools: twoTools(), limits: { max_iterations: 2 } });
    checkLimit(result);
    const { provider: { call_count } } = result;
    expect(call_count <= 2, `two model calls are allowed: received ${call_count}`);
  },
  async "execute() ends when max_tool_calls is reached"({ run }) {
    const tools = twoTools();
    const result = await run({ script: [TWO_CALLS, "Never said."], tools, limits: { max_tool_calls: 1 } });
    checkLimit(result);
    const ran = tools.reduce((count, tool) => count + tool.call_count, 0);
    expect(ran === 1, `one tool call is allowed: received ${ran}`);
    expect(result.provider.call_count === 1, "the provider was called after the limit was reached");
  },
  async "execute() ends when max_total_tokens is reached"({ run }) {
    const usage = { input_tokens: 900, output_tokens: 90 };
    const result = await run({
      script: [{ ...ENDLESS, usage }],
      tools: twoTools(),
      limits: { max_total_tokens: 1000 },
    });
    checkLimit(result);
    expect(result.provider.call_count === 1, "the provider was called after the limit was reached");
  },
  async "execute() ends when the model keeps answering nothing"({ run }) {
    const { provider: { call_count } } = await run({ script: [{}] });
    expect(call_count <= 4, `an empty answer is tried again at most twice: received ${call_count} calls`);
  },
  "execute() stops after the tools when cancelled gracefully": ({ run }) => checkCancelled(run, false),
  "execute() answers every call when cancelled immediately": ({ run }) => checkCancelled(run, true),
  async "execute() ends when a model call is cancelled"({ run }) {
    let session: TestSession | undefined;
    const result = await run({
      script: [() => (session?.cancel(true), TWO_CALLS)],
      tools: twoTools(),
      prepare: (opened) => session = opened,
    });
    expect(result.refused <= 1, "the loop called the model after the cancellation"); // the call itself is one
    ended(result, "cancelled", "cancelled");
  },
};

type Run = Subject["run"];

async function checkFailure(run: Run, first: MockTool, event: string): Promise<void> {
  const result = await run({
    script: [TWO_CALLS, "Done."],
    tools: [first, new MockTool("second", "two")],
  });
  succeeded(result);
  paired(result);
  expect(resultTexts(result)[0]?.includes("no disk"), "the result must contain the tool's error");
  expect(result.session.getEvents(event).length > 0, `${event} must be emitted`);
}

/** Checks a turn whose call of the first tool was denied. */
function checkDenied(result: Result, reason: string, [first]: readonly MockTool[]): void {
  succeeded(result);
  paired(result);
  expect(first?.call_count === 0, "the denied tool ran");
  const stepped_around = result.emitted.includes("tool:pre") && result.called.includes("first");
  expect(!stepped_around, "the loop called the tool although its tool:pre was denied");
  const [text] = resultTexts(result);
  const wanted = `Denied by hook: ${reason}`;
  expect(text === wanted, `the result must be "${wanted}": received ${text}`);
}

async function checkEndless(run: Run, max_calls: number): Promise<void> {
  const limits = { max_iterations: max_calls, max_tool_calls: 10 * max_calls };
  checkLimit(await run({ script: [ENDLESS], tools: twoTools(), limits }));
}

/** Checks a turn that a limit ended: the loop must not continue. */
function checkLimit(result: Result): void {
  const { status, stop_reason, refused } = result;
  expect(status === "incomplete", `the turn must be incomplete: received ${status} (${stop_reason})`);
  expect(refused <= 1, `the loop continued after the limit was reached: ${refused} refused model calls`);
  assertToolPairs(result.messages);
}

async function checkCancelled(run: Run, immediate: boolean): Promise<void> {
  let session: TestSession | undefined;
  const first = new MockTool({ name: "first", execute: () => session?.cancel(immediate).then(() => "one") });
  const result = await run({
    script: [TWO_CALLS, "Never said."],
    tools: [first, new MockTool("second", "two")],
    prepare: (opened) => session = opened,
  });
  expect(result.refused === 0, "the loop called the model after the cancellation");
  paired(result);
  ended(result, "cancelled", "cancelled");
}

async function openSession(
  create: CreateSubject<Orchestrator>,
  options: OrchestratorSuiteOptions,
  { handlers = {}, answers, ...inputs }: Turn,
): Promise<Opened> {
  const script = inputs.script ?? ["Yes."];
  const provider = new MockProvider({ responses: script });
  const shared = sessionOptions(options);
  const session = new TestSession({
    ...shared,
    orchestrator: required(await create(), options),
    providers: [provider],
    tools: inputs.tools ?? [],
    hooks: Object.entries(handlers).map(([event, handler]) => ({ events: [event], handler })),
    limits: { ...shared.limits, ...inputs.limits },
    ...(answers ? { approval: new FakeApproval(answers) } : {}),
  });
  await session.open();
  const deeds: Deeds = { stored: [], emitted: [], called: [], refused: 0 };
  replaceLoop(session, (loop) => watched(loop, deeds, inputs.with_coordinator !== false));
  return { session, provider, deeds };
}

async function runTurn({ session, provider, deeds }: Opened, { prompt, prepare }: Turn): Promise<Result> {
  prepare?.(session);
  const outcome = await session.run(prompt);
  return { ...outcome, ...deeds, provider, messages: session.messages, session };
}

/** Returns a loop whose deeds are noted. */
function watched(loop: Orchestrator, deeds: Deeds, with_coordinator: boolean): Orchestrator {
  const note = (error: unknown) => {
    if (["denied", "cancelled", "limit_reached"].includes(errorCode(error) ?? "")) deeds.refused++;
    throw error;
  };
  return {
    resumable: loop.resumable === true,
    async execute(prompt, context, providers, tools, hooks, options) {
      const own_context = noting(context, {
        addMessage: (add, message) => (deeds.stored.push(message as Message), add()),
      });
      const own_hooks = noting(hooks, {
        emit: (emit, event) => (deeds.emitted.push(String(event)), emit()),
      });
      const own_providers = mapped(
        providers,
        (provider) => noting(provider, { complete: (call) => (call() as Promise<unknown>).catch(note) }),
      );
      const own_tools = mapped(
        tools,
        (tool) => noting(tool, { execute: (call) => (deeds.called.push(tool.name), call()) }),
      );
      const rest = with_coordinator ? [options] : [];
      try {
        return await loop.execute(prompt, own_context, own_providers, own_tools, own_hooks, ...rest);
      } catch (error) {
        deeds.thrown = error ?? new Error("threw nothing");
        throw error;
      }
    },
  };
}

function mapped<T>(record: Record<string, T>, change: (item: T) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([name, item]) => [name, change(item)]));
}

/** Returns an object with the fields of another, some of whose methods are called by `methods`. */
function noting<T extends object>(
  target: T,
  methods: Readonly<Record<string, (call: () => unknown, first: unknown) => unknown>>,
): T {
  const camel = (key: string) => key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  return new Proxy({} as T, {
    has: (_, key) => key in target,
    get(_, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      const method = methods[camel(String(key))];
      return (...args: unknown[]) => {
        const call = () => value.apply(target, args);
        return method ? method(call, args[0]) : call();
      };
    },
  });
}

function succeeded({ status, error, output_text }: Result): void {
  expect(status === "completed", `execute failed: ${error?.message ?? status}`);
  expect(output_text, "execute must resolve to a text that is not empty");
}

/** Checks that the loop stored one result for each call, in order; the kernel would add a missing one. */
function paired({ stored, messages }: Result): void {
  assertToolPairs(stored);
  assertToolPairs(messages);
}

function ended({ session, ...result }: Result, status: string, stated: string): void {
  expect(result.status === status, `the turn must end as ${status}: received ${result.status}`);
  const completes = session.getEvents("orchestrator:complete").map(([, data]: [string, JsonObject]) => data);
  const [data] = completes;
  expect(
    data?.status === stated,
    `orchestrator:complete must have the status ${stated}: received ${data?.status}`,
  );
}

/** Checks a turn in which a gate denied the first request. */
function notCalled(result: Result, gate: string): void {
  expect(result.provider.call_count === 0, "the provider was called");
  stoppedAtOnce(result, gate);
}

/** Checks that the loop made no model call after a denial; it may learn of one that the kernel asks for. */
function stoppedAtOnce({ emitted, refused }: Result, gate: string): void {
  const allowed = emitted.includes(gate) ? 0 : 1;
  expect(refused <= allowed, `the loop called the model although ${gate} was denied`);
}

function resultTexts({ messages }: Result): string[] {
  return messages.filter((message) => message.role === "tool").map((message) => textOf(message.content));
}
