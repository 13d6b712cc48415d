/** The contract of a module file, and what a module is given: coordinator, context manager, orchestrator (R0-R3). */
import type { CancellationToken } from "./cancellation.ts";
import type { Emission, HookRegistry } from "./hooks.ts";
import { requireObject, requireText } from "./checks.ts";
import type { JsonObject, JsonSchema } from "./json.ts";
import type { Message, Prompt, ToolSpec } from "./messages.ts";
import type { RunLimits } from "./plan.ts";
import type { Provider } from "./providers.ts";
import type { SessionStatus } from "./session_status.ts";
import type { Tool } from "./tools.ts";

/** The kinds of module. */
export type ModuleType = "orchestrator" | "context" | "provider" | "tool" | "hook";

/** Deno permissions, in Deno's own names and value forms. */
export interface Permissions {
  /** Hosts it may reach: `host`, `host:port`, `*.host` (it and all below it), `10.0.0.0/8`; IPv6 in brackets. */
  net?: boolean | string[];
  /** Paths it may read. */
  read?: boolean | string[];
  /** Paths it may write. */
  write?: boolean | string[];
  /** Environment variables it may read. */
  env?: boolean | string[];
  /** Programs it may start. */
  run?: boolean | string[];
  /** System facts it may ask for, such as `hostname`. */
  sys?: boolean | string[];
  /** Native libraries it may load. */
  ffi?: boolean | string[];
  /** Hosts it may import code from at run time. */
  import?: boolean | string[];
}

/** What a module says of itself: its export `module`. All but `id` is optional. */
export interface ModuleInfo {
  /** Module id, such as `tool-clock`; its prefix tells the type when `type` is absent (behaviour.md §3.2). */
  id: string;
  /** Display name. Default: the id. */
  name?: string;
  /** Version of the module, by habit semantic. */
  version?: string;
  /** Kind of module. */
  type?: ModuleType;
  /** Where it mounts itself, such as `tools`. */
  mount_point?: string;
  /** One sentence for people. */
  description?: string;
  /** JSON Schema of `config`; checked before `mount`. */
  config_schema?: JsonSchema | null;
  /** A wish list: shown by `plan explain`, granted by the plan alone. */
  permissions?: Permissions;
  /** Version of the module contract; 1. A module of another version is not mounted. */
  contract?: number;
  /**
   * Of a hook: whether it decides what may happen. A session that cannot mount it fails, unless the plan's entry says
   * `required: false`. A hook whose `mount` fails after it registered for a gate event counts as one too.
   */
  gates?: boolean;
}

const MOUNT_POINTS: Readonly<Record<string, string>> = {
  orchestrator: "orchestrator",
  context: "context",
  provider: "providers",
  tool: "tools",
  hook: "hooks",
};

/**
 * Returns a ModuleInfo with every default filled in; the requirements' constructor. `mount_point` follows from `type`; a
 * type this version does not know is kept (C41).
 *
 * @throws {TypeError} when `id` is empty or a text is no text.
 */
export function ModuleInfo(fields: ModuleInfo): ModuleInfo {
  requireText("ModuleInfo", "id", fields.id);
  const mount_point = fields.type === undefined ? undefined : MOUNT_POINTS[fields.type];
  const info: ModuleInfo = {
    name: fields.id,
    version: "0.0.0",
    ...(mount_point === undefined ? {} : { mount_point }),
    description: "",
    config_schema: null,
    ...fields,
  };
  for (const field of ["name", "version"] as const) requireText("ModuleInfo", field, info[field]);
  if (info.config_schema !== null) requireObject("ModuleInfo", "config_schema", info.config_schema);
  return info;
}

/** Undoes what `mount` did; awaited at the end of the session. */
export type Cleanup = () => unknown;

/** What `mount` may return: nothing, a cleanup, an instance, metadata, or a reason to be skipped (behaviour.md §3.3). */
export type MountReturn = void | null | Cleanup | object;

/** A module file. */
export interface Module {
  /** What the module says of itself. */
  readonly module?: ModuleInfo;
  /** Puts the module's parts at their mount points; called once per session. Throwing skips the module (orchestrator and context: fails the session). */
  mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> | MountReturn;
  /** Called once after every module is mounted, in mount order. */
  onSessionReady?(coordinator: Coordinator): Promise<void> | void;
}

/** What `getMessagesForRequest` is told. */
export interface RequestOptions {
  /** Tokens the view may take; wins over what the provider says. */
  token_budget?: number;
  /** Told so that the view fits this provider's window (behaviour.md §8.2). */
  provider?: Provider;
  /** Offered with the request; only to be counted. */
  tools?: ToolSpec[];
  /** Added to the request; only to be counted. */
  injections?: Message[];
}

/** Conversation memory. */
export interface ContextManager {
  /** Optional: says that `addMessage` is given the log's own message, frozen. Without it each message is a copy to do with as one likes. */
  readonly takes_frozen?: boolean;
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
  /** Optional: sets who tells the system prompt, asked on every request; its text stands for the stored system messages but those of hooks (behaviour.md §8.1). */
  setSystemPromptFactory?(factory: (() => string | Promise<string>) | null): void;
}

/** Options of `Orchestrator.execute`. */
export interface ExecuteOptions {
  /** The session's coordinator. */
  coordinator: Coordinator;
  /** True after a crash: no second `execution:start`, `prompt:submit` or user message; unanswered calls go first. */
  resume?: boolean;
  /** With `resume`: iterations of the turn that were answered before. */
  iteration?: number;
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
  /** Id of the session. */
  readonly session_id: string;
  /** Id of the session that spawned this one, or null. */
  readonly parent_id: string | null;
  /** The whole mount plan as written; `${VAR}`s are not expanded here. */
  readonly config: JsonObject;
  /** What modules keep from run to run: JSON, 64 KiB a session. Assigning a top-level key saves it with the log. */
  readonly session_state: JsonObject;
  /** Time of the session; fake in tests, recorded in replays. */
  readonly clock: Clock;
  /** Mounted tools by mount name, live and in mount order. */
  readonly tools: Record<string, Tool>;
  /** Mounted providers by mount name, live and in mount order. */
  readonly providers: Record<string, Provider>;
  /** The mounted loop, or null before it is mounted. */
  readonly orchestrator: Orchestrator | null;
  /** The mounted conversation memory, or null before it is mounted. */
  readonly context: ContextManager | null;
  /** Where handlers register and events are emitted. */
  readonly hooks: HookRegistry;
  /** The session's cancellation token. */
  readonly cancellation: CancellationToken;
  /** Ceilings of the run; guards hold them, whatever a loop does. */
  readonly limits: RunLimits;
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
  /** Runs `cleanup` at the end of the session, last registered first; anything but a function is ignored. */
  registerCleanup(cleanup: Cleanup): void;
  /** Publishes a value or function for other modules; a second one of the same name replaces the first. */
  registerCapability(name: string, value: unknown): void;
  /** Returns a published capability, or null. */
  getCapability(name: string): unknown;
  /** Adds a callback to a channel such as `observability.events` or `session.cost` (behaviour.md §9.6). */
  registerContributor(channel: string, name: string, callback: () => unknown): void;
  /** Resolves to what the channel's callbacks return, in order of registration; nulls and failures are left out. */
  collectContributions(channel: string): Promise<unknown[]>;
  /** Does what an emission asks for: injects, shows, asks. Resolves to the emission, an ask settled to continue or deny. */
  processHookResult(result: Emission, event: string, hook_name?: string): Promise<Emission>;
  /** Resolves to how the session stands, with its counters over all of its runs. */
  sessionStatus(): Promise<SessionStatus>;
  /** Requests graceful, or with `true` immediate, cancellation. */
  requestCancel(immediate?: boolean): void;
  /** Sets the injection counter to zero; the session does so at each turn. */
  resetTurn(): void;
  /** Returns what is mounted and published, as names only. */
  toDict(): JsonObject;
}
