/**
 * Contracts between modules and the runtime: the module file, the coordinator, the context manager and the
 * orchestrator.
 */
import type { CancellationToken } from "./cancellation.ts";
import type { ContextOverflow } from "./context_overflow.ts";
import type { Emission, HookRegistry } from "./hooks.ts";
import { fieldError, requireObject, requireOneOf, requireText } from "./checks.ts";
import type { JsonObject, JsonSchema } from "./json.ts";
import type { Message, Prompt, ToolSpec } from "./messages.ts";
import type { Provider } from "./providers.ts";
import type { SessionStatus } from "./session_status.ts";
import type { PinnedTools } from "./pinned_tools.ts";
import { POINT } from "./snake_case_aliases.ts";
import type { RiskLevel, Tool, ToolCall } from "./tools.ts";

/** The kinds of module. */
export type ModuleType = "orchestrator" | "context" | "provider" | "tool" | "hook";

/** Deno permissions, in Deno's own names and value forms. */
export interface Permissions {
  /**
   * Hosts it may connect to: `host`, `host:port`, `*.host` (the host and its subdomains), `10.0.0.0/8`; IPv6
   * in brackets.
   */
  net?: boolean | string[];
  /** Paths it may read. */
  read?: boolean | string[];
  /** Paths it may write. */
  write?: boolean | string[];
  /** Environment variables it may read. */
  env?: boolean | string[];
  /** Programs it may start. */
  run?: boolean | string[];
  /** System information it may read, such as `hostname`. */
  sys?: boolean | string[];
  /** Native libraries it may load. */
  ffi?: boolean | string[];
  /** Hosts it may import code from at run time. */
  import?: boolean | string[];
}

/** Permissions of a module: each kind is everything (`true`), nothing (`false` or `[]`) or a list. */
export type GrantedPermissions = { readonly [Kind in keyof Permissions]-?: boolean | readonly string[] };

/** Returns the permissions of a module to which a plan grants none. */
export function noPermissions(): Required<Permissions> {
  return { net: [], read: [], write: [], env: [], run: [], sys: [], ffi: false, import: [] };
}

/** Description of a module: its export `module`. All fields but `id` are optional. */
export interface ModuleInfo {
  /** Module id, such as `tool-clock`. Without `type`, its prefix decides the type. */
  id: string;
  /** Display name. Default: the id. */
  name?: string;
  /** Version of the module, by convention a semantic version. */
  version?: string;
  /** Kind of module. */
  type?: ModuleType;
  /** Mount point, such as `tools`. */
  mount_point?: string;
  /** One sentence for people. */
  description?: string;
  /** JSON Schema of `config`; checked before `mount`. */
  config_schema?: JsonSchema | null;
  /** Permissions the module wants; `preamp plan explain` displays them. Only the plan grants permissions. */
  permissions?: Permissions;
  /** Version of the module contract: 1. A module with another version is not mounted. */
  contract?: number;
  /**
   * For a hook: whether it decides what may happen. A session that cannot mount it fails, unless the plan's
   * entry has `required: false`. A hook whose `mount` fails after it registered for a gate also counts as
   * deciding.
   */
  gates?: boolean;
}

/**
 * Returns a ModuleInfo with every default filled in. `mount_point` is derived from `type`; an unknown type is
 * kept.
 *
 * @throws {TypeError} when `id` is empty or a text field is not a string.
 */
export function ModuleInfo(fields: ModuleInfo): ModuleInfo {
  requireText("ModuleInfo", "id", fields.id);
  const mount_point = fields.type && POINT[fields.type];
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

/** Undoes the effects of `mount`; awaited at the end of the session. */
export type Cleanup = () => unknown;

/**
 * Return value of `mount`: nothing, a cleanup, an instance, metadata, or a reason to be skipped; see
 * src/docs/modules.md#2-write-it.
 */
export type MountReturn = void | null | Cleanup | object;

/** A module file. */
export interface Module {
  /** Description of the module. */
  readonly module?: ModuleInfo;
  /**
   * Mounts the module's parts; called once per session. When it throws, the module is skipped; for an
   * orchestrator or a context, the session fails.
   */
  mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> | MountReturn;
  /** Called once after every module is mounted, in mount order. */
  onSessionReady?(coordinator: Coordinator): Promise<void> | void;
  /**
   * Optional, of a module in the program: returns the servers that a config names, for `preamp plan explain`.
   * It connects to none.
   */
  servers?(config: JsonObject): readonly ModuleServer[];
  /**
   * Optional, of a module in the program: resolves to the definitions of the tools of a config's servers, by
   * server, for the lock of a plan.
   */
  pins?(config: JsonObject, permissions: GrantedPermissions): Promise<Record<string, PinnedTools>>;
  /**
   * Optional, of a module in the program: resolves to what it finds in the granted folders by itself and
   * gives to the model. `preamp chat` names it at its start.
   */
  finds?(config: JsonObject, permissions: GrantedPermissions): Promise<readonly Found[]>;
  /**
   * Optional, of a module in the program: resolves to the files whose texts it gives to the model. They are
   * part of the plan's hash, and a lock pins them. A file that cannot be read is left out.
   */
  texts?(config: JsonObject, permissions: GrantedPermissions): Promise<readonly TextFile[]>;
}

/** A file whose text steers the model. */
export interface TextFile {
  /** What it is, the same on every machine, such as `skill release`. */
  readonly label: string;
  /** Absolute path, links followed. */
  readonly path: string;
  /** SHA-256 of its bytes, lower-case hex. */
  readonly sha256: string;
  /** Size of the file. */
  readonly bytes: number;
}

/** Something that a module finds in a folder by itself. */
export interface Found {
  /** What it is, such as `skill release`. */
  readonly label: string;
  /** Words that start it, as the first of a prompt: `/NAME`. Default: none. */
  readonly commands?: readonly FoundCommand[];
}

/** A word at the beginning of a prompt that the module acts on. */
export interface FoundCommand {
  /** The word, without the slash. */
  readonly name: string;
  /** One line about what it does. */
  readonly summary: string;
}

/** A server that a module gets its tools from. */
export interface ModuleServer {
  /** Name in the plan. */
  readonly name: string;
  /** How it is reached: `http`, `command`, `npm`; `listed`: as the operator's settings say. */
  readonly transport: string;
  /** Its host, command or package; empty where only the operator may know. */
  readonly target: string;
}

/** Options of `getMessagesForRequest`. */
export interface RequestOptions {
  /** Maximum tokens of the view; wins over the provider's window. */
  token_budget?: number;
  /** Provider of the request; the view fits its window. */
  provider?: Provider;
  /** Tools that are offered with the request; they are only counted. */
  tools?: ToolSpec[];
  /** Messages that are added to the request; they are only counted. */
  injections?: Message[];
  /** Present when the provider refused the last view as too long: the view must be smaller than that one. */
  overflow?: ContextOverflow;
  /** Whether it is the last request of a loop that has reached its own limit. */
  max_reached?: boolean;
}

/** Stores the conversation and returns the messages of each request. */
export interface ContextManager {
  /**
   * Appends a message; never refuses a tool result because of its size. The message is that of the log and
   * frozen: copy it to change it.
   */
  addMessage(message: Message): Promise<void>;
  /** Resolves to a view that fits one request. Never changes the stored messages. */
  getMessagesForRequest(options?: RequestOptions): Promise<Message[]>;
  /** Resolves to a copy of the full history. */
  getMessages(): Promise<Message[]>;
  /** Replaces the history. */
  setMessages(messages: Message[]): Promise<void>;
  /** Empties the history. */
  clear(): Promise<void>;
  /**
   * Optional: sets a function that returns the system prompt of each request. Its text replaces the stored
   * system messages except those of hooks. Null restores them.
   */
  setSystemPromptFactory?(factory: (() => string | Promise<string>) | null): void;
}

/** Options of `Orchestrator.execute`. */
export interface ExecuteOptions {
  /** The session's coordinator. */
  coordinator: Coordinator;
  /**
   * True after a crash: the user message is in the context already, and unanswered calls come first.
   */
  resume?: boolean;
  /** With `resume`: answered iterations of the interrupted turn. */
  iteration?: number;
}

/** Runs turns: the loop between the provider and the tools. */
export interface Orchestrator {
  /** Whether `execute` understands `resume`. */
  readonly resumable?: boolean;
  /**
   * Runs one turn and resolves to the answer's text, or to the text and how the turn ended. The kernel emits
   * the start and the end of the turn.
   */
  execute(
    prompt: Prompt,
    context: ContextManager,
    providers: Record<string, Provider>,
    tools: Record<string, Tool>,
    hooks: HookRegistry,
    options?: ExecuteOptions,
  ): Promise<string | LoopResult>;
}

/** Result of `Orchestrator.execute` with a status. */
export interface LoopResult {
  /** The answer. */
  readonly text: string;
  /** How the turn ended. Default: `success`, or `incomplete` without a text. */
  readonly status?: "success" | "incomplete" | "cancelled" | "error";
}

/** Time for modules. */
export interface Clock {
  /** Returns milliseconds since the epoch; for display only. */
  now(): number;
  /** Returns milliseconds that never decrease; for durations. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason if the signal aborts first. */
  after(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Limits of a run; see src/docs/operating.md#limits. */
export interface RunLimits {
  /** Maximum of answered provider calls. */
  max_iterations: number;
  /** Maximum of executed tool calls. */
  max_tool_calls: number;
  /** Maximum tokens of all requests and answers. */
  max_total_tokens: number;
  /** Maximum cost in US dollars, a decimal string. */
  max_cost_usd: string;
  /** Maximum duration in seconds, without waits for approvals. */
  max_duration_s: number;
  /**
   * What happens at the other limits but `max_duration_s`: the run ends, or waits until a person raises the
   * limit. Absent: it ends.
   */
  on_limit?: "end" | "pause";
}

/** Limits that a module sees: those of the run, and those that a provider applies itself. */
export interface ModuleLimits extends RunLimits {
  /** Maximum bytes of one answer of a model; absent: the default of the SDK. */
  max_answer_bytes?: number;
}

/** Name of a limit. */
export type LimitName = Exclude<keyof RunLimits, "on_limit">;

/** Name of a limit that a person can raise. */
export type RaisableLimit = Exclude<LimitName, "max_duration_s">;

/**
 * Gives a module access to its session. One per session and module; the snake_case names of methods work too.
 */
export interface Coordinator {
  /** Id of the session. */
  readonly session_id: string;
  /** Id of the parent session, or null. */
  readonly parent_id: string | null;
  /** The complete mount plan as written; `${VAR}` is not expanded here. */
  readonly config: JsonObject;
  /**
   * What the module may do: the `permissions` of its entry in the plan, less what the policy and the process
   * withhold. Paths are absolute, with links followed. A sandbox enforces them; a module in the program
   * checks them itself, as with `isPathGranted`.
   */
  readonly permissions: GrantedPermissions;
  /**
   * State of modules that lasts from run to run: JSON, 64 KiB per session. Assigning a top-level key saves it
   * with the log. Keys that begin with `shared:` go to sub-agents, and come back, where they are missing.
   */
  readonly session_state: JsonObject;
  /** Time of the session; simulated in tests, recorded in replays. */
  readonly clock: Clock;
  /** Mounted tools by mount name, live and in mount order. */
  readonly tools: Record<string, Tool>;
  /** Mounted providers by mount name, live and in mount order. */
  readonly providers: Record<string, Provider>;
  /** The mounted loop, or null before it is mounted. */
  readonly orchestrator: Orchestrator | null;
  /** The mounted context manager, or null before it is mounted. */
  readonly context: ContextManager | null;
  /** Registry of handlers; emits events. */
  readonly hooks: HookRegistry;
  /** The session's cancellation token. */
  readonly cancellation: CancellationToken;
  /**
   * Limits of the run; the guards enforce them. `max_iterations` is what this session may use of it: its
   * answered model calls of the turn, and those that the rest of the run leaves.
   */
  readonly limits: ModuleLimits;
  /** Maximum code points of one injection; null = unlimited. */
  readonly injection_size_limit: number | null;
  /** Maximum tokens of all injections of a turn; null = unlimited. */
  readonly injection_budget_per_turn: number | null;
  /** Mounts an object at orchestrator, context, providers or tools. `session` with a name also works. */
  mount(point: string, module: object, name?: string | { name?: string }): Promise<void>;
  /** Unmounts a module; does nothing when it is not mounted. */
  unmount(point: string, name?: string): Promise<void>;
  /**
   * Returns the module of a single slot or null; all modules of providers or tools; with a name, one of them.
   */
  get(point: string, name?: string): unknown;
  /** Returns a new id: `prefix_…`. */
  newId(prefix: string): string;
  /**
   * Registers a cleanup for the end of the session; the last one runs first. Values that are not functions
   * are ignored.
   */
  registerCleanup(cleanup: Cleanup): void;
  /** Publishes a value or function for other modules; replaces an earlier one with the same name. */
  registerCapability(name: string, value: unknown): void;
  /** Returns a published capability, or null. */
  getCapability(name: string): unknown;
  /** Adds a callback to a channel such as `observability.events` or `session.cost`. */
  registerContributor(channel: string, name: string, callback: () => unknown): void;
  /**
   * Resolves to the values that the channel's callbacks return, in order of registration. Nulls and failures
   * are left out.
   */
  collectContributions(channel: string): Promise<unknown[]>;
  /**
   * Runs a call that the model requested: through its gate, and reported. For orchestrators. Resolves to the
   * tool message, also for a tool that is denied, unknown or fails. Does not store it.
   *
   * @throws {PreampError} `limit_reached` when the call would exceed a limit: the turn must end.
   */
  callTool(call: ToolCall, facts?: CallFacts): Promise<Message>;
  /**
   * Carries out an emission: stores injections, shows messages, asks for approval. Resolves to the emission;
   * a question is then `continue` or `deny`.
   */
  processHookResult(result: Emission, event: string, hook_name?: string): Promise<Emission>;
  /** Resolves to the status of the session, with counters over all of its runs. */
  sessionStatus(): Promise<SessionStatus>;
  /** Requests graceful, or with `true` immediate, cancellation. */
  requestCancel(immediate?: boolean): void;
  /** Resets the injection counter; the session calls it at the start of each turn. */
  resetTurn(): void;
  /** Returns the names of mounted modules and published capabilities. */
  toDict(): JsonObject;
}

/** What a loop knows of a call beside the call itself. */
export interface CallFacts {
  /** Id that the events of all calls of one answer have. */
  readonly parallel_group_id?: string;
  /** Id of the call whose arguments the limit of output tokens cut. */
  readonly cut_call?: string | undefined;
}

/** Request for an approval. */
export interface ApprovalRequest {
  /** Name of the tool. */
  tool_name: string;
  /** Action of the tool, such as `execute`. */
  action: string;
  /** Facts for the person who decides. */
  details: JsonObject;
  /** Possible harm. */
  risk_level: RiskLevel;
  /** Timeout in seconds, above 0; null for no limit. */
  timeout: number | null;
}

/** Decision of a person. */
export interface ApprovalResponse {
  /** Whether the action is allowed. */
  approved: boolean;
  /** Reason in the person's words. */
  reason: string | null;
  /** Whether the answer also holds for the same question later. */
  remember: boolean;
}

const RISKS: readonly RiskLevel[] = ["low", "medium", "high", "critical"];

/**
 * Returns an approval request with every default filled in: no details, risk `low`, no limit.
 *
 * @throws {TypeError} when a name is empty, the risk unknown, or the timeout not above 0.
 */
export function ApprovalRequest(
  fields: { tool_name: string; action: string } & Partial<ApprovalRequest>,
): ApprovalRequest {
  const request: ApprovalRequest = { details: {}, risk_level: "low", timeout: null, ...fields };
  requireText("ApprovalRequest", "tool_name", request.tool_name);
  requireText("ApprovalRequest", "action", request.action);
  requireOneOf("ApprovalRequest", "risk_level", request.risk_level, RISKS);
  const { timeout } = request;
  if (timeout !== null && !(typeof timeout === "number" && timeout > 0)) {
    throw fieldError("ApprovalRequest", "timeout", "must be a number of seconds above 0, or null", timeout);
  }
  return request;
}

/**
 * Returns an approval response with every default filled in: no reason, not remembered.
 *
 * @throws {TypeError} when `approved` is not a boolean.
 */
export function ApprovalResponse(
  fields: { approved: boolean } & Partial<ApprovalResponse>,
): ApprovalResponse {
  if (typeof fields.approved !== "boolean") {
    throw fieldError("ApprovalResponse", "approved", "must be a boolean", fields.approved);
  }
  return { reason: null, remember: false, ...fields };
}
