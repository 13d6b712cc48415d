/** The contract of a module file, and what a module is given: coordinator, context manager, orchestrator (R0-R3). */
import type { CancellationToken } from "./cancellation.ts";
import type { Emission, HookRegistry } from "./hooks.ts";
import type { JsonObject, JsonSchema } from "./json.ts";
import type { Message, Prompt, ToolSpec } from "./messages.ts";
import type { Provider } from "./providers.ts";
import type { Tool } from "./tools.ts";

/** The kinds of module. */
export type ModuleType = "orchestrator" | "context" | "provider" | "tool" | "hook" | "resolver";

/** Deno permissions, in Deno's own names and value forms. */
export interface Permissions {
  net?: boolean | string[];
  read?: boolean | string[];
  write?: boolean | string[];
  env?: boolean | string[];
  run?: boolean | string[];
  sys?: boolean | string[];
  ffi?: boolean | string[];
  import?: boolean | string[];
}

/** What a module says of itself: its export `module`. All but `id` is optional. */
export interface ModuleInfo {
  id: string;
  name?: string;
  version?: string;
  type?: ModuleType;
  mount_point?: string;
  description?: string;
  config_schema?: JsonSchema | null;
  /** A wish list: shown by `plan explain`, granted by the plan alone. */
  permissions?: Permissions;
  /** Version of the module contract; 1. */
  contract?: number;
}

/** Undoes what `mount` did; awaited at the end of the session. */
export type Cleanup = () => unknown;

/** What `mount` may return: nothing, a cleanup, an instance, metadata, or a reason to be skipped (behaviour.md §3.3). */
export type MountReturn = void | null | Cleanup | object;

/** A module file. */
export interface Module {
  readonly module?: ModuleInfo;
  mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> | MountReturn;
  /** Called once after every module is mounted, in mount order. */
  onSessionReady?(coordinator: Coordinator): Promise<void> | void;
}

/** What `getMessagesForRequest` is told. */
export interface RequestOptions {
  /** Tokens the view may take; wins over what the provider says. */
  token_budget?: number;
  provider?: Provider;
  /** Offered with the request; only to be counted. */
  tools?: ToolSpec[];
  /** Added to the request; only to be counted. */
  injections?: Message[];
}

/** Conversation memory. */
export interface ContextManager {
  /** Appends; never refuses a result for its size. */
  addMessage(message: Message): Promise<void>;
  /** A view that fits one request. Never changes what is stored. */
  getMessagesForRequest(options?: RequestOptions): Promise<Message[]>;
  /** The full history, a copy. */
  getMessages(): Promise<Message[]>;
  /** Replaces the history. */
  setMessages(messages: Message[]): Promise<void>;
  /** Empties the history. */
  clear(): Promise<void>;
}

/** Options of `Orchestrator.execute`. */
export interface ExecuteOptions {
  coordinator: Coordinator;
  /** True after a crash: no second `execution:start`, `prompt:submit` or user message; unanswered calls go first. */
  resume?: boolean;
}

/** The loop. */
export interface Orchestrator {
  /** Whether `execute` understands `resume`. */
  readonly resumable?: boolean;
  /** Runs one turn and resolves to the answer's text. */
  execute(
    prompt: Prompt,
    context: ContextManager,
    providers: Record<string, Provider>,
    tools: Record<string, Tool>,
    hooks: HookRegistry,
    options?: ExecuteOptions,
  ): Promise<string>;
}

/** Time as a module may see it. */
export interface Clock {
  /** Milliseconds since the epoch; for display only. */
  now(): number;
  /** Milliseconds that never go backwards; for durations. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when that aborts first. */
  after(ms: number, signal?: AbortSignal): Promise<void>;
}

/** What a module may reach. One per session and module; the requirements' snake_case names work too. */
export interface Coordinator {
  readonly session_id: string;
  readonly parent_id: string | null;
  /** The whole mount plan as written; `${VAR}`s are not expanded here. */
  readonly config: JsonObject;
  /** What modules keep from run to run: JSON, 64 KiB a session. Assigning a top-level key saves it with the log. */
  readonly session_state: JsonObject;
  readonly clock: Clock;
  readonly tools: Record<string, Tool>;
  readonly providers: Record<string, Provider>;
  readonly orchestrator: Orchestrator | null;
  readonly context: ContextManager | null;
  readonly hooks: HookRegistry;
  readonly cancellation: CancellationToken;
  /** Characters (code points) one injection may have; null = unlimited. */
  readonly injection_size_limit: number | null;
  /** Tokens all injections of a turn may have; null = unlimited. */
  readonly injection_budget_per_turn: number | null;
  /** Puts a module at a mount point: orchestrator, context, providers, tools (or `session` with a name, R0). */
  mount(point: string, module: object, name?: string | { name?: string }): Promise<void>;
  /** Takes a module away; absent is fine. */
  unmount(point: string, name?: string): Promise<void>;
  /** A single slot's module or null; a map of a many-slot; with a name, one of it. */
  get(point: string, name?: string): unknown;
  /** Makes a fresh id: `prefix_…`. */
  newId(prefix: string): string;
  registerCleanup(cleanup: Cleanup): void;
  registerCapability(name: string, value: unknown): void;
  getCapability(name: string): unknown;
  registerContributor(channel: string, name: string, callback: () => unknown): void;
  collectContributions(channel: string): Promise<unknown[]>;
  /** Does what an emission asks for: injects, shows, asks. Resolves to the emission, an ask settled to continue or deny. */
  processHookResult(result: Emission, event: string, hook_name?: string): Promise<Emission>;
  requestCancel(immediate?: boolean): void;
  /** Sets the injection counter to zero; the session does so at each turn. */
  resetTurn(): void;
  toDict(): JsonObject;
}
