/** Computes the run object, and each session's history, from the entries of the log. */
import type { ApprovalMatch, Entry, RememberedAnswer } from "../../kernel/host.ts";
import type { UsedLimits } from "../../kernel/run_limits.ts";
import type { Session } from "../../kernel/session.ts";
import type { LoggedUsage } from "../../kernel/session_parts.ts";
import type { Outcome } from "../../kernel/outcome.ts";
import { count, type Counters, emptyCounters } from "../../sdk/run_counters.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { sentTokens } from "../../sdk/messages.ts";
import type { Message, RunLimits } from "../../sdk/types.ts";
import { findApproval, storeApproval } from "./approval_memory.ts";
import type {
  Approval,
  ContextUsage,
  InitialState,
  RememberedApproval,
  Run,
  RunStatus,
  SavedState,
  Warning,
} from "../types.ts";

/** Maximum number of usages kept for the next run; more requests between two compactions do not matter. */
export const MOST_USAGES = 2048;

/** Fields of a run object that are in no entry. */
export interface InitialRun extends Pick<Run, "id" | "session_id" | "created_at" | "events_url"> {
  readonly warnings: readonly Warning[];
}

/** State of a session before this run. */
export interface SessionBefore extends Partial<Omit<SavedState, "history">> {
  readonly history: readonly Message[];
  readonly counters?: Counters | undefined;
}

/** What is known of one session of a run. The object is live: later entries change it. */
export class SessionProjection {
  history: Message[];
  /** Usage of the requests since the last compaction, oldest first. */
  usages: LoggedUsage[];
  remembered: readonly RememberedApproval[];
  /** Counters over all of the session's runs. */
  readonly counters: Counters;

  constructor({ history, usages = [], remembered = [], counters }: SessionBefore) {
    this.history = [...history];
    this.usages = [...usages];
    this.remembered = remembered;
    this.counters = counters ? { ...counters } : emptyCounters();
  }
}

/** Computes the projection entry by entry; `run` is the run object as of the last entry. */
export class RunProjection {
  readonly #initial: InitialRun;
  readonly #counters = emptyCounters();
  readonly #warnings: Warning[];
  readonly #approvals: Approval[] = [];
  readonly #isolation: Record<string, string> = {};
  /** The run's own session. */
  #own: SessionProjection;
  /** The sessions of its sub-agents. */
  #agents: Map<string, SessionProjection> | null = null;
  /** Questions that were recorded as answered by a remembered approval. */
  #answered_from_memory: string[] = [];
  #status: RunStatus = "queued";
  /** Fields of `run:start`; its other fields are not in the run object. */
  #start:
    & Pick<Run, "plan_hash" | "lock_hash" | "limits" | "metadata">
    & Partial<Pick<Run, "forked_from" | "title">> = NOT_STARTED;
  /** Context usage at the last request; see {@link recordContextUsage}. */
  context: ContextUsage = { tokens: 0, budget: 0, level: 0, compactions: 0 };
  #ended: Run | null = null;

  /** @param before The run's own session. Default: it is new. */
  constructor(initial: InitialRun, before: SessionBefore = NEW_SESSION) {
    this.#initial = initial;
    this.#warnings = [...initial.warnings];
    this.#own = new SessionProjection(before);
  }

  /** Returns the projection of a session of this run. */
  of(session_id: string): SessionProjection {
    if (session_id === this.#initial.session_id) return this.#own;
    let session = this.#agents?.get(session_id);
    if (!session) this.#set(session_id, session = new SessionProjection(NEW_SESSION));
    return session;
  }

  #set(session_id: string, session: SessionProjection): void {
    if (session_id === this.#initial.session_id) this.#own = session;
    else (this.#agents ??= new Map()).set(session_id, session);
  }

  /** Adds the next entry. */
  add(entry: Entry): void {
    if (entry.event === "content_block:delta") return;
    const session = this.of(entry.session_id);
    count(this.#counters, entry);
    count(session.counters, entry);
    const { data } = entry;
    switch (entry.event) {
      case "run:start":
        this.#start = data as unknown as Run; // written by the run
        this.#status = data.status as RunStatus;
        break;
      case "run:limits":
        this.#start = { ...this.#start, limits: data.limits as unknown as RunLimits }; // written by the run
        break;
      case "run:status":
        this.#status = data.status as RunStatus;
        break;
      case "run:end":
        this.#ended = data.run as unknown as Run;
        break;
      case "module:mounted":
        this.#isolation[String(data.module_id)] = String(data.isolation);
        break;
      case "module:skipped":
        this.warn({ code: `module_${data.reason}`, message: skippedText(data) });
        break;
      case "approval:required":
        this.#approvals.push(approvalOf(entry));
        break;
      case "approval:granted":
      case "approval:denied":
        this.#decide(session, entry);
        break;
      case "context:message":
        session.history.push(data.message as unknown as Message);
        break;
      case "context:reset":
        session.history = [...data.messages as Message[]];
        session.usages = [];
        break;
      case "context:compaction": // earlier usage is in the state that the context stores with the compaction
        session.usages = [];
        break;
      case "provider:response":
        recordUsage(session, data);
        break;
    }
  }

  #decide(session: SessionProjection, entry: Entry): void {
    if (entry.data.remembered === true) {
      return void this.#answered_from_memory.push(questionKey(entry.session_id, entry.data));
    }
    const approval = this.#approvals.find(({ id }) => id === entry.data.approval_id);
    if (!approval) return;
    const { decision, reason, decided_by } = entry.data;
    approval.status = decision === "timeout"
      ? "expired"
      : entry.event === "approval:granted"
      ? "granted"
      : "denied";
    approval.decision = String(decision);
    approval.reason = reason as string | null;
    approval.decided_by = decided_by as string | null;
    approval.decided_at = entry.ts;
    session.remembered = storeApproval(session.remembered, approval, entry);
  }

  /** Returns the remembered answer to a question of a session, or null. */
  answerTo(question: ApprovalMatch, session_id: string): RememberedAnswer | null {
    const answer = findApproval(this.of(session_id).remembered, question);
    return answer &&
      { ...answer, recorded: this.#answered_from_memory.includes(questionKey(session_id, question)) };
  }

  /** Sets a session's state to that before this run, or before this turn. */
  continueFrom(session_id: string, before: SessionBefore): void {
    this.#set(session_id, new SessionProjection(before));
  }

  /** Approvals of this run, oldest first. */
  get approvals(): Approval[] {
    return [...this.#approvals];
  }

  /** Used part of the run's limits, except time. */
  get used(): Omit<UsedLimits, "duration_ms"> {
    const { turn_count, tool_invocations, total_tokens, cost_usd } = this.#counters;
    return { model_calls: turn_count, tool_calls: tool_invocations, tokens: total_tokens, cost_usd };
  }

  /** The beginning of the run's prompt; empty before its first entry, and for a run of an older version. */
  get title(): string {
    return this.#start.title ?? "";
  }

  get status(): RunStatus {
    return this.#ended?.status ?? this.#status;
  }

  /** Adds a warning. Duplicates are dropped: modules are mounted again for sub-agents and after a crash. */
  warn(warning: Warning): void {
    const { code, message } = warning;
    if (this.#warnings.some((known) => known.code === code && known.message === message)) return;
    this.#warnings.push(warning);
  }

  /** The run object as of the last entry. */
  get run(): Run {
    return this.#ended ?? this.#compose(null, null);
  }

  /** Returns the run object at the end: the data of `run:end`. */
  end(outcome: Outcome, ended_at: string): Run {
    return this.#compose(outcome, ended_at);
  }

  #compose(outcome: Outcome | null, ended_at: string | null): Run {
    const { id, session_id, created_at } = this.#initial;
    const { limits, plan_hash, lock_hash, metadata, forked_from = null } = this.#start;
    const counters = this.#counters;
    return {
      id,
      object: "run",
      session_id,
      title: this.title,
      status: outcome?.status ?? this.#status,
      stop_reason: outcome?.stop_reason ?? null,
      output_text: outcome?.output_text ?? "",
      output: outcome?.output ?? [],
      turn_count: counters.turn_count,
      tool_call_count: counters.tool_invocations,
      usage: {
        input_tokens: counters.total_input_tokens,
        output_tokens: counters.total_output_tokens,
        total_tokens: counters.total_tokens,
        cache_read_tokens: counters.cache_read_tokens,
        cache_write_tokens: counters.cache_write_tokens,
        cost_usd: counters.cost_usd,
      },
      limits,
      plan_hash,
      lock_hash,
      warnings: [...this.#warnings],
      approvals: this.#approvals.filter(({ status, decision, limit }) =>
        status === "pending" ? !outcome : decision === "unanswered" && limit === undefined
      ).map((approval) => ({ ...approval })),
      error: outcome?.error ?? null,
      metadata,
      forked_from,
      context: {
        ...this.context,
        level: this.context.level || counters.compaction_level,
        compactions: counters.compactions,
      },
      isolation: { ...this.#isolation },
      created_at,
      ended_at,
      events_url: this.#initial.events_url,
    };
  }
}

const NEW_SESSION: SessionBefore = { history: [] };
const NOT_STARTED = { plan_hash: "", lock_hash: null, limits: {} as RunLimits, metadata: {} };

function recordUsage({ history, usages }: SessionProjection, { usage, inner }: JsonObject): void {
  if (inner === true) return; // a call by a hook or a tool: it does not carry the history
  const input_tokens = sentTokens(usage);
  if (input_tokens === 0) return;
  usages.push({ messages: history.length, input_tokens });
  if (usages.length > MOST_USAGES) usages.shift();
}

function questionKey(
  session_id: string,
  { tool_call_id, args_hash }: { tool_call_id?: unknown; args_hash?: unknown },
): string {
  return `${session_id} ${tool_call_id} ${args_hash}`;
}

/** Returns the approval resource of an `approval:required` entry. */
function approvalOf(entry: Entry): Approval {
  const { approval_id, ...fields } = entry.data;
  return {
    id: String(approval_id),
    object: "approval",
    run_id: entry.run_id,
    session_id: entry.session_id,
    ...fields as unknown as Omit<
      Approval,
      "id" | "object" | "run_id" | "session_id" | "status" | "created_at"
    >,
    status: "pending",
    created_at: entry.ts,
  };
}

/** Returns the projection of a recorded run before its first entry. Its session was empty by default. */
export function projectionOf(
  run: Run,
  { history = [], usages = [], remembered = [] }: Partial<InitialState> = {},
): RunProjection {
  return new RunProjection({ ...run, warnings: [] }, { history, usages, remembered });
}

/**
 * Records the context manager's status in the projection. Without one, records what the kernel measured.
 * Returns a promise that never rejects when the context manager is sandboxed.
 *
 * @param onError Called when the status could not be read.
 */
export function recordContextUsage(
  session: Session,
  projection: RunProjection,
  onError: (error: unknown) => void,
): Promise<void> | void {
  const capability = session.getCapability("context.status");
  const record = (status: unknown) => {
    if (isObject(status)) projection.context = contextUsageOf(status);
  };
  const fail = (error: unknown) => {
    onError(error);
    projection.context = session.context_usage;
  };
  try {
    const status: unknown = typeof capability === "function" ? capability() : session.context_usage;
    if (status instanceof Promise) return status.then(record).catch(fail);
    record(status);
  } catch (error) {
    fail(error);
  }
}

/** Returns the numbers of a context manager's status. */
function contextUsageOf(status: JsonObject): ContextUsage {
  const number = (value: unknown) => typeof value === "number" && Number.isFinite(value) ? value : 0;
  return {
    tokens: number(status.tokens),
    budget: number(status.budget),
    level: number(status.level),
    compactions: number(status.compactions),
  };
}

/** Returns the warning for the data of `module:skipped`. */
export function skippedText({ module_id, message }: JsonObject): string {
  return `Module "${module_id}" was skipped: ${message}`;
}
