/**
 * Hooks: handlers, the registry, and the emission that an event results in. `hook_result.ts` has the results
 * of handlers.
 */
import type {
  Action,
  ApprovalOption,
  ContextInjection,
  HookResult,
  InjectionRole,
  MessageLevel,
} from "./hook_result.ts";
import type { JsonObject } from "./json.ts";

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
  /** Event at which the hook injected it. */
  event: string;
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
  /** For ported code: the injections while `action` is `inject_context`, under the names of their results. */
  context_injections: (Required<ContextInjection> & { hook_name: string; event: string })[];
  /** The texts of `context_injections`, joined by a blank line; null without any. */
  context_injection: string | null;
  /** Role of the first of them. */
  context_injection_role: InjectionRole;
  /** Whether any of them is ephemeral. */
  ephemeral: boolean;
  /** Whether any of them is appended to the last tool result. */
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
   * Runs all handlers, each with the timeout `timeout_s` (default 1), and resolves to the `data` that
   * handlers returned; wildcard handlers only observe. Not for gates, which it would not decide: a session
   * refuses them.
   */
  emitAndCollect(event: string, data?: JsonObject | null, timeout_s?: number): Promise<JsonObject[]>;
  /** Replaces the fields that every payload starts with. */
  setDefaultFields(fields: JsonObject): void;
  /** Returns handler names by event; with an argument, only those of that event. */
  listHandlers(event?: string): Record<string, string[]>;
}

/** Base of hook registries: the event names, and `on` in both forms. */
export abstract class HookRegistryBase extends EventNames {
  /** Registers a handler; see {@link HookRegistry.register}. */
  abstract register(
    event: string,
    handler: HookHandler,
    options?: number | HookOptions,
    name?: string,
  ): Disposer;

  /** Returns a function that registers a handler of `event`. */
  on(event: string): (handler: HookHandler) => Disposer;
  /** Registers a handler, like {@link register}. */
  on(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer;
  /** Registers a handler, like {@link register}; without a handler, returns a function that registers one. */
  on(
    event: string,
    handler?: HookHandler,
    options?: number | HookOptions,
    name?: string,
  ): Disposer | ((handler: HookHandler) => Disposer) {
    if (handler === undefined) return (later) => this.register(event, later);
    return this.register(event, handler, options, name);
  }
}

/** Undoes a registration; also usable with `using`. */
export type Disposer = (() => void) & Disposable;
