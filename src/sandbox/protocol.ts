/**
 * Defines the messages between host and guest: one JSON text each. The protocol is private,
 * because host and guest always come from one build.
 *
 * The host opens calls. Everything else that a guest sends, except console lines, names the open call to
 * which it belongs. The guest's objects are known by numbers that the guest chooses (`ref`), the host's
 * objects by names (`target`).
 *
 * Also defines the channel to a guest, its limits, and the reasons for which it exits.
 */
import type { CancellationState } from "../sdk/cancellation.ts";
import { type JsonObject, type JsonSchema, toPlainObject } from "../sdk/json.ts";
import type { GrantedPermissions, RunLimits } from "../sdk/contracts.ts";
import type { Emission } from "../sdk/hooks.ts";
import { type ManySlot, resolvePoint, type SingleSlot } from "../sdk/snake_case_aliases.ts";
import { Object } from "../sdk/primordials.ts";
import type { ProviderInfo } from "../sdk/providers.ts";
import type { RiskLevel, ToolCall } from "../sdk/tools.ts";
import type { AnswerBounds } from "../sdk/checks.ts";
import { PreampError } from "../sdk/errors.ts";

/** Requests that a worker load parts of the SDK before the module. The worker answers with {@link LOADED}. */
export interface LoadAhead {
  readonly parts: readonly string[];
}

/**
 * Message of a worker that has started, and of one that has loaded parts ahead. Not a frame: frames are
 * texts.
 */
export const LOADED = null;

/** Describes an object of the guest: its data and the names of its methods. */
export interface Shape {
  readonly data: JsonObject;
  readonly methods: readonly string[];
}

/** A thrown value as data. */
export interface SerializedError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  /** Own fields that are plain data, such as `code`, `status_code`, `retryable`. */
  readonly fields?: JsonObject;
  readonly cause?: SerializedError;
  /** Number of the host's own error, if this is one: the host then rethrows the original. */
  readonly host?: number;
}

/** Description of a session's tool for a guest. */
export interface ToolView {
  readonly key: string;
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
  readonly risk?: RiskLevel;
  readonly requires_approval?: boolean;
  readonly idempotent?: boolean;
  readonly native_specs?: Readonly<Record<string, JsonObject>>;
}

/** Description of a session's provider for a guest. */
export interface ProviderView {
  readonly key: string;
  readonly name: string;
  readonly priority: number;
  readonly info: ProviderInfo;
  /** Result of `getModelInfo`, for providers that have it. */
  readonly model_info?: unknown;
}

/** Description of a capability for a guest: its data and its methods. The method `""` is the value itself. */
export interface CapabilityView {
  readonly value: unknown;
  readonly methods: readonly string[];
}

/** An emission as it is sent to a guest. */
export interface NumberedEmission {
  readonly number: number;
  readonly emission: Emission;
}

/**
 * Session data that a guest reads synchronously, as of the message that carries it. Unchanged fields are
 * absent.
 */
export interface SessionDelta {
  /** Time of the host's clock, in milliseconds. */
  readonly now: number;
  readonly monotonic: number;
  readonly cancellation: CancellationState;
  readonly state?: JsonObject;
  readonly tools?: readonly ToolView[];
  readonly providers?: readonly ProviderView[];
  readonly orchestrator?: boolean;
  readonly context?: boolean;
  readonly capabilities?: Readonly<Record<string, CapabilityView>>;
  readonly handlers?: Readonly<Record<string, string[]>>;
}

/** Session data that a guest receives once, with `mount`. */
export interface SessionSnapshot {
  readonly session_id: string;
  readonly parent_id: string | null;
  /** The plan without the configuration of other modules. */
  readonly config: JsonObject;
  readonly permissions: GrantedPermissions;
  readonly limits: RunLimits;
  readonly injection_size_limit: number | null;
  readonly injection_budget_per_turn: number | null;
  /** Prefix of the ids that the guest creates, so that no two guests create the same id. */
  readonly id_seed: string;
}

/**
 * An action of a module that has no answer. The host applies it before it handles any later message of the
 * guest.
 */
export type Notification = Readonly<
  | { e: "register"; ref: number; event: string; options: JsonObject }
  | { e: "dispose"; ref: number }
  | { e: "unregister"; name: string }
  | { e: "default_fields"; fields: JsonObject }
  | { e: "cleanup"; ref: number }
  /** `refs` maps method names to refs. The name `""` means that the value itself is a function. */
  | { e: "capability"; name: string; value: unknown; refs: Readonly<Record<string, number>> }
  | { e: "contributor"; channel: string; name: string; ref: number }
  | { e: "state"; key: string; value: unknown }
  | { e: "deleted"; key: string }
  | { e: "cancel"; immediate: boolean }
  | { e: "reset_turn" }
  | { e: "system_prompt"; ref: number | null }
>;

/** Messages from the host to a guest. */
export type ToGuest = Readonly<
  /** Links a bundle. */
  | { t: "start"; code: string; uses: readonly string[] }
  /** Opens a call of the module itself (`ref` 0) or of one of its objects. */
  | {
    t: "call";
    call: string;
    ref: number;
    method: string;
    args: readonly unknown[];
    /** Most bytes of the answer. The guest sends an error in place of a larger one. */
    max_bytes: number;
    view?: SessionDelta;
  }
  /** Aborts the signal of a call, which must end within the grace. */
  | { t: "abort"; call: string; reason: SerializedError; grace_ms: number }
  /** Answers a request of the guest. */
  | { t: "reply"; id: number; value?: unknown; error?: SerializedError; view?: SessionDelta }
  /** Sends a part of an answer ahead. */
  | { t: "piece"; id: number; value: unknown }
  | { t: "cancellation"; state: CancellationState }
>;

/** Messages from a guest to the host. */
export type FromGuest = Readonly<
  /** Reports the exports of the linked bundle. */
  | { t: "ready"; exports: Shape }
  | { t: "failed"; error: SerializedError }
  /** Ends a call. */
  | { t: "result"; call: string; value?: unknown; error?: SerializedError; effects?: readonly Notification[] }
  /** Sends a request to the host, inside a call. */
  | { t: "ask"; call: string; id: number; effects?: readonly Notification[] } & RequestBody
  /** Cancels a request. */
  | { t: "abandon"; call: string; id: number; reason: SerializedError }
  /** Sends a part of the result of a call. */
  | { t: "note"; call: string; value: unknown }
  /** Sends a line of the module's console: the only message that needs no open call. */
  | { t: "log"; level: "info" | "warning" | "error"; text: string }
>;

/** What a guest requests: a method of an object of the host. */
export interface RequestBody {
  readonly target: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** Result of a guest's `mount`. */
export type MountAnswer = Readonly<
  | { kind: "nothing" }
  | { kind: "function"; ref: number }
  /** An object with the methods of its type, and its remaining methods, such as `close`. */
  | { kind: "instance"; ref: number; shape: Shape; rest: number; rest_shape: Shape }
  | { kind: "object"; ref: number; shape: Shape }
  /** Any other value. */
  | { kind: "other"; value: unknown }
>;

/** Fields and methods of the objects at each mount point. All other members stay in the guest. */
export const FIELDS: Readonly<Record<string, { data: readonly string[]; methods: readonly string[] }>> = {
  orchestrator: { data: ["resumable"], methods: ["execute"] },
  context: {
    data: [],
    methods: [
      ...["addMessage", "getMessages", "setMessages", "clear"],
      ...["getMessagesForRequest", "setSystemPromptFactory"],
    ],
  },
  providers: {
    data: ["name", "priority"],
    methods: ["getInfo", "listModels", "complete", "parseToolCalls", "getModelInfo"],
  },
  tools: {
    data: ["name", "description", "risk", "requires_approval", "idempotent", "native_specs"],
    methods: ["execute", "preview"],
  },
};

/** Methods that make a returned object an instance of the module's type, by mount point. */
export const INSTANCE_METHODS: Readonly<Record<string, readonly string[]>> = {
  orchestrator: ["execute"],
  context: ["addMessage", "getMessages"],
  providers: ["complete"],
  tools: ["execute"],
};

/** Returns a tool call as data, with its `invalid_arguments`, which is not an enumerable field. */
export function plainCall(call: ToolCall): JsonObject {
  const { invalid_arguments } = call;
  return { ...toPlainObject(call), ...(invalid_arguments === undefined ? {} : { invalid_arguments }) };
}

/** A mount point with its canonical name. */
type Slot =
  & { readonly point: string }
  & (
    | { readonly single: SingleSlot; readonly many?: never }
    | { readonly single?: never; readonly many: ManySlot }
  );

/** Returns the slot of a mount; undefined if it is invalid, which the session's coordinator reports. */
export function slotOf(point: string, name: string | undefined): Slot | undefined {
  try {
    const slot = resolvePoint(point, name);
    return { ...slot, point: slot.single ?? slot.many };
  } catch {
    return undefined;
  }
}

/** Returns the key of an object in a map: of itself, else of one with its name. */
export function keyOf(map: Readonly<Record<string, object>>, item: object): string | undefined {
  const { name } = item as { name?: unknown };
  const entries = Object.entries(map);
  const found = entries.find(([, value]) => value === item) ??
    entries.find(([key, value]) => key === name || (value as { name?: unknown }).name === name);
  return found?.[0];
}

/**
 * Limits of one guest; names and defaults as under `isolation` and `limits` in the policy
 * (src/docs/operating.md).
 */
export interface GuestLimits extends AnswerBounds {
  readonly memory_mb: number;
  readonly cpu_s: number;
  /** Timeout of the module's top level, and again of its `mount`. */
  readonly load_timeout_s: number;
  readonly max_tool_output_bytes: number;
  /** Bytes of the images of a tool's result, in base64, in addition to its output. */
  readonly max_tool_image_bytes: number;
  /** Timeout of calls whose caller sets none. */
  readonly call_timeout_s: number;
}

/** Reason for which a guest exited. */
type ExitReason =
  /** It exited by itself, panicked, or received a signal from elsewhere. */
  | "crashed"
  /** It exceeded its memory limit. */
  | "memory"
  /** A call exceeded its processor time or its deadline. */
  | "timeout"
  /** It sent more bytes than allowed. */
  | "output"
  /** It broke the protocol, such as with a frame for a call that is not open. */
  | "violation"
  /** The host ended it, such as with its session. */
  | "ended";

/** Describes the exit of a guest. */
export interface GuestExit {
  readonly cause: ExitReason;
  /** Text for people, such as `its process ended with code 3`. */
  readonly detail: string;
}

/** Exit of a guest whose message is above {@link ChannelListener.limit}. */
export const TOO_LARGE: GuestExit = {
  cause: "output",
  detail: "it sent a message that is too large, such as an output above limits.max_tool_output_bytes",
};

/** Exit of a guest that uses more memory than it may. */
export const MEMORY: GuestExit = {
  cause: "memory",
  detail: "it exceeded its memory limit (isolation.memory_mb)",
};

/** Channel to one guest. */
export interface Channel {
  /** Sends a text. Texts for a guest that has exited are dropped. */
  send(text: string): void;
  /**
   * Sets the milliseconds that the guest may work without another message from the host; 0 means no limit.
   */
  watch(deadline_ms: number): void;
  /**
   * Waits for work of the guest for at most `ms` milliseconds of its own time: processor time, and time in
   * which it is idle.
   * @throws {LateError} after that time.
   */
  within<T>(ms: number, work: Promise<T>): Promise<T>;
  /** Sets the listener. Called once, before anything is sent. */
  listen(listener: ChannelListener): void;
  /** Ends the guest; resolves when it has exited. The first exit that is reported counts. */
  kill(exit: GuestExit): Promise<void>;
  /** Resolves when the guest has exited. */
  readonly exited: Promise<GuestExit>;
}

/** Receives the texts of a channel. */
export interface ChannelListener {
  take(text: string): void;
  /** Returns the most bytes that the next text may have. */
  limit(): number;
}

/** Codes of tool results (src/docs/http.md); `tool_crashed` for the other reasons. */
const CODES: Readonly<Partial<Record<ExitReason, PreampError["code"]>>> = {
  memory: "tool_memory_exceeded",
  timeout: "tool_timeout",
  output: "tool_output_exceeded",
};

/** Returns the error of calls that were open when the guest exited. */
export function exitError({ cause, detail }: GuestExit, name: string): PreampError {
  const message = `Cannot use module "${name}": ${detail}`;
  return new PreampError(CODES[cause] ?? "tool_crashed", message, { facts: { cause } });
}

/** Returns the error of later calls to a guest that has exited. */
export function endedError({ cause, detail }: GuestExit, name: string): PreampError {
  const message = `Cannot use module "${name}" again in this run: ${detail}`;
  return new PreampError("tool_crashed", message, { facts: { cause } });
}

/** Returns whether the plan names an entry of a permission; undefined: all of the permission. */
export type IsAsked = (kind: string, entry: string | undefined) => boolean;
