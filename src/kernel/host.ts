/**
 * The interface between a session and its environment: time, ids, modules, the log and approvals. The kernel
 * reaches nothing else; it has no `Deno.*`, no `fetch`, no timer and no clock of its own.
 */
import { eventsWith } from "../sdk/event_table.ts";
import type { SessionStatus } from "../sdk/session_status.ts";
import type {
  ApprovalOption,
  Clock,
  Emission,
  GrantedPermissions,
  JsonObject,
  Module,
  ModuleSpec,
  RaisableLimit,
} from "../sdk/types.ts";

/** Result of {@link Host.open}: a module that is ready to be mounted. */
export interface OpenedModule {
  readonly module: Module;
  /** The spec's config with its `${VAR}`s expanded, once. */
  readonly config: JsonObject;
  readonly isolation: "inline" | "process";
  /** What the module may do; see `Coordinator.permissions`. Absent: nothing. */
  readonly permissions?: GrantedPermissions;
  /** Digest of the module's graph; null for a built-in module. */
  readonly integrity: string | null;
  /**
   * Checks the config against the module's `config_schema` and returns the config with the schema's defaults.
   * Absent: the config was checked before.
   * @throws {PreampError} `plan_invalid`
   */
  checkConfig?(): Promise<JsonObject> | JsonObject;
  /** Name, version and `provides` for `module:mounted`; absent: read from the module. */
  readonly stated?: JsonObject;
  /** Timeout of `mount` in seconds; absent: no timeout. */
  readonly load_timeout_s?: number;
  /**
   * Stops the process of the module. Called once, after all cleanups of the session. Absent:
   * nothing to stop.
   */
  close?(): Promise<void>;
  /** Returns where in the author's files an error was thrown, as `<url>:<line>:<column>`. Never throws. */
  placeOf?(error: unknown): string | undefined;
}

/** Result of an event's hooks, when they did more than continue. */
export interface Verdict {
  action: string;
  hook_name: string | null;
  reason?: string;
  modified?: true;
  injections?: JsonObject[];
}

/**
 * An entry before the log adds its number and time. The log adds them to this object, which becomes the
 * {@link Entry}.
 */
export interface DraftEntry {
  event: string;
  session_id: string;
  parent_id?: string;
  turn_id?: string;
  iteration?: number;
  /** JSON-safe; no other code has a reference to it. */
  data: JsonObject;
  verdict?: Verdict;
}

/** An entry of the log: see src/docs/events.md#an-entry. */
export interface Entry extends DraftEntry {
  seq: number;
  /** UTC, RFC 3339, milliseconds. */
  ts: string;
  run_id: string;
}

/** A reached limit, as a person is asked to raise it. */
export interface LimitQuestion {
  name: RaisableLimit;
  /** The limit as it is. */
  value: number | string;
  /** What the run has used of it. */
  used: number | string;
  /** What the next step takes at most; null for a tool call. `cost_usd`: null without a known price. */
  next: { tokens: number; cost_usd: string | null } | null;
}

/** A question to a person; the data of `approval:required`. */
export interface ApprovalRequest {
  approval_id: string;
  tool_name: string | null;
  tool_call_id: string | null;
  tool_input: JsonObject | null;
  /** sha256 of the canonical JSON of the input that will run (or of the event's data). */
  args_hash: string;
  action: string;
  risk_level: string;
  prompt: string;
  options: ApprovalOption[];
  default: "allow" | "deny";
  expires_at: string;
  hook_name: string | null;
  /** What the call would do, such as a diff, as its tool says; absent: it does not say. */
  preview?: string;
  /** The limit that an answer `allow` raises; absent: the question is about a call or an event. */
  limit?: LimitQuestion;
  /** Pattern that an option with `remember: "pattern"` applies to; absent: the exact arguments. */
  pattern?: string;
}

/** Fields of a question that decide whether an earlier answer applies to it. */
export type ApprovalMatch = Pick<
  ApprovalRequest,
  "action" | "tool_name" | "tool_call_id" | "args_hash" | "prompt" | "hook_name" | "pattern"
>;

/** Fields by which a question about a call is found again after its process has ended. */
export type QuestionKey = Pick<ApprovalRequest, "tool_call_id" | "args_hash" | "action">;

/** An earlier answer that applies to a question. */
export interface RememberedAnswer {
  /** Id of the approval that was answered. */
  readonly approval_id: string;
  readonly allowed: boolean;
  readonly decision: string;
  readonly decided_by: string | null;
  /** Whether the log contains an entry for this question; then no event is emitted in an interrupted turn. */
  readonly recorded: boolean;
}

/** An answer to a question. */
export interface ApprovalDecision {
  /** `allow`, `deny`, an offered option's label, or `timeout`. */
  decision: string;
  reason: string | null;
  /** The answerer, such as `key:ci` or `terminal`; null when no person answered. */
  decided_by: string | null;
}

/** A question that is in the log of an interrupted run. */
export interface KnownApproval {
  readonly request: ApprovalRequest;
  /** The answer, when it is in the log too; then no event is emitted. */
  readonly answer: ApprovalDecision | null;
}

/** A clock with timers that cost less than {@link Clock.after} and its signal. */
export interface HostClock extends Clock {
  /** Calls `then` after `ms` milliseconds, unless the returned function is called first. */
  later(ms: number, then: () => void): () => void;
}

/** Environment of a session. */
export interface Host {
  readonly clock: HostClock;
  /**
   * Whether a tool whose file or `mount` throws fails the session, unless the plan sets `required: false`.
   * Absent: the tool is skipped.
   */
  readonly requires_tools?: boolean;
  newId(prefix: string): string;
  open(spec: ModuleSpec): Promise<OpenedModule> | OpenedModule;
  /** Numbers and stores an entry. Returns a promise only when the caller must wait until it is durable. */
  record(entry: DraftEntry): Promise<void> | void;
  /**
   * Asks a person. Idempotent by (run, tool_call_id, args_hash). When `signal` aborts with the reason
   * `"timeout"` or `"cancelled"`, resolves to the person's decision if it came first, else to `timeout` or
   * `deny`. Resolves to null when no person can be asked.
   */
  ask(request: ApprovalRequest, signal: AbortSignal, session_id: string): Promise<ApprovalDecision | null>;
  /**
   * Returns the question that was asked about this call before the process ended, or null. The same question
   * is continued. Called only until the interrupted turn receives another answer.
   */
  knownApproval?(question: QuestionKey, session_id: string): KnownApproval | null;
  /** Returns whether a person can raise this limit of the run. Absent: no. */
  mayRaise?(limit: RaisableLimit): boolean;
  /** Returns an earlier answer of this session to the question, or null: then a person is asked. */
  rememberedApproval?(question: ApprovalMatch, session_id: string): RememberedAnswer | null;
  /** Returns the status and counters of a session. Absent: nothing is counted. */
  sessionStatus?(session_id: string): SessionStatus;
  /** Called once the session is initialised, which is when the run exists. */
  accept(): Promise<void> | void;
  /**
   * Replay only: returns the recorded hook result of this event. Handlers of the modules that run are called
   * too, but their results are ignored.
   */
  recordedResult?(event: string, data: JsonObject): Promise<Emission> | Emission;
  /** Replay only: returns the recorded results of `emitAndCollect`. */
  recordedAnswers?(event: string, data: JsonObject): JsonObject[];
  /**
   * Returns an event's data without secrets, as the log stores it. Modules that write elsewhere call it as
   * the capability `session.redact`. Absent: no secrets are known.
   */
  redactEvent?(event: string, data: JsonObject): JsonObject;
  /**
   * Keeps the bytes of a file from before a change, so that it can be undone. `write`: what the module that
   * changes it may write. Resolves to null, or to why the change cannot be undone. Modules call it as the
   * capability `session.keep_before`. Absent: nothing is kept.
   */
  keepBefore?(change: JsonObject, write: GrantedPermissions["write"]): Promise<string | null>;
  /** Reports a problem that has no event, such as a skipped handler. Never throws. */
  warn(code: string, message: string, facts?: JsonObject): void;
}

/** Events whose entry must be durable before the next step; see also {@link isBarrier}. */
const DURABLE_EVENTS = eventsWith("durable");

/** Creates a draft with the fields in the order of an entry, including those that the log sets. */
export function draftEntry(
  event: string,
  session_id: string,
  data: JsonObject,
  rest: {
    parent_id?: string | null;
    turn_id?: string | undefined;
    iteration?: number | undefined;
    verdict?: Verdict | undefined;
  } = {},
): DraftEntry {
  const { turn_id, iteration } = rest;
  if (!rest.parent_id && !rest.verdict) {
    // perf: a literal takes half the memory of an object that grows; nearly every entry is one of these two
    if (turn_id === undefined && !iteration) {
      return { seq: 0, event, ts: "", run_id: "", session_id, data } as Entry;
    }
    if (turn_id !== undefined && iteration) {
      return { seq: 0, event, ts: "", run_id: "", session_id, turn_id, iteration, data } as Entry;
    }
  }
  const entry = { seq: 0, event, ts: "", run_id: "", session_id } as Entry;
  if (rest.parent_id) entry.parent_id = rest.parent_id;
  if (turn_id !== undefined) entry.turn_id = turn_id;
  if (iteration) entry.iteration = iteration;
  entry.data = data;
  if (rest.verdict) entry.verdict = rest.verdict;
  return entry;
}

/** Returns whether the next step must wait until this entry is durable. */
export function isBarrier(entry: DraftEntry): boolean {
  if (DURABLE_EVENTS.has(entry.event)) return true;
  if (entry.event !== "context:message") return false;
  return (entry.data.message as { role?: unknown } | undefined)?.role === "user";
}
