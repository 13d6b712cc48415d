/** The hook contract as a test suite. */
import type { HookDefinition } from "../../define.ts";
import { type Action, parseHookResult } from "../../hook_result.ts";
import type { HookHandler, HookOptions } from "../../hooks.ts";
import { isObject, type JsonObject } from "../../json.ts";
import { EventRecorder } from "../event_recorder.ts";
import {
  casesOf,
  type CreateSubject,
  expect,
  type Mounted,
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

/**
 * Registers the cases that every hook must pass. `create` makes a new module, or a hook with `events` and a
 * `handler`, per case.
 */
export function testHook(
  name: string,
  create: CreateSubject<HookDefinition>,
  options: HookSuiteOptions = {},
): void {
  const test = casesOf(name, options);
  const onHook = (body: (recorder: ResultRecorder, mounted: Mounted) => Promise<void> | void) => () => {
    const recorder = new ResultRecorder(options.coordinator?.clock);
    const coordinator = { ...options.coordinator, hooks: recorder };
    return withSubject(create, "hooks", { ...options, coordinator }, (mounted) => body(recorder, mounted));
  };
  /** Emits every event of the hook with this data. */
  const emitAll = (data: JsonObject | null) =>
    onHook(async (recorder) => {
      for (const event of eventsOf(recorder)) await recorder.emit(event, data);
      for (const answer of recorder.answers) checkAnswer(answer);
    });

  test(
    "mount() registers a handler",
    onHook((recorder) => {
      expect(recorder.patterns.length > 0, "No hook was registered");
    }),
  );
  test(
    "mount() returns nothing or a cleanup",
    onHook((_, { returned }) => {
      const fits = returned === undefined || returned === null || typeof returned === "function" ||
        isObject(returned);
      expect(fits, `mount must return nothing, a cleanup or metadata: received ${typeof returned}`);
    }),
  );
  test(
    "handlers answer test:event with nothing or a hook result",
    onHook(async (recorder) => {
      await recorder.emit("test:event", { value: 1 });
      for (const answer of recorder.answers) checkAnswer(answer);
    }),
  );
  test("handlers answer events without data", emitAll(null));
  test("handlers answer events with empty data", emitAll({}));
  test(
    "handlers answer events with data they do not know",
    emitAll({ unknown: { nested: [1, null] }, tool_name: "x" }),
  );
  test(
    "handlers answer an event twice",
    onHook(async (recorder) => {
      for (const event of [...eventsOf(recorder), ...eventsOf(recorder)]) {
        await recorder.emit(event, { tool_name: "x" });
      }
      for (const answer of recorder.answers) checkAnswer(answer);
    }),
  );
  test(
    "cleanup works, awaited",
    onHook(async (_, { cleanups }) => {
      for (const cleanup of cleanups) await cleanup();
    }),
  );
  for (const { event, data, action } of options.expectations ?? []) {
    test(
      `${event} results in ${action}`,
      onHook(async (recorder) => {
        const emission = await recorder.emit(event, data);
        const actual = emission.action === "continue" && emission.modified ? "modify" : emission.action;
        expect(
          actual === action,
          `${event} must result in ${action}: received ${actual} (${emission.reason ?? "no reason"})`,
        );
      }),
    );
  }
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
    expect(parsed.context_injection, `a handler of ${event} injected no text`);
  }
  if (parsed.action === "ask_user") expect(parsed.approval_prompt, `a handler of ${event} asked no question`);
}
