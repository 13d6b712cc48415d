/** Hooks: the results of handlers, the registry, and the emission that an event results in. */
import { fieldError, requireOneOf } from "./checks.ts";
import { isObject, type JsonObject } from "./json.ts";

/** Action that a handler asks for. */
export type Action = "continue" | "deny" | "modify" | "inject_context" | "ask_user";

/** Severity of a message to the user. */
export type MessageLevel = "info" | "warning" | "error";

/** Role of an injected text. */
export type InjectionRole = "system" | "user" | "assistant";

/**
 * A choice offered to the person who is asked. The plain string `Allow always` is remembered for the session.
 */
export type ApprovalOption = string | {
  /** Text that the person reads and answers with. */
  label: string;
  /** Effect of the choice. */
  effect: "allow" | "deny";
  /**
   * Later questions that the answer also holds for. `once` (default): none. `session`: every later question
   * of this session by the same hook, about the same tool, with the same prompt. `pattern`: those with the
   * same `approval_pattern`.
   */
  remember?: "once" | "session" | "pattern";
};

/** Fields that are allowed with every action. */
export interface HookResultFields {
  /** Reason; the model reads it after a denial. */
  reason?: string | null;
  /** Whether the hook's own output is hidden from the user. */
  suppress_output?: boolean;
  /** Text for the user; delivered with every action. */
  user_message?: string | null;
  /** Severity of `user_message`; default `info`. */
  user_message_level?: MessageLevel;
  /** Source of `user_message`; default: the handler's name. */
  user_message_source?: string | null;
}

/**
 * Result of a handler. Every field is accepted with every action; the type lists those that have an effect.
 */
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
      /** Visible in the next provider request only, never stored. */
      ephemeral?: boolean;
      /** With `ephemeral`: appended to the last message of the request when that message is a tool result. */
      append_to_last_tool_result?: boolean;
    }
    | {
      action: "ask_user";
      approval_prompt?: string | null;
      approval_options?: ApprovalOption[] | null;
      /** Seconds; default 300. */
      approval_timeout?: number;
      approval_default?: "allow" | "deny";
      /** Text that the person sees for an option with `remember: "pattern"`; default: the exact arguments. */
      approval_pattern?: string | null;
      risk_level?: string;
    }
  );

/** Handles one event. It may take up to 30 s (default) and may throw; see `HookOptions.fail_closed`. */
export type HookHandler = (
  event: string,
  data: JsonObject,
) => Promise<HookResult | JsonObject | null | void> | HookResult | JsonObject | null | void;

/** Options of a handler's registration. */
export interface HookOptions {
  /** Lower runs first; equal priorities run in order of registration. Default 0. */
  priority?: number;
  /** Name in verdicts and logs. Default: the function's name, else `handler-N`. */
  name?: string;
  /**
   * Timeout of one call in milliseconds, at most the server's limit (30,000 by default). A timeout counts as
   * an exception.
   */
  timeout_ms?: number;
  /**
   * Whether an exception denies. Default: true for the gates `prompt:submit`, `provider:request` and
   * `tool:pre`.
   */
  fail_closed?: boolean;
}

/** A text that a hook injects into the conversation. */
export interface Injection {
  /** Text for the model. */
  text: string;
  /** Role of the message. */
  role: InjectionRole;
  /** Whether it is part of one request only. */
  ephemeral: boolean;
  /** Whether it is appended to the last tool result of the request. */
  append_to_last_tool_result: boolean;
  /** Name of the hook. */
  hook_name: string;
}

/** A message for the user that a hook attached to its result. */
export interface UserMessage {
  /** The text. */
  message: string;
  /** Its severity. */
  level: MessageLevel;
  /** Source, as `hook:NAME`. */
  source: string;
}

/** A question to a person. */
export interface ApprovalQuestion {
  /** The question. */
  prompt: string;
  /** Possible answers. */
  options: ApprovalOption[];
  /** Timeout in seconds; null: the server's limit. */
  timeout: number | null;
  /** Decision after a timeout. */
  default: "allow" | "deny";
  /** Name of the hook that asks. */
  hook_name: string;
  /** Risk according to the hook, such as `high`. */
  risk_level?: string;
  /** Pattern that an option with `remember: "pattern"` holds for. */
  pattern?: string;
}

/** Result of an event after all its handlers: the strongest action, and what the other handlers asked for. */
export interface Emission {
  /** deny > ask_user > inject_context > continue; never `modify` (see `modified`). */
  action: Exclude<Action, "modify">;
  /** The data after all changes by handlers, whatever the action. */
  data: JsonObject;
  /** Whether a handler replaced the data. */
  modified: boolean;
  /** All injections, each with its own role and lifetime. */
  injections: Injection[];
  /** All user messages. */
  user_messages: UserMessage[];
  /** Reason of the denial, or the reason that the deciding hook gave. */
  reason: string | null;
  /** Name of the hook that decided; null when all handlers continued. */
  hook_name: string | null;
  /** Set when `action` is `ask_user`. */
  approval: ApprovalQuestion | null;
  /** For ported code: the injected texts joined by a blank line. */
  context_injection: string | null;
  /** Role of the first injection. */
  context_injection_role: InjectionRole;
  /** Lifetime of the first injection. */
  ephemeral: boolean;
  /** Whether any injection is appended to the last tool result. */
  append_to_last_tool_result: boolean;
  /** Whether the deciding hook's own output is hidden from the user. */
  suppress_output: boolean;
  /** The first user message. */
  user_message: string | null;
  /** Severity of the first user message. */
  user_message_level: MessageLevel;
  /** Prompt of `approval`. */
  approval_prompt: string | null;
}

/** Event names as constants of the registry. */
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

/** Registers handlers and emits events. */
export interface HookRegistry extends EventNames {
  /**
   * Registers a handler; a number is the priority. `"*"` and `"tool:*"` observe. Returns a disposer that may
   * be called twice.
   */
  register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer;
  /** Registers a handler like `register`; without a handler, returns a function that registers one. */
  on(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer;
  /** Returns a function that registers a handler of `event`. */
  on(event: string): (handler: HookHandler) => Disposer;
  /** Removes all handlers with this name. In a session, a module removes only its own. */
  unregister(name: string): void;
  /**
   * Runs the handlers in order, appends the entry, and resolves to the result. Never rejects because a
   * handler failed.
   */
  emit(event: string, data?: JsonObject | null): Promise<Emission>;
  /**
   * Emits an event whose result is not used. Returns a promise only when there is something to wait for: a
   * handler or the store. Without this method, {@link notify} calls {@link HookRegistry.emit}.
   */
  notify?(event: string, data?: JsonObject | null): Promise<unknown> | void;
  /**
   * Runs all handlers, each with the timeout `timeout_s` (default 1), and resolves to the `data` that
   * handlers returned.
   */
  emitAndCollect(event: string, data?: JsonObject | null, timeout_s?: number): Promise<JsonObject[]>;
  /** Replaces the fields that every payload starts with. */
  setDefaultFields(fields: JsonObject): void;
  /** Returns handler names by event; with an argument, only those of that event. */
  listHandlers(event?: string): Record<string, string[]>;
}

/** Emits an event whose result is not used. Returns a promise only when there is something to wait for. */
export function notify(
  hooks: Pick<HookRegistry, "emit" | "notify">,
  event: string,
  data: JsonObject,
): Promise<unknown> | void {
  return hooks.notify ? hooks.notify(event, data) : hooks.emit(event, data);
}

/** Undoes a registration; also usable with `using`. */
export type Disposer = (() => void) & Disposable;

/** Values of the fields that are left out. */
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
 * Returns a HookResult with every default filled in. `action`, role, level and approval default must be one
 * of the known words.
 *
 * @throws {TypeError} when a word is unknown, `data` is no object, or the approval timeout is not above 0.
 */
export function HookResult(fields: HookResult | JsonObject = {}): HookResult {
  const result: JsonObject = { ...RESULT_DEFAULTS };
  for (const [field, value] of Object.entries(fields)) if (value !== undefined) result[field] = value;
  for (const [field, words] of CLOSED_WORDS) {
    if (result[field] !== undefined && result[field] !== null) {
      requireOneOf("HookResult", field, result[field], words);
    }
  }
  if (result.data !== undefined && result.data !== null && !isObject(result.data)) {
    throw fieldError("HookResult", "data", "must be an object", result.data);
  }
  const timeout = result.approval_timeout;
  if (timeout !== undefined && timeout !== null && !(typeof timeout === "number" && timeout > 0)) {
    throw fieldError("HookResult", "approval_timeout", "must be a number of seconds above 0", timeout);
  }
  return result as JsonObject & HookResult; // the fields that define the action were checked
}

/** A handler's result with every field present. */
export interface ParsedHookResult {
  /** Action; default `continue`. */
  action: Action;
  /** New data of the event. */
  data: JsonObject | null;
  /** Reason. */
  reason: string | null;
  /** Text for the model. */
  context_injection: string | null;
  /** Role of the text. */
  context_injection_role: InjectionRole;
  /** Whether the text is part of one request only. */
  ephemeral: boolean;
  /** Whether the text is appended to the last tool result of the request. */
  append_to_last_tool_result: boolean;
  /** The question. */
  approval_prompt: string | null;
  /** Possible answers; null: Allow, Deny. */
  approval_options: ApprovalOption[] | null;
  /** Pattern that an option with `remember: "pattern"` holds for. */
  approval_pattern: string | null;
  /** Timeout in seconds; null when absent or not a positive number. */
  approval_timeout: number | null;
  /** Decision after a timeout. */
  approval_default: "allow" | "deny";
  /** Risk according to the hook. */
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

/**
 * Returns a handler's result with defaults filled in, or null when the value is not a hook result (which
 * counts as a denial).
 */
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
