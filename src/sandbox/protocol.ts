/**
 * What passes between the host and a guest: one JSON text a message, the same over every tier (modules.md, Isolation tiers).
 * Types only, and the few constants both sides must agree on. Private: host and guest are always of one build.
 *
 * The host opens calls; everything else a guest says belongs to one of them and names it. A guest object that the host may call
 * is known by a number the guest chose (`ref`), a host object by a name (`target`).
 */
import type { CancellationState } from "../sdk/cancellation.ts";
import { type JsonObject, type JsonSchema, toPlainObject } from "../sdk/json.ts";
import type { RunLimits } from "../sdk/contracts.ts";
import type { ProviderInfo } from "../sdk/providers.ts";
import type { RiskLevel, ToolCall } from "../sdk/tools.ts";

/** One-way messages (deltas, progress) that a guest may have under way; the host gives more as it takes them (flow control). */
export const NOTE_CREDIT = 256;

/** Describes an object of the guest: its data and the names of its methods. */
export interface Shape {
  readonly data: JsonObject;
  readonly methods: readonly string[];
}

/** Something thrown, as data. */
export interface SerializedError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  /** Own fields that are plain data, such as `code`, `status_code`, `retryable`. */
  readonly fields?: JsonObject;
  readonly cause?: SerializedError;
  /** Number of the error of the host that this one is: it comes back as it went. */
  readonly host?: number;
}

/** A tool of the session, as a guest sees it. */
export interface ToolView {
  readonly key: string;
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
  readonly risk?: RiskLevel;
  readonly requires_approval?: boolean;
  readonly idempotent?: boolean;
  readonly native_specs?: JsonObject;
}

/** A provider of the session, as a guest sees it. */
export interface ProviderView {
  readonly key: string;
  readonly name: string;
  readonly priority: number;
  readonly info: ProviderInfo;
  /** Answer of `getModelInfo`, for providers that have it. */
  readonly model_info?: unknown;
}

/** A capability, as a guest sees it: data, and the methods that may be called (`""` is the value itself). */
export interface CapabilityView {
  readonly value: unknown;
  readonly methods: readonly string[];
}

/** What of the session a guest reads synchronously, as of the message it came with. Fields that did not change are absent. */
export interface SessionDelta {
  /** The host's clock, in milliseconds. */
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

/** What a guest is told once, with `mount`. */
export interface SessionSnapshot {
  readonly session_id: string;
  readonly parent_id: string | null;
  /** The plan without what is other modules' business. */
  readonly config: JsonObject;
  readonly limits: RunLimits;
  readonly injection_size_limit: number | null;
  readonly injection_budget_per_turn: number | null;
  /** Ids that the guest makes begin with it: two guests never make the same one. */
  readonly id_seed: string;
}

/** What a module did without waiting for an answer; the host does it before anything the guest says later. */
export type Notification =
  | { readonly e: "register"; readonly ref: number; readonly event: string; readonly options: JsonObject }
  | { readonly e: "dispose"; readonly ref: number }
  | { readonly e: "unregister"; readonly name: string }
  | { readonly e: "default_fields"; readonly fields: JsonObject }
  | { readonly e: "cleanup"; readonly ref: number }
  | { readonly e: "capability"; readonly name: string; readonly value: unknown; readonly refs: Refs }
  | { readonly e: "contributor"; readonly channel: string; readonly name: string; readonly ref: number }
  | { readonly e: "state"; readonly key: string; readonly value: unknown }
  | { readonly e: "deleted"; readonly key: string }
  | { readonly e: "cancel"; readonly immediate: boolean }
  | { readonly e: "reset_turn" }
  | { readonly e: "system_prompt"; readonly ref: number | null };

/** Method name (`""`: the value itself is a function) → ref. */
export type Refs = Readonly<Record<string, number>>;

/** Host → guest. */
export type ToGuest =
  /** Link this bundle. */
  | { readonly t: "start"; readonly code: string; readonly uses: readonly string[] }
  /** Open a call: of the module itself (`ref` 0) or of one of its objects. */
  | {
    readonly t: "call";
    readonly call: string;
    readonly ref: number;
    readonly method: string;
    readonly args: readonly unknown[];
    readonly view?: SessionDelta;
  }
  /** Abort the signal of a call. */
  | { readonly t: "abort"; readonly call: string; readonly reason: SerializedError }
  /** Answer to something the guest asked. */
  | {
    readonly t: "reply";
    readonly id: number;
    readonly value?: unknown;
    readonly error?: SerializedError;
    readonly view?: SessionDelta;
  }
  /** A piece of an answer that the guest waits for. */
  | { readonly t: "piece"; readonly id: number; readonly value: unknown }
  /** So many one-way messages more. */
  | { readonly t: "credit"; readonly n: number }
  | { readonly t: "cancellation"; readonly state: CancellationState };

/** Guest → host. */
export type FromGuest =
  /** The bundle is linked: what it exports. */
  | { readonly t: "ready"; readonly exports: Shape }
  | { readonly t: "failed"; readonly error: SerializedError }
  /** End of a call. */
  | {
    readonly t: "result";
    readonly call: string;
    readonly value?: unknown;
    readonly error?: SerializedError;
    readonly effects?: readonly Notification[];
  }
  /** Asks the host for something, inside a call. */
  | {
    readonly t: "ask";
    readonly call: string;
    readonly id: number;
    readonly target: string;
    readonly method: string;
    readonly args: readonly unknown[];
    readonly effects?: readonly Notification[];
  }
  /** No longer wants what it asked for. */
  | { readonly t: "abandon"; readonly call: string; readonly id: number; readonly reason: SerializedError }
  /** A piece of the result of a call. */
  | { readonly t: "note"; readonly call: string; readonly value: unknown }
  /** A line of the module's console; the only thing a guest may say outside a call. */
  | { readonly t: "log"; readonly level: "info" | "warning" | "error"; readonly text: string };

/** What `mount` of a guest returned. */
export type MountAnswer =
  | { readonly kind: "nothing" }
  | { readonly kind: "function"; readonly ref: number }
  /** Something to mount (its type's methods are there), and its other methods, such as `close`. */
  | {
    readonly kind: "instance";
    readonly ref: number;
    readonly shape: Shape;
    readonly rest: number;
    readonly rest_shape: Shape;
  }
  | { readonly kind: "object"; readonly ref: number; readonly shape: Shape }
  /** What is none of these, as it is. */
  | { readonly kind: "other"; readonly value: unknown };

/** Known fields and methods of what may stand at a mount point; what else an object has stays in the guest. */
export const FIELDS: Readonly<Record<string, { data: readonly string[]; methods: readonly string[] }>> = {
  orchestrator: { data: ["resumable"], methods: ["execute"] },
  context: {
    data: [],
    methods: [
      "addMessage",
      "getMessagesForRequest",
      "getMessages",
      "setMessages",
      "clear",
      "setSystemPromptFactory",
    ],
  },
  providers: {
    data: ["name", "priority"],
    methods: ["getInfo", "listModels", "complete", "parseToolCalls", "getModelInfo"],
  },
  tools: {
    data: [
      "name",
      "description",
      "risk",
      "requires_approval",
      "idempotent",
      "native_specs",
    ],
    methods: ["execute"],
  },
};

/** Methods by which something that `mount` returned is known as an instance of its type (behaviour.md §3.3), by mount point. */
export const INSTANCE_METHODS: Readonly<Record<string, readonly string[]>> = {
  orchestrator: ["execute"],
  context: ["addMessage", "getMessages"],
  providers: ["complete"],
  tools: ["execute"],
};

/** Returns the call with the text of arguments that could not be read, which is no enumerable field. */
export function plainCall(call: ToolCall): JsonObject {
  const { invalid_arguments } = call;
  return { ...toPlainObject(call), ...(invalid_arguments === undefined ? {} : { invalid_arguments }) };
}
