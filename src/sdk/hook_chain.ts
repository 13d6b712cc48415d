/**
 * Runs the handlers of one event and combines their results. The registry that owns the handlers (the
 * kernel's, or a test's recorder) decides which handlers run; this file decides what their results mean. It
 * knows no log, no session and no clock.
 *
 * | a handler …            | effect                                                                    |
 * |------------------------|---------------------------------------------------------------------------|
 * | returns null/undefined | continue                                                                  |
 * | denies                 | stops the chain; the denial is the result                                 |
 * | asks                   | the questions of all handlers are one, as strict as each; later handlers  |
 * |                        | still run                                                                 |
 * | injects                | collected, each with its own role and lifetime                            |
 * | modifies               | its data replaces the data for later handlers and the caller; a prompt,   |
 * |                        | tool input or result that it lacks stays                                  |
 * | returns anything else  | deny "Hook handler returned invalid response"                             |
 * | throws or times out    | with `fail_closed`: deny; otherwise reported, and the chain continues     |
 * | observes (wildcard)    | only its user message counts; its other results and errors are ignored    |
 * | any of these           | its user message is kept                                                  |
 * | any of these, for one of the {@link RUNTIME_EVENTS} | changes nothing, and is reported             |
 */
import { isObject, isThenable, jsonEqual, type JsonObject, toPlainObject } from "./json.ts";
import { errorMessage } from "./errors.ts";
import { RUNTIME_EVENTS } from "./event_table.ts";
import { invalidResultError, type ParsedHookResult, parseHookResult } from "./hook_result.ts";
import type { ApprovalQuestion, Emission, HookHandler } from "./hooks.ts";
import { readResultContent } from "./result_content.ts";

/** Default timeout of one handler call, in milliseconds. */
export const HANDLER_TIMEOUT_MS = 30_000;

/** Returns true for `*` and `prefix:*`, whose handlers only observe. */
export function isWildcard(pattern: string): boolean {
  return pattern === "*" || pattern.endsWith(":*");
}

/** Returns true when `pattern` matches `event`. */
export function matchesEvent(pattern: string, event: string): boolean {
  if (pattern === event || pattern === "*") return true;
  return pattern.endsWith(":*") && event.startsWith(pattern.slice(0, -1));
}

/** A registered handler. */
export interface ChainHandler {
  /** Name in verdicts and reasons. */
  readonly name: string;
  /** Function to call. */
  readonly handler: HookHandler;
  /** Whether the pattern is a wildcard: of its results only a user message counts. */
  readonly observes: boolean;
  /** Whether a failure denies. Without effect on an observer. */
  readonly fail_closed: boolean;
  /** Timeout in milliseconds; 0 = none. */
  readonly timeout_ms: number;
  /** Id of the module that registered the handler; absent for the host's own. */
  readonly module_id?: string | undefined;
}

/** Options of {@link runChain}. */
export interface ChainOptions {
  /** Awaits a handler's promise; rejects after the handler's timeout. */
  deadline?: (pending: Promise<unknown>, handler: ChainHandler) => Promise<unknown>;
  /** Called for a handler that threw, timed out, or returned something that denies as no hook result. */
  onError?: (handler: ChainHandler, error: unknown) => void;
  /**
   * Called when a handler returned something for one of the {@link RUNTIME_EVENTS}, where it has no effect.
   */
  onIgnored?: (handler: ChainHandler, answer: string) => void;
  /** Called with each object that a handler returned. */
  onReturned?: (handler: ChainHandler, value: JsonObject) => void;
}

/** Returns the emission of an event for which no handler asked for anything. */
export function noopEmission(data: JsonObject): Emission {
  return {
    action: "continue",
    data,
    modified: false,
    injections: NOTHING,
    user_messages: NOTHING,
    reason: null,
    hook_name: null,
    approval: null,
    context_injections: NOTHING,
    context_injection: null,
    context_injection_role: "system",
    ephemeral: false,
    append_to_last_tool_result: false,
    suppress_output: false,
    user_message: null,
    user_message_level: "info",
    approval_prompt: null,
  };
}

/** Shared: a handler's injection or message makes a new list. */
const NOTHING = Object.freeze([]) as unknown as never[];

/** Returns whether nothing has to be carried out for an emission; its data may be modified. */
export function isNoop({ action, user_messages, injections }: Emission): boolean {
  return action === "continue" && user_messages.length === 0 && injections.length === 0;
}

/**
 * Runs the handlers in order, each with its own copy of `data`, and resolves to the combined result. Never
 * rejects and never changes `data`, which must be JSON-safe ({@link toPlainObject}).
 */
export async function runChain(
  handlers: readonly ChainHandler[],
  event: string,
  data: JsonObject,
  options: ChainOptions = {},
): Promise<Emission> {
  const emission = noopEmission(data);
  await runHandlers(handlers, event, emission, options);
  setPortedFields(emission);
  return emission;
}

async function runHandlers(
  handlers: readonly ChainHandler[],
  event: string,
  emission: Emission,
  options: ChainOptions,
): Promise<void> {
  const is_runtime = RUNTIME_EVENTS.has(event);
  for (const handler of handlers) {
    let returned: unknown;
    let result: ParsedHookResult | null;
    try {
      returned = handler.handler(event, toPlainObject(emission.data)); // perf: 4 times faster than a copy through JSON
      if (isThenable(returned)) {
        returned = options.deadline ? await options.deadline(returned, handler) : await returned;
      }
      if (returned === null || returned === undefined) continue;
      result = parseHookResult(returned);
      if (isObject(returned)) options.onReturned?.(handler, returned);
    } catch (error) {
      options.onError?.(handler, error);
      if (!handler.fail_closed || handler.observes || is_runtime) continue;
      return deny(emission, handler, `Hook "${handler.name}" failed: ${errorMessage(error)}`);
    }
    if (is_runtime) {
      const answer = ignoredAnswer(result);
      if (answer !== null) options.onIgnored?.(handler, answer);
      continue;
    }
    if (handler.observes) {
      if (result) addUserMessage(emission, handler, result);
      continue;
    }
    if (result === null) {
      options.onError?.(handler, invalidResultError(returned));
      return deny(emission, handler, "Hook handler returned invalid response");
    }
    addUserMessage(emission, handler, result);
    if (result.action === "deny") return deny(emission, handler, result.reason || "Denied by hook", result);
    if (result.action === "modify" && result.data) {
      const changed = withSubject(event, result.data, emission.data);
      const { tool_input = {} } = changed;
      if (event === "tool:pre" && !isObject(tool_input)) {
        const reason = `Hook "${handler.name}" set tool_input to a value that is no object`;
        return deny(emission, handler, reason);
      }
      if (event === "tool:post" && isObject(changed.result)) {
        try {
          readResultContent(changed.result.content);
        } catch (error) {
          options.onError?.(handler, error);
          if (!handler.fail_closed) continue;
          return deny(emission, handler, `Hook "${handler.name}" failed: ${errorMessage(error)}`);
        }
      }
      modify(emission, handler, result, changed);
    } else if (result.action === "ask_user") ask(emission, handler, result);
    else if (result.action === "inject_context") inject(emission, handler, event, result);
  }
}

/** Returns the name of a handler's ignored result; null when the handler asked for nothing. */
function ignoredAnswer(result: ParsedHookResult | null): string | null {
  if (result === null) return "an answer that is no hook result";
  if (result.action !== "continue") return result.action;
  return result.user_message ? "user_message" : null;
}

function deny(
  emission: Emission,
  handler: ChainHandler,
  reason: string,
  result?: ParsedHookResult,
): void {
  emission.action = "deny";
  emission.reason = reason;
  emission.hook_name = handler.name;
  emission.approval = null;
  emission.approval_prompt = null;
  emission.suppress_output = result?.suppress_output ?? false;
}

/** Event → the field that its handlers decide about. */
const SUBJECTS: Readonly<Record<string, string>> = {
  "prompt:submit": "prompt",
  "tool:pre": "tool_input",
  "tool:post": "result",
};

/** Returns a handler's data with the field that handlers decide about, if it lacks the field. */
function withSubject(event: string, data: JsonObject, before: JsonObject): JsonObject {
  const key = Object.hasOwn(SUBJECTS, event) ? SUBJECTS[event]! : null;
  if (key === null || data[key] !== undefined || before[key] === undefined) return data;
  return { ...data, [key]: before[key] };
}

function modify(
  emission: Emission,
  handler: ChainHandler,
  result: ParsedHookResult,
  data: JsonObject,
): void {
  emission.modified = true;
  emission.data = toPlainObject(data);
  if (emission.action !== "continue") return; // a stronger action keeps its name and reason
  emission.hook_name = handler.name;
  emission.reason = result.reason;
}

function ask(emission: Emission, handler: ChainHandler, result: ParsedHookResult): void {
  const question: ApprovalQuestion = {
    prompt: result.approval_prompt ?? "Allow this operation?",
    options: result.approval_options ?? ["Allow", "Deny"],
    timeout: result.approval_timeout,
    default: result.approval_default,
    hook_name: handler.name,
    ...(result.risk_level === null ? {} : { risk_level: result.risk_level }),
    ...(result.approval_pattern === null ? {} : { pattern: result.approval_pattern }),
  };
  const earlier = emission.action === "ask_user" ? emission.approval : null;
  emission.action = "ask_user";
  emission.approval = earlier ? joined(earlier, question) : question;
  emission.hook_name = emission.approval.hook_name;
  emission.approval_prompt = emission.approval.prompt;
  emission.reason = earlier && emission.reason !== null && result.reason !== null
    ? `${emission.reason}; ${result.reason}`
    : (earlier ? emission.reason : null) ?? result.reason;
  if (!earlier) emission.suppress_output = result.suppress_output;
}

/** Risk levels, the highest first. */
const RISKS: readonly string[] = ["critical", "high", "medium"];

/**
 * Returns one question for two: the answer is one to both. It allows without an answer only if both do, has
 * the shorter time and the higher risk, and remembers nothing unless both offer the same answers.
 */
function joined(first: ApprovalQuestion, second: ApprovalQuestion): ApprovalQuestion {
  const { prompt, options, timeout, default: first_default, hook_name, risk_level, pattern } = first;
  const is_known = prompt.split("\n").includes(second.prompt);
  const risk = RISKS.find((level) => level === risk_level || level === second.risk_level) ??
    risk_level ?? second.risk_level;
  return {
    prompt: is_known ? prompt : `${prompt}\n${second.prompt}`,
    options: jsonEqual(options, second.options) ? options : ["Allow", "Deny"],
    timeout: timeout === null || second.timeout === null
      ? timeout ?? second.timeout
      : Math.min(timeout, second.timeout),
    default: second.default === "deny" ? "deny" : first_default,
    hook_name: `${hook_name}, ${second.hook_name}`,
    ...(risk === undefined ? {} : { risk_level: risk }),
    ...(pattern === undefined || pattern !== second.pattern ? {} : { pattern }),
  };
}

function inject(emission: Emission, handler: ChainHandler, event: string, result: ParsedHookResult): void {
  const { context_injections: added } = result;
  if (added.length === 0) return;
  const { name: hook_name } = handler;
  emission.injections = [
    ...emission.injections,
    ...added.map(({ content: text, ...fields }) => ({ text, ...fields, hook_name, event })),
  ];
  if (emission.action !== "continue") return; // a stronger action keeps its name and reason
  emission.action = "inject_context";
  emission.hook_name = hook_name;
  emission.reason = result.reason;
  emission.suppress_output = result.suppress_output;
}

/** Sets the fields of an emission that ported code reads, by its action and injections. */
export function setPortedFields(emission: Emission): void {
  if (emission.injections.length === 0) return;
  const list = emission.action === "inject_context" ? emission.injections : [];
  emission.context_injections = list.map(({ text: content, ...fields }) => ({ content, ...fields }));
  emission.context_injection = list.length > 0 ? list.map(({ text }) => text).join("\n\n") : null;
  emission.context_injection_role = list[0]?.role ?? "system";
  emission.ephemeral = list.some(({ ephemeral }) => ephemeral);
  emission.append_to_last_tool_result = list.some((injection) => injection.append_to_last_tool_result);
}

function addUserMessage(emission: Emission, handler: ChainHandler, result: ParsedHookResult): void {
  if (!result.user_message) return;
  emission.user_messages = [...emission.user_messages, {
    message: result.user_message,
    level: result.user_message_level,
    source: `hook:${result.user_message_source ?? handler.name}`,
  }];
  emission.user_message ??= result.user_message;
  if (emission.user_messages.length === 1) emission.user_message_level = result.user_message_level;
}
