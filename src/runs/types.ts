/**
 * Data and interfaces of runs as callers see them: run object, approvals, sessions, requests, recordings. See
 * src/docs/http.md.
 */
import type { ApprovalRequest, Entry } from "../kernel/host.ts";
import type { MountedDescriptors } from "../kernel/mounts.ts";
import type { LoggedUsage } from "../kernel/session_parts.ts";
import type { Counters } from "../sdk/run_counters.ts";
import type { SessionState } from "../sdk/session_status.ts";
import type {
  ApprovalOption,
  ContentBlock,
  GrantedPermissions,
  JsonObject,
  Message,
  Prompt,
  RaisableLimit,
  RunLimits,
  ToolSpec,
  Usage,
} from "../sdk/types.ts";

/** Status of a run. The last five are final. */
export type RunStatus =
  | "queued"
  | "running"
  | "awaiting_approval"
  | "awaiting_limit"
  | "completed"
  | "incomplete"
  | "denied"
  | "cancelled"
  | "failed";

/** Statuses of a run that waits for a person. */
export const AWAITING: ReadonlySet<RunStatus> = new Set(["awaiting_approval", "awaiting_limit"]);

/** A warning on a run or a plan. */
export interface Warning {
  code: string;
  path?: string;
  message: string;
}

/** Token totals of a run. */
export interface RunUsage {
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  /** Decimal string; null when no call had a known price. */
  cost_usd: string | null;
}

/** Context usage at the last request. */
export interface ContextUsage {
  tokens: number;
  budget: number;
  level: number;
  compactions: number;
}

/** An entry of a run. */
export interface RunEntry {
  readonly run_id: string;
  readonly seq: number;
}

/** The run object, a projection of the log. */
export interface Run {
  id: string;
  object: "run";
  session_id: string;
  /** The first 200 characters of its prompt, on one line; empty for a run of an older version. */
  title: string;
  status: RunStatus;
  stop_reason: string | null;
  output_text: string;
  output: ContentBlock[];
  turn_count: number;
  tool_call_count: number;
  usage: RunUsage;
  limits: RunLimits;
  plan_hash: string;
  lock_hash: string | null;
  warnings: Warning[];
  /** Pending approvals, and those that were denied because no one could be asked. */
  approvals: Approval[];
  error: { code: string; message: string } | null;
  metadata: JsonObject;
  /** The entry of another run that this one continues from; null: it was started with its own prompt. */
  forked_from: RunEntry | null;
  context: ContextUsage;
  /** Module id → tier. */
  isolation: Record<string, string>;
  created_at: string;
  ended_at: string | null;
  events_url: string;
}

/** An approval as a resource. */
export interface Approval extends Omit<ApprovalRequest, "approval_id" | "options"> {
  id: string;
  object: "approval";
  run_id: string;
  session_id: string;
  options: ApprovalOption[];
  status: "pending" | "granted" | "denied" | "expired";
  decision?: string;
  reason?: string | null;
  decided_by?: string | null;
  created_at: string;
  decided_at?: string;
}

/** A session as a resource. */
export interface SessionObject {
  id: string;
  object: "session";
  /** Title of its first run; the name of a sub-agent; absent in sessions of older versions. */
  title?: string;
  parent_id: string | null;
  plan_hash: string | null;
  run_count: number;
  created_at: string;
  last_activity: string;
  /** The session's status, with counters over all of its runs. */
  status: JsonObject;
  metadata: JsonObject;
}

/** The body of `POST /v1/runs`, validated. */
export interface RunRequest {
  prompt: Prompt;
  /** A plan as data or as YAML/JSON text. */
  plan?: JsonObject | string;
  plan_ref?: string;
  /** Model of this run, as `PROVIDER/MODEL`; without a plan, the demo plan is run on it. */
  model?: string;
  /** Mode of the plan, from this run of the session on; `none`: no mode. */
  mode?: string;
  /**
   * Absolute path of the folder that `${WORKSPACE}` in the plan means, for this run and those that continue
   * its session. Default: the server's. Of callers for whom {@link mayOperate} is true.
   */
  workspace?: string;
  lock?: JsonObject;
  session_id?: string;
  limits?: Partial<RunLimits>;
  on_disconnect?: "continue" | "cancel";
  if_busy?: "reject" | "queue" | "cancel";
  metadata?: JsonObject;
}

/** The sender of a request, with its rights. */
export interface Caller {
  /** `key:NAME`, `anonymous` (no auth), `terminal` (CLI) or `library`. */
  readonly name: string;
  /** Runs and sessions of a caller are visible in its namespace only. */
  readonly namespace: string;
  /**
   * Owner of the caller's plans: `operator` for files named on the command line, `caller` for inline plans.
   */
  readonly origin: "operator" | "caller";
  /** Name of the key's policy in `policies`, if it has one. */
  readonly policy?: string;
  /**
   * Whether it is the person who has started the server: may choose the model and the workspace of the
   * operator's plans, and save plans. Its plans in requests are a caller's. Default false.
   */
  readonly owner?: boolean;
}

/** Returns whether a caller may choose model and workspace of the operator's plans, and save plans. */
export function mayOperate({ origin, owner = false }: Pick<Caller, "origin" | "owner">): boolean {
  return origin === "operator" || owner;
}

/** Options of `create` beside the request. */
export interface CreateOptions {
  /** `Idempotency-Key` of the request and the hash of its body. */
  idempotency?: { key: string; body_hash: string };
  /** Aborted when the client disconnects; used with `on_disconnect: cancel`. */
  signal?: AbortSignal;
  /**
   * Answers approvals in place of HTTP, such as at the terminal. Null: no one can be asked. The approval is
   * denied at once, whatever its default.
   */
  ask?: (
    approval: Approval,
    signal: AbortSignal,
  ) => Promise<{ decision: string; reason?: string | null } | null>;
  /**
   * Called with the run once its session is initialised, before its first step. If it throws, `create`
   * rejects with that error, nothing is stored, and no provider is called.
   */
  admit?: (run: Run) => void;
  /**
   * Called once with the run as it ends when its end could not be stored. Until it is, the run has not ended
   * for anyone else: the server tries again, and another one continues the run when this one stops first.
   */
  endNotStored?: (run: Run) => void;
  /** The directory that relative sources and `{file}` of the plan are read from; operator plans only. */
  base_url?: string;
  /** Returns a header of the request, for `${X-Run-…}` in the plan. */
  headers?: (name: string) => string | undefined;
}

/** An answer that also holds for later questions of the session. */
export interface RememberedApproval {
  readonly approval_id: string;
  readonly action: string;
  readonly tool_name: string | null;
  readonly hook_name: string | null;
  /** `session`: holds for the same prompt; `pattern`: for the same pattern. */
  readonly scope: "session" | "pattern";
  /** The prompt, or the pattern; a question without a pattern has the hash of its arguments here. */
  readonly holds_for: string;
  readonly allowed: boolean;
  readonly decision: string;
  readonly decided_by: string | null;
}

/** State of a session between runs: what its log has. */
export interface SavedState {
  history: readonly Message[];
  session_state: JsonObject;
  /** Usage of the requests since the last compaction. */
  usages: readonly LoggedUsage[];
  /** Remembered approvals of the session. */
  remembered?: readonly RememberedApproval[];
}

/** State of a session before a run, or before a turn of a sub-agent. */
export interface InitialState extends SavedState {
  /** Whether the session had run before. */
  continued: boolean;
}

/** Outcome of a session's last run. */
export interface LastRun {
  readonly status: SessionState;
  readonly error: JsonObject | null;
}

/** The record of a session: all of it but its state. */
export interface SessionRecord {
  object: Omit<SessionObject, "status">;
  /** Counters over all runs; absent in sessions of older versions. */
  counters?: Counters;
  /** Outcome of the last run; absent while a run is active and in sessions of older versions. */
  last_run?: LastRun;
  /** The plan as written, and its owner. Continued runs use it with the same rights. */
  plan: JsonObject;
  plan_origin: "operator" | "caller";
  plan_base_url: string | null;
  /** Set on a sub-agent's session: its name, and whether its overlay sets limits of its own. */
  spawned?: { agent: string; limited: boolean };
  /** The lock that came with the plan; it applies to every run. */
  plan_lock?: JsonObject;
  /** The workspace that was chosen for the plan. */
  plan_workspace?: string;
}

/** A session between runs, with its state. */
export interface SavedSession extends SessionRecord, SavedState {
  /** Entries of the session's log; null: it has none, because it is new or an older version stored it. */
  position: number | null;
  /** Version of its record; 0: it is not stored. */
  version: number;
}

/** Input of a sub-agent's turn. */
export interface AgentInput extends InitialState {
  session_id: string;
  /** Distinguishes the turns of one session. */
  turn_id: string;
  /** The sub-agent's plan as written, with overlay, preferences and filters applied. */
  plan: JsonObject;
  /** Whether its overlay sets limits of its own. */
  limited: boolean;
  surface: MountedDescriptors;
}

/** Input of a run. */
export interface RunInput extends InitialState {
  version: 1;
  /** The plan as written, and its owner. */
  plan: JsonObject;
  plan_origin: "operator" | "caller";
  plan_base_url: string | null;
  /** The lock that came with the plan. */
  plan_lock?: JsonObject;
  /** The workspace that was chosen for the plan. */
  plan_workspace?: string;
  /** Whether plan or request set `max_cost_usd`. */
  cost_is_asked_for: boolean;
  /** Null while the session is not initialised. */
  surface: MountedDescriptors | null;
  /** The turn of another run that this run continues; its prompt is in the history. */
  resume?: { prompt: Prompt; iteration: number };
  /** Ended turns of sub-agents, in the order of their ends. Absent: none, or not known. */
  agents?: readonly AgentInput[];
}

/** A run with everything that a replay needs: run object, log and input. */
export interface Recording {
  run: Run;
  events: readonly Entry[];
  replay: RunInput;
}

/** The plan of a run as callers may read it: secrets redacted, `${VAR}` as written. */
export interface RunPlan {
  readonly plan_hash: string;
  /** Whose rights it has. */
  readonly origin: "operator" | "caller";
  readonly plan: JsonObject;
  /** The plan as YAML. */
  readonly text: string;
}

/** What a model is sent in one call of a run. */
export interface ModelRequest {
  /** Number of the call's `provider:request`. A shortened request of the same call has the same number. */
  readonly seq: number;
  readonly session_id: string;
  readonly provider: string;
  readonly iteration: number;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  /** The other fields of the request, such as `max_output_tokens`. */
  readonly options: JsonObject;
  /** Estimated tokens: of each message, of all tools, of both. */
  readonly tokens: { readonly messages: readonly number[]; readonly tools: number; readonly total: number };
  /** What the answer reported; null without an answer. */
  usage: Usage | null;
}

/** Result of a replay. */
export interface ReplayReport {
  equal: boolean;
  first_difference?: Difference;
}

/** A change of one file. */
export interface FileChange {
  /** Real absolute path. */
  path: string;
  /** Base64 of the bytes from before; null: the file did not exist. */
  before: string | null;
  /** Hex SHA-256 of the bytes that were written; null: the file was deleted, or became a link. */
  after_sha256: string | null;
  /** Text of the link that was there in place of a file; null: there was none. */
  link: string | null;
  /** Text of the link that the change made; null: none. */
  after_link: string | null;
  /** Mode of the file from before; null: there was none, or it is not known. */
  mode: number | null;
  /** Number of folders on the way to a new file that did not exist; the change makes them. */
  made_folders: number;
  /** What the module may write that made the change. */
  write: GrantedPermissions["write"];
}

/** A run with changes of files that are not undone. */
export interface ChangedRun {
  readonly run: Run;
  /** Paths of the changed files, as in {@link UndoReport}. */
  readonly paths: readonly string[];
}

/** What an undo has done with the files that a run had changed. */
export interface UndoReport {
  object: "undo";
  run_id: string;
  /** Files that are as before the run; those that it had created are deleted. */
  undone: { path: string; action: "restored" | "deleted" }[];
  /** Files that stay as they are, and why. */
  not_undone: { path: string; reason: string }[];
}

/** The first difference between a recording and its replay. */
export interface Difference {
  /** The difference in words. */
  message: string;
  /** What differs: a tool call, a model call without a recorded answer, the turn's end, its final text. */
  what: "call" | "model_call" | "status" | "output_text";
  session_id: string;
  /** Number of the turn in this run and session. */
  turn: number;
  /** Number of the call in the turn; null for `status` and `output_text`. */
  call: number | null;
  /** A call is `{name, input}`, or null without one. */
  recorded: unknown;
  replayed: unknown;
}

/** A handle of an existing run. */
export interface RunHandle {
  readonly id: string;
  readonly session_id: string;
  /** Returns the current run object. */
  current(): Run;
  /**
   * Resolves when the end of the run is stored, or with `attention` also when it awaits an approval. Does not
   * resolve while the store fails.
   */
  settled(until: "end" | "attention"): Promise<Run>;
}

/** One page of a list. */
export interface Page<T> {
  data: T[];
  next_cursor: string | null;
}

/** Options of paging. */
export interface PageOptions {
  /**
   * Items per page, at least 1. Default: `limits.page_limit` of the policy; maximum: its `max_page_limit`. A
   * page of large items ends earlier, at about 8 MiB.
   */
  limit?: number;
  cursor?: string;
}

/** Operations on runs and sessions. Ids that are unknown or belong to another caller are both `not_found`. */
export interface Runs {
  /**
   * Starts a run. Resolves once its session is initialised or the run is queued.
   * @throws {PreampError} any code that a refused request has, see src/docs/http.md#errors; nothing is stored
   * then.
   */
  create(request: RunRequest, caller: Caller, options?: CreateOptions): Promise<RunHandle>;
  get(caller: Caller, run_id: string): Promise<Run>;
  /** Resolves to the handle of a run, active or ended. */
  handle(caller: Caller, run_id: string): Promise<RunHandle>;
  list(caller: Caller, filter: { session_id?: string; status?: RunStatus } & PageOptions): Promise<Page<Run>>;
  /** Deletes an ended run. @throws {PreampError} `session_busy` while it is active. */
  remove(caller: Caller, run_id: string): Promise<void>;
  /**
   * Cancels a run; returns an ended run unchanged. Commands for a run that another process executes resolve
   * when they are stored.
   */
  cancel(caller: Caller, run_id: string, mode: "graceful" | "immediate"): Promise<Run>;
  /**
   * Sends a steering message. @throws {PreampError} `run_ended`, `not_steerable`, `request_invalid` (blank
   * text).
   */
  steer(caller: Caller, run_id: string, text: string): Promise<Run>;
  approvals(caller: Caller, run_id: string): Promise<Approval[]>;
  /**
   * Answers an approval. @throws {PreampError} `approval_already_resolved`, `approval_expired`,
   * `approval_args_mismatch`, `request_invalid`.
   */
  decide(
    caller: Caller,
    run_id: string,
    approval_id: string,
    answer: { decision: string; reason?: string; args_hash?: string },
  ): Promise<Approval>;
  /** Resolves to at most `limit` stored entries after `after` (default 256), and about 8 MiB of them. */
  events(caller: Caller, run_id: string, options: { after?: number; limit?: number }): Promise<Entry[]>;
  /**
   * Yields pages of entries after `after` as they are stored, up to `run:end`. Ends early when `signal`
   * aborts. `pageEntries` returns the maximum number of entries of the next page, which has about 8 MiB at
   * most; default 256.
   */
  follow(
    caller: Caller,
    run_id: string,
    options: { after?: number; signal?: AbortSignal; pageEntries?: () => number },
  ): AsyncIterable<Entry[]>;
  /**
   * Raises limits of a run that has not ended, up to the policy's; one that waits at such a limit continues.
   * @throws {PreampError} `run_ended`, `policy_refused`, `request_invalid` for a value that raises nothing.
   */
  raiseLimits(
    caller: Caller,
    run_id: string,
    limits: Partial<Pick<RunLimits, RaisableLimit>>,
  ): Promise<Run>;
  /**
   * Puts back the files that an ended run has changed with tools that keep them, sub-agents included. What
   * was put back is not put back again. A run whose process has died is ended first.
   * @throws {PreampError} `session_busy` while the run is active.
   */
  undo(caller: Caller, run_id: string): Promise<UndoReport>;
  /**
   * Yields the runs with changes that are not undone, those with the newest changes first. `session_id`: only
   * runs of this conversation, which may have begun in a session that this one was forked from before a run.
   */
  changedRuns(caller: Caller, filter?: { session_id?: string }): AsyncIterable<ChangedRun>;
  /** Resolves to a recording of a run. @throws {PreampError} `log_expired`, `not_replayable`. */
  recording(caller: Caller, run_id: string): Promise<Recording>;
  /**
   * Replays a run or a recording. @throws {PreampError} `not_replayable`, `log_expired`, or the error of its
   * plan.
   */
  replay(caller: Caller, recorded: string | Recording): Promise<ReplayReport>;
  /** Resolves to the plan of a run. @throws {PreampError} `not_found` when it is no longer stored. */
  plan(caller: Caller, run_id: string): Promise<RunPlan>;
  /**
   * Resolves to what models were sent in the calls of a run, up to now: a page from call number `cursor` on
   * (default: 0), at most `limit` calls, and about 8 MiB; with `seq` that of one `provider:request`. The run
   * is replayed for it up to the end of the page. @throws {PreampError} as {@link replay}.
   */
  requests(
    caller: Caller,
    run_id: string,
    options?: { seq?: number; cursor?: number; limit?: number },
  ): Promise<Page<ModelRequest>>;
  /**
   * Executes a run again after its entry `from_event`, in a new session forked from it; nothing is replayed.
   * @throws {PreampError} `request_invalid` when there is no such entry; also the errors of {@link create}.
   */
  rerun(
    caller: Caller,
    run_id: string,
    from: { from_event: number; plan?: JsonObject | string },
    options?: CreateOptions,
  ): Promise<RunHandle>;
  sessions: Sessions;
}

/** The sessions of a caller. */
export interface Sessions {
  list(caller: Caller, options: PageOptions): Promise<Page<SessionObject>>;
  get(caller: Caller, session_id: string): Promise<SessionObject>;
  /** Deletes a session. @throws {PreampError} `session_busy` while a run of it is active. */
  remove(caller: Caller, session_id: string): Promise<void>;
  /**
   * Resolves to a page of the full history, never compacted: messages from number `cursor` on (default: 0,
   * the first one), at most `limit` of them (default: any number), and about 8 MiB. `Number(next_cursor)` is
   * the `cursor` of the next page.
   */
  messages(
    caller: Caller,
    session_id: string,
    options?: { cursor?: number; limit?: number },
  ): Promise<Page<JsonObject>>;
  /**
   * Creates a session with this one's history up to the end of a turn; the first turn is 1, default: the
   * last one. `before_run`: as the session was before one of its runs.
   * @throws {PreampError} `request_invalid` when there is no such turn or run, or its input is no longer
   * stored.
   */
  fork(
    caller: Caller,
    session_id: string,
    options?: { turn?: number; before_run?: string },
  ): Promise<SessionObject>;
}
