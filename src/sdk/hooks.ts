/** Hooks: results, their lenient reading, and what an emission comes to (behaviour.md §4.3, §5). */
import { isObject, type JsonObject } from "./json.ts";

/** What a handler wants to happen. */
export type Action = "continue" | "deny" | "modify" | "inject_context" | "ask_user";

/** Severity of a message to the user. */
export type MessageLevel = "info" | "warning" | "error";

/** Who an injected text speaks as. */
export type InjectionRole = "system" | "user" | "assistant";

/** A choice offered to the person who is asked; a plain string keeps upstream's meaning (APPR-02). */
export type ApprovalOption = string | {
  label: string;
  effect: "allow" | "deny";
  remember?: "once" | "session" | "pattern";
};

/** Fields that may go with any action. */
export interface HookResultFields {
  reason?: string | null;
  suppress_output?: boolean;
  user_message?: string | null;
  user_message_level?: MessageLevel;
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
  /** Milliseconds; 0 = none. Default 30,000. A timeout counts as an exception. */
  timeout_ms?: number;
  /** Whether an exception denies. Default: true on the gates `prompt:submit`, `provider:request` and `tool:pre`. */
  fail_closed?: boolean;
}

/** One text that a hook wants the model to see. */
export interface Injection {
  text: string;
  role: InjectionRole;
  ephemeral: boolean;
  append_to_last_tool_result: boolean;
  hook_name: string;
}

/** A message for the user that a hook attached to its result. */
export interface UserMessage {
  message: string;
  level: MessageLevel;
  source: string;
}

/** What a person is asked. */
export interface ApprovalQuestion {
  prompt: string;
  options: ApprovalOption[];
  /** Seconds. */
  timeout: number;
  default: "allow" | "deny";
  hook_name: string;
  risk_level?: string;
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
  context_injection_role: InjectionRole;
  ephemeral: boolean;
  append_to_last_tool_result: boolean;
  suppress_output: boolean;
  user_message: string | null;
  user_message_level: MessageLevel;
  approval_prompt: string | null;
}

/** What events are emitted to and handlers registered on. */
export interface HookRegistry {
  /** Registers a handler; a number is the priority. `"*"` and `"tool:*"` observe. Returns a disposer that may be called twice. */
  register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer;
  /** The same as `register`; without a handler, returns a function that registers one. */
  on(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer;
  on(event: string): (handler: HookHandler) => Disposer;
  /** Removes every handler of this name. */
  unregister(name: string): void;
  /** Runs the handlers in order, numbers the entry, and resolves to what came of it. Never rejects for a handler's failure. */
  emit(event: string, data?: JsonObject | null): Promise<Emission>;
  /** Runs all handlers, each under `timeout_s` (default 1), and resolves to the `data` of those that gave some. */
  emitAndCollect(event: string, data?: JsonObject | null, timeout_s?: number): Promise<JsonObject[]>;
  /** Replaces the fields that every payload starts with. */
  setDefaultFields(fields: JsonObject): void;
  /** Handler names by event; with an argument, of that event only. */
  listHandlers(event?: string): Record<string, string[]>;
}

/** Undoes a registration; also usable with `using`. */
export type Disposer = (() => void) & Disposable;

/** Returns a HookResult with the fields as given; the requirements' constructor. */
export function HookResult(fields: HookResult | JsonObject): HookResult {
  return fields as HookResult;
}

/** A handler's answer with every field present. */
export interface ParsedHookResult {
  action: Action;
  data: JsonObject | null;
  reason: string | null;
  context_injection: string | null;
  context_injection_role: InjectionRole;
  ephemeral: boolean;
  append_to_last_tool_result: boolean;
  approval_prompt: string | null;
  approval_options: ApprovalOption[] | null;
  approval_timeout: number;
  approval_default: "allow" | "deny";
  risk_level: string | null;
  suppress_output: boolean;
  user_message: string | null;
  user_message_level: MessageLevel;
  user_message_source: string | null;
}

const ACTIONS: ReadonlySet<unknown> = new Set(["continue", "deny", "modify", "inject_context", "ask_user"]);

/** Returns a handler's answer with defaults filled in, or null when it is none (upstream: deny, behaviour.md §5.3). */
export function parseHookResult(value: unknown): ParsedHookResult | null {
  if (!isObject(value)) return null;
  const action = value.action ?? "continue";
  if (!ACTIONS.has(action)) return null;
  if (value.data !== undefined && value.data !== null && !isObject(value.data)) return null;
  const timeout = value.approval_timeout;
  return {
    action: action as Action,
    data: isObject(value.data) ? value.data : null,
    reason: text(value.reason),
    context_injection: text(value.context_injection),
    context_injection_role: oneOf(value.context_injection_role, ["system", "user", "assistant"], "system"),
    ephemeral: value.ephemeral === true,
    append_to_last_tool_result: value.append_to_last_tool_result === true,
    approval_prompt: text(value.approval_prompt),
    approval_options: parseOptions(value.approval_options),
    approval_timeout: typeof timeout === "number" && timeout > 0 && Number.isFinite(timeout) ? timeout : 300,
    approval_default: oneOf(value.approval_default, ["allow", "deny"], "deny"),
    risk_level: text(value.risk_level),
    suppress_output: value.suppress_output === true,
    user_message: text(value.user_message),
    user_message_level: oneOf(value.user_message_level, ["info", "warning", "error"], "info"),
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
