/** Results of handlers: the type, its factory, and the lenient parser of what a handler returned. */
import { fieldError, kindError, requireOneOf } from "./checks.ts";
import { readField } from "./errors.ts";
import { isObject, type JsonObject, toPlain } from "./json.ts";
import { fieldsOf, unknownFields } from "./returned_fields.ts";
import { describe, describeKind } from "./value_path.ts";

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

/** One text for the conversation. */
export interface ContextInjection {
  /** The text. */
  content: string;
  /** Role of its message; default `system`. */
  role?: InjectionRole;
  /** Visible in the next provider request only, never stored; default false. */
  ephemeral?: boolean;
  /**
   * With `ephemeral`: appended to the last message of the request when that message is a tool result; default
   * false.
   */
  append_to_last_tool_result?: boolean;
}

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
      /** Texts, each with its own role and lifetime; with one, the fields of a single text have no effect. */
      context_injections?: ContextInjection[];
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

/** Values of the fields that are left out. */
const RESULT_DEFAULTS: JsonObject = {
  action: "continue",
  data: null,
  reason: null,
  context_injection: null,
  context_injection_role: "system",
  context_injections: [],
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
 * @throws {TypeError} when a word is unknown, `data` is no object, an injection no text, or the approval
 * timeout not above 0.
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
  result.context_injections = readInjections(result.context_injections ?? []);
  const timeout = result.approval_timeout;
  if (timeout !== undefined && timeout !== null && !(typeof timeout === "number" && timeout > 0)) {
    throw fieldError("HookResult", "approval_timeout", "must be a number of seconds above 0", timeout);
  }
  return result as JsonObject & HookResult; // the fields that define the action were checked
}

/** A handler's result with every field present. */
export interface ParsedHookResult extends Required<HookResultFields> {
  /** Action; default `continue`. */
  action: Action;
  /** New data of the event. */
  data: JsonObject | null;
  /** Texts for the model; empty with another action than `inject_context`. */
  context_injections: Required<ContextInjection>[];
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
}

/** Fields of a handler's result. */
const RESULT_FIELDS = fieldsOf("hook result");

/**
 * Returns what a handler returned as a value that keeps its meaning as JSON: the result's fields, also those
 * that getters of its class return; false for a value that is no data, such as a function.
 *
 * @throws what a getter throws.
 */
export function hookResultData(value: unknown): unknown {
  if (value === null || value === undefined) return value;
  if (isObject(value)) {
    const data = Object.fromEntries(RESULT_FIELDS.map((field) => [field, value[field]]));
    for (const field of unknownFields("hook result", value)) data[field] ??= null; // for the host's warning
    return data;
  }
  return toPlain(value) ?? false;
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
 * Returns the injections of a result with defaults filled in.
 *
 * @throws {TypeError} when it is no list of objects with a text, or a field has the wrong type.
 */
function readInjections(value: unknown): Required<ContextInjection>[] {
  const fail = (field: string, rule: string, received: unknown) => {
    throw kindError("HookResult", field, rule, received);
  };
  if (!Array.isArray(value)) return fail("context_injections", "must be a list", value);
  return value.map((item, index) => {
    const at = `context_injections[${index}]`;
    if (!isObject(item)) return fail(at, "must be {content, role?, …}", item);
    const { content, role = "system", ephemeral = false, append_to_last_tool_result = false } = item;
    if (typeof content !== "string") return fail(`${at}.content`, "must be text", content);
    requireOneOf("HookResult", `${at}.role`, role, INJECTION_ROLES);
    for (const [field, flag] of Object.entries({ ephemeral, append_to_last_tool_result })) {
      if (typeof flag !== "boolean") return fail(`${at}.${field}`, "must be a boolean", flag);
    }
    return { content, role, ephemeral, append_to_last_tool_result } as Required<ContextInjection>; // checked above
  });
}

/** Returns the injections of a result: its list, else the single text of its own fields. */
function injectionsOf(value: JsonObject): Required<ContextInjection>[] {
  const listed = readInjections(value.context_injections ?? []);
  const content = text(value.context_injection);
  const role = value.context_injection_role ?? "system";
  requireOneOf("HookResult", "context_injection_role", role, INJECTION_ROLES);
  if (listed.length > 0 || content === null) return listed;
  return [{
    content,
    role: role as InjectionRole, // just checked
    ephemeral: value.ephemeral === true,
    append_to_last_tool_result: value.append_to_last_tool_result === true,
  }];
}

/**
 * Returns a handler's result with defaults filled in, or null when the value is not a hook result (which
 * counts as a denial).
 *
 * @throws {TypeError} when an injection is no text, or its role unknown.
 */
export function parseHookResult(value: unknown): ParsedHookResult | null {
  if (!isObject(value)) return null;
  const action = (value.action ?? "continue") as Action; // checked on the next line
  if (!ACTIONS.includes(action)) return null;
  if (value.data !== undefined && value.data !== null && !isObject(value.data)) return null;
  const injections = injectionsOf(value);
  const timeout = value.approval_timeout;
  return {
    action,
    data: isObject(value.data) ? value.data : null,
    reason: text(value.reason),
    context_injections: action === "inject_context" ? injections : [],
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

/** Returns the error of a value that {@link parseHookResult} does not accept. */
export function invalidResultError(value: unknown): TypeError {
  if (!isObject(value)) {
    const is_data = typeof value === "string" || Array.isArray(value); // all else a sandbox passes on as a mark
    const received = is_data ? `: received ${describeKind(value)}` : "";
    return new TypeError(`it must return nothing or {action: …}${received}`);
  }
  const action = readField(value, "action") ?? "continue"; // a getter may throw the second time
  return ACTIONS.some((word) => word === action)
    ? new TypeError(
      `data of its result must be an object: received ${describeKind(readField(value, "data"))}`,
    )
    : new TypeError(
      `action of its result must be one of ${ACTIONS.join(", ")}: received ${describe(action)}`,
    );
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
      const { label, effect, remember } = option;
      options.push({ label, effect, ...(isScope(remember) ? { remember } : {}) });
    }
  }
  return options.length > 0 ? options : null;
}

function isScope(value: unknown): value is "once" | "session" | "pattern" {
  return value === "once" || value === "session" || value === "pattern";
}
