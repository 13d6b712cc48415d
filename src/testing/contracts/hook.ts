/** The hook contract as a test suite. */
import type { HookDefinition } from "../../sdk/define.ts";
import { type Action, parseHookResult } from "../../sdk/hook_result.ts";
import type { HookHandler, HookOptions } from "../../sdk/hooks.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { EventRecorder } from "../hooks.ts";
import type { TestSessionOptions } from "../session.ts";
import {
  type Cases,
  type CreateSubject,
  expect,
  inSession,
  type Mounted,
  registerCases,
  required,
  sessionOptions,
  type SuiteOptions,
  withSubject,
} from "./suite.ts";

/** An event and the expected action. */
export interface HookExpectation {
  /** Name of the event. */
  event: string;
  /** Its data. */
  data: JsonObject;
  /** The resulting action; `modify` means that the data was changed. */
  action: Action;
}

/** Options of {@link testHook}. */
export interface HookSuiteOptions extends SuiteOptions {
  /** Events with expected actions. */
  expectations?: readonly HookExpectation[];
}

/** A result of a handler, or its error. */
interface Answer {
  event: string;
  value?: unknown;
  thrown?: unknown;
}

/** A registry that records the result of each handler. */
class ResultRecorder extends EventRecorder {
  readonly answers: Answer[] = [];
  readonly patterns: string[] = [];

  override register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string) {
    this.patterns.push(event);
    const recorded: HookHandler = async (received, data) => {
      try {
        const value = await handler(received, data);
        this.answers.push({ event: received, value });
        return value;
      } catch (thrown) {
        this.answers.push({ event: received, thrown });
        throw thrown;
      }
    };
    return super.register(event, recorded, options, name ?? handler.name);
  }
}

/** The hook of a case. */
interface MountedHook {
  readonly recorder: ResultRecorder;
  readonly mounted: Mounted;
}

/**
 * Registers the cases that every hook must pass. `create` makes a new module, or a hook with `events` and a
 * `handler`, per case.
 */
export function testHook(
  name: string,
  create: CreateSubject<HookDefinition>,
  options: HookSuiteOptions = {},
): void {
  const run = (check: (part: MountedHook) => Promise<void> | void) => {
    const recorder = new ResultRecorder(options.coordinator?.clock);
    const coordinator = { ...options.coordinator, hooks: recorder };
    const on_recorder = { ...options, coordinator };
    return withSubject(create, "hooks", on_recorder, (mounted) => check({ recorder, mounted }));
  };
  registerCases(name, options, CASES, run);
  const mounted = "mount() registers its handlers in a session";
  registerCases<TestSessionOptions>(
    name,
    options,
    { [mounted]: (session) => inSession(session) },
    async (check) => {
      await check({ ...sessionOptions(options), hooks: [required(await create(), options)] });
    },
  );
  for (const expectation of options.expectations ?? []) {
    const title = `${expectation.event} results in ${expectation.action}`;
    registerCases(name, options, { [title]: ({ recorder }) => checkAction(recorder, expectation) }, run);
  }
}

const CASES: Cases<MountedHook> = {
  "mount() registers a handler"({ recorder }) {
    expect(recorder.patterns.length > 0, "No hook was registered");
  },
  "mount() returns nothing or a cleanup"({ mounted: { returned } }) {
    const fits = returned === undefined || returned === null || typeof returned === "function" ||
      isObject(returned);
    expect(fits, `mount must return nothing, a cleanup or metadata: received ${typeof returned}`);
  },
  async "handlers answer test:event with nothing or a hook result"({ recorder }) {
    await recorder.emit("test:event", { value: 1 });
    for (const answer of recorder.answers) checkAnswer(answer);
  },
  "handlers answer events without data": ({ recorder }) => emitAll(recorder, null),
  "handlers answer events with empty data": ({ recorder }) => emitAll(recorder, {}),
  "handlers answer events with data they do not know": ({ recorder }) =>
    emitAll(recorder, { unknown: { nested: [1, null] }, tool_name: "x" }),
  async "handlers answer an event twice"({ recorder }) {
    const events = eventsOf(recorder);
    for (const event of [...events, ...events]) await recorder.emit(event, { tool_name: "x" });
    for (const answer of recorder.answers) checkAnswer(answer);
  },
  async "cleanup works, awaited"({ mounted }) {
    for (const cleanup of mounted.cleanups) await cleanup();
  },
};

/** Emits every event of a hook with this data. */
async function emitAll(recorder: ResultRecorder, data: JsonObject | null): Promise<void> {
  for (const event of eventsOf(recorder)) await recorder.emit(event, data);
  for (const answer of recorder.answers) checkAnswer(answer);
}

async function checkAction(
  recorder: ResultRecorder,
  { event, data, action: wanted }: HookExpectation,
): Promise<void> {
  const { action, modified, reason } = await recorder.emit(event, data);
  const actual = action === "continue" && modified ? "modify" : action;
  const message = `${event} must result in ${wanted}: received ${actual} (${reason ?? "no reason"})`;
  expect(actual === wanted, message);
}

function eventsOf({ patterns }: ResultRecorder): string[] {
  const events = patterns.map((pattern) => pattern === "*" ? "test:event" : pattern.replace(/:\*$/, ":test"));
  return [...new Set(events)];
}

function checkAnswer({ event, value, thrown }: Answer): void {
  expect(thrown === undefined, `a handler of ${event} threw: ${String(thrown)}`);
  if (value === undefined || value === null) return;
  const parsed = parseHookResult(value);
  expect(parsed, `a handler of ${event} returned an invalid hook result: ${JSON.stringify(value)}`);
  if (parsed.action === "deny") expect(parsed.reason, `a handler of ${event} denied without a reason`);
  if (parsed.action === "inject_context") {
    const texts = parsed.context_injections.map(({ content }) => content);
    expect(texts.some((text) => text !== ""), `a handler of ${event} injected no text`);
  }
  if (parsed.action === "ask_user") expect(parsed.approval_prompt, `a handler of ${event} asked no question`);
}
