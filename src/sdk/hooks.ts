/** Hooks: results, their lenient reading, and what an emission comes to (behaviour.md §4.3, §5). */
import { fieldError, requireOneOf } from "./checks.ts";
import { isObject, type JsonObject } from "./json.ts";

/** What a handler wants to happen. */
export type Action = "continue" | "deny" | "modify" | "inject_context" | "ask_user";

/** Severity of a message to the user. */
export type MessageLevel = "info" | "warning" | "error";

/** Who an injected text speaks as. */
export type InjectionRole = "system" | "user" | "assistant";

/**
 * A choice offered to the person who is asked; a plain string keeps upstream's meaning (APPR-02): `Allow always` is remembered
 * for the session.
 */
export type ApprovalOption = string | {
  /** What the person reads, and answers with. */
  label: string;
  /** What it does. */
  effect: "allow" | "deny";
  /**
   * What else it holds for. `once`, the default: this question alone. `session`: every later question of this session by the
   * same hook, about the same tool, with the same prompt. `pattern`: those with the same `approval_pattern`.
   */
  remember?: "once" | "session" | "pattern";
};

/** Fields that may go with any action. */
export interface HookResultFields {
  /** Why; shown to the model on deny. */
  reason?: string | null;
  /** Whether the hook's own output is hidden from the user. */
  suppress_output?: boolean;
  /** Text for the user; delivered with every action. */
  user_message?: string | null;
  /** Severity of `user_message`; default `info`. */
  user_message_level?: MessageLevel;
  /** Shown as its source; default: the handler's name. */
  user_message_source?: string | null;
}

/** What a handler returns. All fields of R4 are accepted on every action; these are the ones that mean something. */
export type HookResult =
  & HookResultFields
  & (
    | { action: "continue" }
    | { action: "deny" }
    | { action: "modify"; data?: JsonObject | null }
    | {
      action: "inject_context";
      context_injection?: string | null;
      context_injection_role?: InjectionRole;
      /** Visible to the next provider request only, never stored. */
      ephemeral?: boolean;
      /** With `ephemeral`: joined to the last message of the request when that is a tool result. */
      append_to_last_tool_result?: boolean;
    }
    | {
      action: "ask_user";
      approval_prompt?: string | null;
      approval_options?: ApprovalOption[] | null;
      /** Seconds; default 300. */
      approval_timeout?: number;
      approval_default?: "allow" | "deny";
      /** What an option with `remember: "pattern"` holds for, in words that the person sees; default: the exact arguments. */
      approval_pattern?: string | null;
      risk_level?: string;
    }
  );

/** A handler of one event. It may be slow (30 s by default) and may throw; see `HookOptions.fail_closed`. */
export type HookHandler = (
  event: string,
  data: JsonObject,
) => Promise<HookResult | JsonObject | null | void> | HookResult | JsonObject | null | void;

/** How a handler is registered. */
export interface HookOptions {
  /** Lower runs first; equal priorities run in order of registration. Default 0. */
  priority?: number;
  /** Shown in verdicts and logs. Default: the function's name, else `handler-N`. */
  name?: string;
  /** Milliseconds that one call may take, at most what the server allows: 30,000 by default. A timeout counts as an exception. */
  timeout_ms?: number;
  /** Whether an exception denies. Default: true on the gates `prompt:submit`, `provider:request` and `tool:pre`. */
  fail_closed?: boolean;
}

/** One text that a hook wants the model to see. */
export interface Injection {
  /** What the model is to see. */
  text: string;
  /** Who it speaks as. */
  role: InjectionRole;
  /** Whether it lives for one request only. */
  ephemeral: boolean;
  /** Whether it is joined to the last tool result of the request. */
  append_to_last_tool_result: boolean;
  /** The hook that wants it. */
  hook_name: string;
}

/** A message for the user that a hook attached to its result. */
export interface UserMessage {
  /** The text. */
  message: string;
  /** Its severity. */
  level: MessageLevel;
  /** Where it comes from, as `hook:NAME`. */
  source: string;
}

/** What a person is asked. */
export interface ApprovalQuestion {
  /** The question. */
  prompt: string;
  /** What may be answered. */
  options: ApprovalOption[];
  /** Seconds; null: as long as the server lets a person take. */
  timeout: number | null;
  /** What silence means. */
  default: "allow" | "deny";
  /** The hook that asks. */
  hook_name: string;
  /** Risk the hook sees, such as `high`. */
  risk_level?: string;
  /** What an option that remembers a pattern holds for. */
  pattern?: string;
}

/** What an event came to after all its handlers: the strongest action, and everything the others asked for too. */
export interface Emission {
  /** deny > ask_user > inject_context > continue; never `modify` (see `modified`). */
  action: Exclude<Action, "modify">;
  /** The data as the handlers left it, whatever the action. */
  data: JsonObject;
  /** Whether a handler replaced the data. */
  modified: boolean;
  /** Every injection, with its own role and lifetime. */
  injections: Injection[];
  /** Every user message. */
  user_messages: UserMessage[];
  /** Why it was denied, or why the deciding hook did what it did. */
  reason: string | null;
  /** The hook that decided; null when all continued. */
  hook_name: string | null;
  /** Set when `action` is `ask_user`. */
  approval: ApprovalQuestion | null;
  /** Merged view for ported code: the injected texts joined by a blank line. */
  context_injection: string | null;
  /** Role of the first injection. */
  context_injection_role: InjectionRole;
  /** Lifetime of the first injection. */
  ephemeral: boolean;
  /** Whether any injection wants to be joined to the last tool result. */
  append_to_last_tool_result: boolean;
  /** Whether the deciding hook's own output is hidden from the user. */
  suppress_output: boolean;
  /** The first user message. */
  user_message: string | null;
  /** Severity of the first user message. */
  user_message_level: MessageLevel;
  /** The question of `approval`. */
  approval_prompt: string | null;
}

/** Names of the events that the requirements call by a constant of the registry. */
export class EventNames {
  /** `session:start`. */
  get SESSION_START(): string {
    return "session:start";
  }
  /** `session:end`. */
  get SESSION_END(): string {
    return "session:end";
  }
  /** `prompt:submit`. */
  get PROMPT_SUBMIT(): string {
    return "prompt:submit";
  }
  /** `tool:pre`. */
  get TOOL_PRE(): string {
    return "tool:pre";
  }
  /** `tool:post`. */
  get TOOL_POST(): string {
    return "tool:post";
  }
  /** `context:pre_compact`. */
  get CONTEXT_PRE_COMPACT(): string {
    return "context:pre_compact";
  }
  /** `orchestrator:complete`. */
  get ORCHESTRATOR_COMPLETE(): string {
    return "orchestrator:complete";
  }
  /** `user:notification`. */
  get USER_NOTIFICATION(): string {
    return "user:notification";
  }
}

/** What events are emitted to and handlers registered on. */
export interface HookRegistry extends EventNames {
  /** Registers a handler; a number is the priority. `"*"` and `"tool:*"` observe. Returns a disposer that may be called twice. */
  register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer;
  /** The same as `register`; without a handler, returns a function that registers one. */
  on(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer;
  /** Returns a function that registers a handler of `event`. */
  on(event: string): (handler: HookHandler) => Disposer;
  /** Removes every handler of this name; of a session's registry a module removes its own alone. */
  unregister(name: string): void;
  /** Runs the handlers in order, numbers the entry, and resolves to what came of it. Never rejects for a handler's failure. */
  emit(event: string, data?: JsonObject | null): Promise<Emission>;
  /**
   * {@link HookRegistry.emit} for whoever has no use for what comes of it: returns a promise only when there is something to wait
   * for (a handler, the store). Absent: {@link notify} emits.
   */
  notify?(event: string, data?: JsonObject | null): Promise<unknown> | void;
  /** Runs all handlers, each under `timeout_s` (default 1), and resolves to the `data` of those that gave some. */
  emitAndCollect(event: string, data?: JsonObject | null, timeout_s?: number): Promise<JsonObject[]>;
  /** Replaces the fields that every payload starts with. */
  setDefaultFields(fields: JsonObject): void;
  /** Handler names by event; with an argument, of that event only. */
  listHandlers(event?: string): Record<string, string[]>;
}

/** Emits an event whose outcome nobody looks at; returns a promise only when there is something to wait for. */
export function notify(
  hooks: Pick<HookRegistry, "emit" | "notify">,
  event: string,
  data: JsonObject,
): Promise<unknown> | void {
  return hooks.notify ? hooks.notify(event, data) : hooks.emit(event, data);
}

/** Undoes a registration; also usable with `using`. */
export type Disposer = (() => void) & Disposable;

/** What a field of a HookResult is that its maker left out. */
const RESULT_DEFAULTS: JsonObject = {
  action: "continue",
  data: null,
  reason: null,
  context_injection: null,
  context_injection_role: "system",
  ephemeral: false,
  approval_prompt: null,
  approval_options: null,
  approval_timeout: 300,
  approval_default: "deny",
  suppress_output: false,
  user_message: null,
  user_message_level: "info",
};

/**
 * Returns a HookResult with every default filled in; the requirements' constructor. A text for one of the closed words (action,
 * role, level, default) must be one of them.
 *
 * @throws {TypeError} when a word is unknown, `data` is no object, or the approval timeout is not above 0.
 */
export function HookResult(fields: HookResult | JsonObject = {}): HookResult {
  const given: JsonObject = { ...RESULT_DEFAULTS };
  for (const [field, value] of Object.entries(fields)) if (value !== undefined) given[field] = value;
  for (const [field, words] of CLOSED_WORDS) {
    if (given[field] !== undefined && given[field] !== null) {
      requireOneOf("HookResult", field, given[field], words);
    }
  }
  if (given.data !== undefined && given.data !== null && !isObject(given.data)) {
    throw fieldError("HookResult", "data", "must be an object", given.data);
  }
  const timeout = given.approval_timeout;
  if (timeout !== undefined && timeout !== null && !(typeof timeout === "number" && timeout > 0)) {
    throw fieldError("HookResult", "approval_timeout", "must be a number of seconds above 0", timeout);
  }
  return given as JsonObject & HookResult; // every field that tells the actions apart was checked
}

/** A handler's answer with every field present. */
export interface ParsedHookResult {
  /** What the handler wants; `continue` when it does not say. */
  action: Action;
  /** Replacement of the payload. */
  data: JsonObject | null;
  /** Why. */
  reason: string | null;
  /** Text for the model. */
  context_injection: string | null;
  /** Who the text speaks as. */
  context_injection_role: InjectionRole;
  /** Whether the text lives for one request only. */
  ephemeral: boolean;
  /** Whether the text is joined to the last tool result of the request. */
  append_to_last_tool_result: boolean;
  /** The question. */
  approval_prompt: string | null;
  /** What may be answered; null: Allow, Deny. */
  approval_options: ApprovalOption[] | null;
  /** What an option that remembers a pattern holds for. */
  approval_pattern: string | null;
  /** Seconds to wait; null when absent or no positive number. */
  approval_timeout: number | null;
  /** What silence means. */
  approval_default: "allow" | "deny";
  /** Risk the hook sees. */
  risk_level: string | null;
  /** Whether the hook's own output is hidden. */
  suppress_output: boolean;
  /** Text for the user. */
  user_message: string | null;
  /** Severity of the text for the user. */
  user_message_level: MessageLevel;
  /** Source of the text for the user. */
  user_message_source: string | null;
}

const ACTIONS = ["continue", "deny", "modify", "inject_context", "ask_user"] as const;
const INJECTION_ROLES = ["system", "user", "assistant"] as const;
const LEVELS = ["info", "warning", "error"] as const;
const DEFAULTS = ["allow", "deny"] as const;

const CLOSED_WORDS: readonly (readonly [string, readonly string[]])[] = [
  ["action", ACTIONS],
  ["context_injection_role", INJECTION_ROLES],
  ["user_message_level", LEVELS],
  ["approval_default", DEFAULTS],
];

/** Returns a handler's answer with defaults filled in, or null when it is none (upstream: deny, behaviour.md §5.3). */
export function parseHookResult(value: unknown): ParsedHookResult | null {
  if (!isObject(value)) return null;
  const action = (value.action ?? "continue") as Action; // checked on the next line
  if (!ACTIONS.includes(action)) return null;
  if (value.data !== undefined && value.data !== null && !isObject(value.data)) return null;
  const timeout = value.approval_timeout;
  return {
    action,
    data: isObject(value.data) ? value.data : null,
    reason: text(value.reason),
    context_injection: text(value.context_injection),
    context_injection_role: oneOf(value.context_injection_role, INJECTION_ROLES, "system"),
    ephemeral: value.ephemeral === true,
    append_to_last_tool_result: value.append_to_last_tool_result === true,
    approval_prompt: text(value.approval_prompt),
    approval_options: parseOptions(value.approval_options),
    approval_timeout: typeof timeout === "number" && timeout > 0 && Number.isFinite(timeout) ? timeout : null,
    approval_default: oneOf(value.approval_default, DEFAULTS, "deny"),
    approval_pattern: text(value.approval_pattern) || null,
    risk_level: text(value.risk_level),
    suppress_output: value.suppress_output === true,
    user_message: text(value.user_message),
    user_message_level: oneOf(value.user_message_level, LEVELS, "info"),
    user_message_source: text(value.user_message_source),
  };
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function oneOf<const T extends string>(value: unknown, allowed: readonly T[], fallback: T): T {
  return allowed.includes(value as T) ? value as T : fallback;
}

function parseOptions(value: unknown): ApprovalOption[] | null {
  if (!Array.isArray(value)) return null;
  const options: ApprovalOption[] = [];
  for (const option of value) {
    if (typeof option === "string" && option) options.push(option);
    else if (
      isObject(option) && typeof option.label === "string" &&
      (option.effect === "allow" || option.effect === "deny")
    ) {
      options.push({ label: option.label, effect: option.effect, ...rememberOf(option.remember) });
    }
  }
  return options.length > 0 ? options : null;
}

function rememberOf(value: unknown): { remember?: "once" | "session" | "pattern" } {
  return value === "once" || value === "session" || value === "pattern" ? { remember: value } : {};
}
