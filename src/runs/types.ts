/** What a run looks like from outside: the run object, approvals, sessions, requests (http.md). Data only. */
import type { ApprovalRequest, Entry } from "../kernel/host.ts";
import type { MountedDescriptors } from "../kernel/mounting/mount_descriptors.ts";
import type { LoggedUsage } from "../kernel/session/session.ts";
import type { ApprovalOption, ContentBlock, JsonObject, Message, Prompt, RunLimits } from "../sdk/types.ts";

/** Where a run stands; exactly one of the last five, once, for ever. */
export type RunStatus =
  | "queued"
  | "running"
  | "awaiting_approval"
  | "completed"
  | "incomplete"
  | "denied"
  | "cancelled"
  | "failed";

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

/** How full the context was at the last request. */
export interface ContextUsage {
  tokens: number;
  budget: number;
  level: number;
  compactions: number;
}

/** The run object (trace.md, section 3): a fold of the log. */
export interface Run {
  id: string;
  object: "run";
  session_id: string;
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
  /** Pending approvals. */
  approvals: Approval[];
  error: { code: string; message: string } | null;
  metadata: JsonObject;
  context: ContextUsage;
  /** Module id → tier. */
  isolation: Record<string, string>;
  created_at: string;
  ended_at: string | null;
  events_url: string;
}

/** An approval as a resource (http.md, Approvals). */
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

/** A conversation. */
export interface SessionObject {
  id: string;
  object: "session";
  parent_id: string | null;
  plan_hash: string | null;
  run_count: number;
  created_at: string;
  last_activity: string;
  /** R4's SessionStatus: how the session stands, and its counters over all of its runs. */
  status: JsonObject;
  metadata: JsonObject;
}

/** What `POST /v1/runs` asks for, after its shape was checked. */
export interface RunRequest {
  prompt: Prompt;
  /** A plan as data or as YAML/JSON text. */
  plan?: JsonObject | string;
  plan_ref?: string;
  lock?: JsonObject;
  session_id?: string;
  limits?: Partial<RunLimits>;
  on_disconnect?: "continue" | "cancel";
  if_busy?: "reject" | "queue" | "cancel";
  metadata?: JsonObject;
}

/** Who asks, and with which rights. */
export interface Caller {
  /** `key:NAME`, `anonymous` (no auth), `terminal` (CLI) or `library`. */
  readonly name: string;
  /** Everything a caller makes lives here; nobody sees another's. */
  readonly namespace: string;
  /** Whose plans these are (trust.md): `operator` for files named on the command line, `caller` for inline plans. */
  readonly origin: "operator" | "caller";
  /** Name of the key's policy in `policies`, if it has one. */
  readonly policy?: string;
}

/** Options of creating a run beside the request. */
export interface CreateOptions {
  /** `Idempotency-Key` of the request and the hash of its body. */
  idempotency?: { key: string; body_hash: string };
  /** Aborted when the client is gone; matters for `on_disconnect: cancel`. */
  signal?: AbortSignal;
  /** Answers approvals instead of a person over HTTP: the terminal, or a default at once. */
  ask?: (
    approval: Approval,
    signal: AbortSignal,
  ) => Promise<{ decision: string; reason?: string | null } | null>;
  /**
   * Called with the run once its session is initialised, before its first step. When it throws, `create` rejects with that
   * error, and nothing is stored or asked of a provider.
   */
  admit?: (run: Run) => void;
  /** The directory that relative sources and `{file}` of the plan are read from; operator plans only. */
  base_url?: string;
}

/** An answer that holds for the like of its question. */
export interface RememberedApproval {
  readonly approval_id: string;
  readonly action: string;
  readonly tool_name: string | null;
  readonly hook_name: string | null;
  /** `session`: for the same prompt; `pattern`: for the same pattern. */
  readonly scope: "session" | "pattern";
  /** The prompt, or the pattern: without known the hash of the exact arguments. */
  readonly holds_for: string;
  readonly allowed: boolean;
  readonly decision: string;
  readonly decided_by: string | null;
}

/** What a sub-agent's turn started from. */
export interface AgentInput {
  session_id: string;
  /** The turn; it tells the turns of one session apart. */
  turn_id: string;
  /** The agent's plan as written: overlay, preferences and filters are in it. */
  plan: JsonObject;
  /** Whether its overlay sets ceilings of its own. */
  limited: boolean;
  /** Whether the session had run before. */
  continued: boolean;
  history: readonly Message[];
  session_state: JsonObject;
  usages: readonly LoggedUsage[];
  remembered?: readonly RememberedApproval[];
  surface: MountedDescriptors;
}

/** What a run started from. */
export interface RunInput {
  version: 1;
  /** The plan as written, and whose it was. */
  plan: JsonObject;
  plan_origin: "operator" | "caller";
  plan_base_url: string | null;
  /** The lock that came with the plan. */
  plan_lock?: JsonObject;
  /** Whether plan or request set `max_cost_usd`. */
  cost_is_asked_for: boolean;
  /** Whether the session had run before. */
  continued: boolean;
  /** The session before the run. */
  history: readonly Message[];
  session_state: JsonObject;
  usages: readonly LoggedUsage[];
  /** Answers that held for later questions of the session. */
  remembered?: readonly RememberedApproval[];
  /** Null while the session is not initialised. */
  surface: MountedDescriptors | null;
  /** The turn that the run goes on with, when it was begun in another run: its prompt is in the history. */
  resume?: { prompt: Prompt; iteration: number };
  /** Turns of sub-agents that have ended, in the order of their ends. Absent: none, or nobody knows. */
  agents?: readonly AgentInput[];
}

/** A run as it can be replayed anywhere: its object, its log, what it started from. */
export interface Recording {
  run: Run;
  events: readonly Entry[];
  replay: RunInput;
}

/** What a replay came to. */
export interface ReplayReport {
  equal: boolean;
  first_difference?: Difference;
}

/** Where two logs part. */
export interface Difference {
  /** Number of the recorded entry. */
  seq: number;
  /** Place in the entry, such as `data.tool_input.n`; empty: the entry itself. */
  path: string;
  recorded: unknown;
  replayed: unknown;
}

/** A run that exists. */
export interface RunHandle {
  readonly id: string;
  readonly session_id: string;
  /** The run as it stands. */
  current(): Run;
  /** Resolves when the run has ended, or (`attention`) already when it waits for a person. */
  settled(until: "end" | "attention"): Promise<Run>;
}

/** One page of a list. */
export interface Page<T> {
  data: T[];
  next_cursor: string | null;
}

/** How to page. */
export interface PageOptions {
  /** From 1; default `limits.page_limit` of the policy, at most its `max_page_limit`. */
  limit?: number;
  cursor?: string;
}

/** Everything that can be done with runs and sessions. Unknown and foreign ids are `not_found` alike. */
export interface Runs {
  /**
   * Starts a run; resolves once its session is initialised (or it is queued).
   * @throws {PreampError} every code of http.md's table up to acceptance; nothing is stored then.
   */
  create(request: RunRequest, caller: Caller, options?: CreateOptions): Promise<RunHandle>;
  get(caller: Caller, run_id: string): Promise<Run>;
  /** Resolves to the handle of a run, whether it runs or has ended. */
  handle(caller: Caller, run_id: string): Promise<RunHandle>;
  list(caller: Caller, filter: { session_id?: string; status?: RunStatus } & PageOptions): Promise<Page<Run>>;
  /** @throws {PreampError} `session_busy` while it runs. */
  remove(caller: Caller, run_id: string): Promise<void>;
  /** An ended run is answered unchanged. */
  cancel(caller: Caller, run_id: string, mode: "graceful" | "immediate"): Promise<Run>;
  /** @throws {PreampError} `run_ended`, `not_steerable`, `request_invalid` (blank text). */
  steer(caller: Caller, run_id: string, text: string): Promise<Run>;
  approvals(caller: Caller, run_id: string): Promise<Approval[]>;
  /** @throws {PreampError} `approval_already_resolved`, `approval_expired`, `approval_args_mismatch`, `request_invalid`. */
  decide(
    caller: Caller,
    run_id: string,
    approval_id: string,
    answer: { decision: string; reason?: string; args_hash?: string },
  ): Promise<Approval>;
  /** The entries after `after` that are there now, at most `limit` of them. */
  events(caller: Caller, run_id: string, options: { after?: number; limit?: number }): Promise<Entry[]>;
  /** Pages of entries after `after`, as they come, until `run:end` was given. Ends early when `signal` aborts. */
  follow(
    caller: Caller,
    run_id: string,
    options: { after?: number; signal?: AbortSignal },
  ): AsyncIterable<Entry[]>;
  /** A run with all that is needed to replay it elsewhere. @throws {PreampError} `log_expired`, `not_replayable`. */
  recording(caller: Caller, run_id: string): Promise<Recording>;
  /** Replays a run, or a recording of one. @throws {PreampError} `not_replayable`, `log_expired`; what its plan fails with. */
  replay(caller: Caller, recorded: string | Recording): Promise<ReplayReport>;
  /**
   * Executes a run anew from behind its entry `from_event`, in a new session that is a fork of its own: everything is live.
   * @throws {PreampError} `request_invalid` when there is no such entry; what {@link create} throws.
   */
  rerun(
    caller: Caller,
    run_id: string,
    from: { from_event: number; plan?: JsonObject | string },
    options?: CreateOptions,
  ): Promise<RunHandle>;
  sessions: {
    list(caller: Caller, options: PageOptions): Promise<Page<SessionObject>>;
    get(caller: Caller, session_id: string): Promise<SessionObject>;
    /** @throws {PreampError} `session_busy` while a run of it runs. */
    remove(caller: Caller, session_id: string): Promise<void>;
    /** The full history, never compacted. */
    messages(caller: Caller, session_id: string): Promise<JsonObject[]>;
    /**
     * Makes a new session with the history of this one up to the end of a turn (from 1; default the last).
     * @throws {PreampError} `request_invalid` for a turn that is not there.
     */
    fork(caller: Caller, session_id: string, options?: { turn?: number }): Promise<SessionObject>;
  };
}
