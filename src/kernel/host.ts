/**
 * All that a session is given from outside: time, ids, modules, the log, a person to ask. The kernel knows nobody else; it
 * has no `Deno.*`, no `fetch`, no timer and no clock of its own.
 */
import { eventsWith } from "../sdk/events.ts";
import type { SessionStatus } from "../sdk/session_status.ts";
import type { ApprovalOption, Clock, Emission, JsonObject, Module, ModuleSpec } from "../sdk/types.ts";

/** What `open` finds for a spec. */
export interface OpenedModule {
  readonly module: Module;
  /** The spec's config with its `${VAR}`s expanded, once. */
  readonly config: JsonObject;
  readonly isolation: "inline" | "worker" | "process";
  /** Digest of the module's graph; null for what is compiled in. */
  readonly integrity: string | null;
  /**
   * Checks the config against the schema that the module tells of itself; returns the one to mount it with, which has the schema's
   * defaults. Absent: it was checked before.
   * @throws {PreampError} `plan_invalid`
   */
  checkConfig?(): Promise<JsonObject> | JsonObject;
  /** What is told of the module's name, version and what it provides; absent: what it says of itself. */
  readonly stated?: JsonObject;
  /** Seconds that `mount` may take (trust.md, Limits). Absent: as long as it likes. */
  readonly load_timeout_s?: number;
  /** Ends what the module runs in. Called once, when nothing of the session is left to call it. Absent: nothing is to be ended. */
  close?(): Promise<void>;
  /** Returns where in the author's files an error was thrown, as `<url>:<line>:<column>`. Absent: nobody knows. Never throws. */
  placeOf?(error: unknown): string | undefined;
}

/** What a hook did to an event, when it did more than continue. */
export interface Verdict {
  action: string;
  hook_name: string | null;
  reason?: string;
  modified?: true;
  injections?: JsonObject[];
}

/** One entry of the log before the log numbers and stamps it. The log takes it over: it becomes the {@link Entry}. */
export interface DraftEntry {
  event: string;
  session_id: string;
  parent_id?: string;
  turn_id?: string;
  iteration?: number;
  /** JSON-safe, shared with nobody. */
  data: JsonObject;
  verdict?: Verdict;
}

/** One entry of the log (trace.md, section 2). */
export interface Entry extends DraftEntry {
  seq: number;
  /** UTC, RFC 3339, milliseconds. */
  ts: string;
  run_id: string;
}

/** What a person is asked; the data of `approval:required`. */
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
  /** What an option that remembers a pattern holds for; absent: the exact arguments. */
  pattern?: string;
}

/** What tells whether an answer that was given before holds for a question too. */
export type ApprovalMatch = Pick<
  ApprovalRequest,
  "action" | "tool_name" | "tool_call_id" | "args_hash" | "prompt" | "hook_name" | "pattern"
>;

/** An answer, given before, that holds for a question. */
export interface RememberedAnswer {
  /** The approval that was answered. */
  readonly approval_id: string;
  readonly allowed: boolean;
  readonly decision: string;
  readonly decided_by: string | null;
  /** Whether the log tells already that it holds for this very question: then nothing is told again. */
  readonly recorded: boolean;
}

/** What came back. */
export interface ApprovalDecision {
  /** `allow`, `deny`, an offered option's label, or `timeout`. */
  decision: string;
  reason: string | null;
  /** Who answered, such as `key:ci` or `terminal`; null when nobody did. */
  decided_by: string | null;
}

/** A question that the log knows already. */
export interface KnownApproval {
  readonly request: ApprovalRequest;
  /** The answer, when the log knows that too; then nothing is told again. */
  readonly answer: ApprovalDecision | null;
}

/** A clock that may have a way to wait which costs less than {@link Clock.after} and a signal to end it. */
export interface HostClock extends Clock {
  /** Calls back after `ms` milliseconds, unless the returned function is called before. */
  later?(ms: number, then: () => void): () => void;
}

/** Everything a session may ask of the world. */
export interface Host {
  readonly clock: HostClock;
  newId(prefix: string): string;
  open(spec: ModuleSpec): Promise<OpenedModule> | OpenedModule;
  /** Numbers and stores an entry. Returns a promise only when the caller must wait for it to be durable. */
  record(entry: DraftEntry): Promise<void> | void;
  /**
   * Asks a person. Idempotent by (run, tool_call_id, args_hash). When `signal` aborts (its reason is `"timeout"` or
   * `"cancelled"`), resolves to the decision that won: the person's if it came first, else `timeout`, or `deny`. Null: there is nobody to ask.
   */
  ask(request: ApprovalRequest, signal: AbortSignal, session_id: string): Promise<ApprovalDecision | null>;
  /** Returns what was asked about this before an interruption, or null: it stays the same question (architecture.md, Resume). */
  knownApproval?(
    asked: Pick<ApprovalRequest, "tool_call_id" | "args_hash" | "action">,
    session_id: string,
  ): KnownApproval | null;
  /** Returns the answer of this session that holds for a question too, or null: then a person is asked. */
  rememberedApproval?(asked: ApprovalMatch, session_id: string): RememberedAnswer | null;
  /** Returns how a session stands, with its counters. Absent: nothing is counted. */
  sessionStatus?(session_id: string): SessionStatus;
  /** The session is initialised: the run exists. */
  accept(): Promise<void> | void;
  /**
   * Replay: what the hooks of the recorded run made of this event. Handlers are told all the same, so that modules that run for
   * real see what they saw then; what they answer counts for nothing.
   */
  recall?(event: string, data: JsonObject): Promise<Emission> | Emission;
  /** Replay: what the hooks of the recorded run answered to an event that collects answers. */
  recallAnswers?(event: string, data: JsonObject): JsonObject[];
  /**
   * Returns an event's data as the log keeps them, without secrets: modules that write elsewhere have it as the capability
   * `session.redact`. Absent: nothing is known to be a secret.
   */
  redactEvent?(event: string, data: JsonObject): JsonObject;
  /** Told what has no event of its own: a skipped handler, a lost display. Never throws. */
  warn(code: string, message: string, facts?: JsonObject): void;
}

/** Events whose entry must be durable before the next step; see also {@link isBarrier}. */
const DURABLE_EVENTS = eventsWith("durable");

/** Returns a draft whose fields stand in the envelope's order, with room for what the log adds. */
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
  if (turn_id !== undefined && iteration && !rest.parent_id && !rest.verdict) {
    // nearly every entry is one of these: made at once it takes half the memory of one that grows
    return { seq: 0, event, ts: "", run_id: "", session_id, turn_id, iteration, data } as Entry;
  }
  const entry = { seq: 0, event, ts: "", run_id: "", session_id } as Entry;
  if (rest.parent_id) entry.parent_id = rest.parent_id;
  if (turn_id !== undefined) entry.turn_id = turn_id;
  if (iteration) entry.iteration = iteration;
  entry.data = data;
  if (rest.verdict) entry.verdict = rest.verdict;
  return entry;
}

/** Returns true when the step after this entry must wait until it is durable. */
export function isBarrier(entry: DraftEntry): boolean {
  if (DURABLE_EVENTS.has(entry.event)) return true;
  if (entry.event !== "context:message") return false;
  return (entry.data.message as { role?: unknown } | undefined)?.role === "user";
}
