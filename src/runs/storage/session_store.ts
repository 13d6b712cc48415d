/** Stores sessions between runs: their record and plan, and their state in their log. */
import { modelRefused, workspaceRefused } from "../../plan/model_choice.ts";
import { modeRefused } from "../../plan/modes.ts";
import { PreampError } from "../../sdk/errors.ts";
import { deepFreeze, estimateJsonBytes, type JsonObject, toFrozen } from "../../sdk/json.ts";
import { RecentMap } from "../../sdk/recent_map.ts";
import type { Message } from "../../sdk/types.ts";
import type { Outcome } from "../../kernel/outcome.ts";
import type { Counters } from "../../sdk/run_counters.ts";
import { SessionStatus, type SessionStatusFields } from "../../sdk/session_status.ts";
import { allRecords, type Change, MAX_PAGE_BYTES, type Store, type StoredRecord } from "../../store/store.ts";
import { printableId } from "../../sdk/ids.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { PageLimits, RunnablePlan } from "../ports.ts";
import type { RunFacts, RunOptions } from "../run/run_options.ts";
import type { SessionProjection } from "../run/run_projection.ts";
import {
  type AgentInput,
  type Caller,
  type InitialState,
  type LastRun,
  mayOperate,
  type Page,
  type PageOptions,
  type RunRequest,
  type SavedSession,
  type SavedState,
  type SessionObject,
  type SessionRecord,
} from "../types.ts";
import { EMPTY_STATE, emptyEntry, entryBetween, stateAt } from "./session_log.ts";

export const SESSION_KIND = "session";

/** A sub-agent that is ready to run. */
export interface PlannedChild {
  readonly session_id: string;
  readonly agent: string;
  readonly ready: RunnablePlan;
  /** Whether its overlay sets limits of its own. */
  readonly limited: boolean;
  /** The session before the turn; null for a new one. */
  readonly saved: SavedSession | null;
}

/** State of a sub-agent's session after a turn. */
export interface EndedChild extends PlannedChild {
  readonly parent_id: string;
  readonly session_state: JsonObject;
  /** Outcome of the turn. */
  readonly last_run: LastRun;
  /** Input of the turn; null when it did not begin. */
  readonly input: AgentInput | null;
}

/** Estimated bytes of JSON of the states that are kept for the next turns of their sessions. */
const KEPT_BYTES = 16 * 1024 * 1024;

/** The state of a session at a position of its log, which never changes. */
interface KeptState {
  readonly position: number;
  readonly state: SavedState;
  /** Estimated bytes of its JSON. */
  readonly bytes: number;
}

export class SessionStore {
  readonly #store: Store;
  /** Session id → its state when it was last read: a turn reads what is new since. */
  readonly #kept = new RecentMap<KeptState>({ max_size: KEPT_BYTES, sizeOf: ({ bytes }) => bytes });

  constructor(store: Store) {
    this.#store = store;
  }

  /** Resolves to a session; to null for an unknown id and for another caller's session. */
  async find(caller: Caller, id: string): Promise<SavedSession | null> {
    const record = await this.#find(caller, id);
    return record && await this.#withState(record);
  }

  async #find({ namespace }: Caller, id: string): Promise<FoundSession | null> {
    const record = await this.#store.get(SESSION_KIND, id);
    if (record?.namespace !== namespace) return null;
    return { version: record.version, ...record.value as unknown as StoredSession };
  }

  /** Resolves to a session. @throws {PreampError} `not_found` where {@link find} resolves to null. */
  async load(caller: Caller, id: string): Promise<SavedSession> {
    return await this.find(caller, id) ?? notFound(id);
  }

  /** Resolves to a session without its state. @throws {PreampError} `not_found` */
  async record(caller: Caller, id: string): Promise<StoredSession> {
    return await this.#find(caller, id) ?? notFound(id);
  }

  /** Resolves to a session with its state. `before`: the session when it was last read. */
  async #withState(found: FoundSession, before?: SavedSession): Promise<SavedSession> {
    const { messages, ...record } = found;
    if (Array.isArray(messages)) {
      const { session_state = {}, usages = [] } = found as Partial<SavedState>;
      return { ...record, history: messages, session_state, usages, position: null };
    }
    const { object: { id }, position = 0 } = record;
    const known = before?.position ?? null;
    const kept = this.#kept.get(id);
    const from = kept && kept.position <= position
      ? kept
      : before && known !== null
      ? { state: before, position: known }
      : undefined;
    const read = await stateAt(this.#store, id, position, from);
    if (read === null) throw new Error(`Cannot read session "${id}": its log has not ${position} entries`);
    const { session_state, usages, remembered } = read;
    const history = read.history.map((message) => toFrozen(message) as Message); // the kernel copies no such one
    const state = { session_state, usages, ...(remembered ? { remembered } : {}), history };
    if (position !== kept?.position) {
      this.#kept.set(id, { position, state, bytes: estimateJsonBytes(state) });
    }
    return { ...record, position, ...state, session_state: { ...session_state } };
  }

  /**
   * Loads the session of a run again, because another run may have ended since it was loaded.
   * @throws {PreampError} `session_conflict` when its plan, which the run uses, was replaced meanwhile.
   */
  async reload(caller: Caller, request: RunRequest, before: SavedSession): Promise<SavedSession> {
    const { id, plan_hash } = before.object;
    const now = await this.#find(caller, id) ?? notFound(id);
    if (now.version === before.version) return before;
    if (hasOwnPlan(request) || now.object.plan_hash === plan_hash) return await this.#withState(now, before);
    throw new PreampError(
      "session_conflict",
      `Cannot start a run in session "${id}": its plan was replaced meanwhile`,
    );
  }

  /** Resolves to the id of a session and those of all its sub-agents' sessions, nested ones included. */
  async familyOf(caller: Caller, id: string): Promise<string[]> {
    const family = [id];
    for (const spawned_by of family) {
      const { namespace } = caller;
      for await (
        const { key } of allRecords(this.#store, SESSION_KIND, { namespace, where: { spawned_by } })
      ) {
        if (!family.includes(key)) family.push(key);
      }
    }
    return family;
  }

  async remove(ids: readonly string[]): Promise<void> {
    for (const id of ids) this.#kept.delete(id);
    await this.#store.commit(ids.flatMap(sessionDeletions));
  }
}

/** Returns the changes that delete a session. */
export function sessionDeletions(key: string): Change[] {
  return [{ delete: { kind: SESSION_KIND, key } }, { deleteLog: key }];
}

function notFound(id: string): never {
  throw new PreampError("not_found", `Cannot find session "${printableId(id)}"`);
}

/** The record of a session as stored. */
export interface StoredSession extends SessionRecord {
  /**
   * Number of messages. An older version stored the messages themselves, and the other fields of the state;
   * with a number it can list the session, and fails to continue it.
   */
  readonly messages: { readonly length: number };
  /** Entries of the session's log; absent in a record of an older version. */
  readonly position?: number;
}

/** A record that was read. */
type FoundSession = StoredSession & Pick<SavedSession, "version">;

/** Returns the position of a session's state in its log, also in the log that it is about to get. */
export function positionOf(saved: Pick<SavedSession, "position"> | null): number {
  return saved === null ? 0 : saved.position ?? 1;
}

/** What {@link sessionChanges} stores with a session. */
interface SessionChange {
  /** The session's state in its log; for a session without one, it is the first entry. */
  readonly before: SavedState;
  /** Absent while a run of the session has not ended. */
  readonly expires_ms?: number;
}

/** Returns the changes that store a session, and in its log what has changed. */
export function sessionChanges(
  { namespace }: Caller,
  saved: SavedSession,
  { before, expires_ms }: SessionChange,
): Change[] {
  const { history, session_state: _, usages: __, remembered: ___, version: ____, ...record } = saved;
  const { spawned, object: { id: key, parent_id } } = record;
  const after = saved.position ?? 0;
  const first = saved.position === null ? entryBetween(EMPTY_STATE, before, 1) ?? emptyEntry(1) : null;
  const entries = first ? [first] : [];
  const last = entryBetween(before, saved, after + entries.length + 1);
  if (last) entries.push(last);
  const position = after + entries.length;
  const value: StoredSession = { ...record, messages: { length: history.length }, position };
  const put: StoredRecord = {
    kind: SESSION_KIND,
    key,
    namespace,
    value: value as unknown as JsonObject,
    ...(spawned && parent_id ? { index: { spawned_by: parent_id } } : {}),
    ...(expires_ms === undefined ? {} : { expires_ms }),
  };
  if (position === 0) return [{ put }];
  // also without an entry: the commit fails if the log is not what the record says
  return [{ put }, { append: key, after, entries }, { expireLog: key, at_ms: expires_ms ?? null }];
}

/** Returns the store's list options of a page. */
export function listOptions(
  caller: Caller,
  options: PageOptions,
  { page_limit, max_page_limit }: PageLimits,
): { namespace: string; limit: number; cursor?: string } {
  const limit = Math.min(max_page_limit, Math.max(1, options.limit ?? page_limit));
  return {
    namespace: caller.namespace,
    limit,
    ...(options.cursor === undefined ? {} : { cursor: options.cursor }),
  };
}

/** Returns a page of a list in memory, from number `cursor` on; it ends at about 8 MiB. */
export function pageOf<T>(
  items: readonly T[],
  { cursor = 0, limit = Infinity }: { cursor?: number; limit?: number },
): Page<T> {
  let end = cursor;
  for (let bytes = 0; end < items.length && end < cursor + limit && bytes < MAX_PAGE_BYTES; end++) {
    bytes += estimateJsonBytes(items[end]);
  }
  return { data: items.slice(cursor, end), next_cursor: end < items.length ? String(end) : null };
}

/** Returns the resource of a session that is stored. `live`: the session in its active run. */
export function withStatus(
  { object, messages, counters, last_run }: Pick<
    StoredSession,
    "object" | "messages" | "counters" | "last_run"
  >,
  live?: SessionProjection,
): SessionObject {
  const { last_activity } = object;
  const is_running = live !== undefined || (counters !== undefined && last_run === undefined);
  const status = statusFrom(
    object,
    live?.counters ?? counters,
    live?.history.length ?? messages.length,
    {
      status: is_running ? "running" : last_run?.status ?? "completed",
      ended_at: is_running ? null : last_activity,
      last_activity,
      last_error: is_running ? null : last_run?.error ?? null,
    },
  );
  return { ...object, status: status.toDict() };
}

/** Returns whether a request has a plan, and does not use that of its session. */
export function hasOwnPlan({ plan, plan_ref }: RunRequest): boolean {
  return plan !== undefined || plan_ref !== undefined;
}

/** Returns the request with the session's plan, unless the request has a plan of its own. */
export function withSessionPlan(request: RunRequest, saved: SavedSession | null): RunRequest {
  if (!saved || hasOwnPlan(request)) return request;
  const { plan, plan_lock, plan_workspace } = saved;
  return {
    ...(plan_lock ? { lock: plan_lock } : {}),
    ...(plan_workspace === undefined ? {} : { workspace: plan_workspace }),
    ...request,
    plan,
  };
}

/**
 * Returns the caller with the rights of the plan: a session's plan keeps the rights it was created with.
 *
 * @throws {PreampError} `policy_refused` for a caller that chooses the model, the mode or the workspace of
 * an operator's plan.
 */
export function callerOfPlan(caller: Caller, request: RunRequest, saved: SavedSession | null): Caller {
  if (!saved || hasOwnPlan(request)) return caller;
  const { plan_origin } = saved;
  if (plan_origin === "operator" && !mayOperate(caller)) {
    if (request.model !== undefined) throw modelRefused("the session's plan");
    if (request.workspace !== undefined) throw workspaceRefused();
    if (request.mode !== undefined) throw modeRefused("the session's plan");
  }
  return { ...caller, origin: plan_origin };
}

/** Returns the owner of the plan that a request names: the demo plan on a chosen model is the caller's. */
export function originOfPlan(
  { plan, plan_ref, model }: Pick<RunRequest, "plan" | "plan_ref" | "model">,
  caller: Pick<Caller, "origin">,
): Caller["origin"] {
  return plan_ref !== undefined || (plan === undefined && model === undefined) ? "operator" : caller.origin;
}

const NEW_SESSION: InitialState = deepFreeze({ continued: false, ...EMPTY_STATE });

/** Returns the state that a session gives to its next run; `saved` is null for a new session. */
export function initialState(saved: SavedSession | null): InitialState {
  if (saved === null) return NEW_SESSION;
  const { history, session_state, usages, remembered } = saved;
  const state = { continued: true, history, session_state, usages };
  return remembered ? { ...state, remembered } : state;
}

/** What a session stores of its plan. */
type StoredPlan = Pick<
  SavedSession,
  "plan" | "plan_origin" | "plan_base_url" | "plan_lock" | "plan_workspace"
>;

/** Returns the plan of a run as its session stores it: that of the request, or that of the session. */
export function planToStore({ saved, ready, request, caller }: RunOptions): StoredPlan {
  const known = hasOwnPlan(request) ? null : saved;
  const { mode } = request;
  const stored = {
    plan: !known ? ready.compiled.written : mode === undefined ? known.plan : { ...known.plan, mode },
    plan_origin: known ? known.plan_origin : originOfPlan(request, caller),
    plan_base_url: known ? known.plan_base_url : ready.base_url ?? null,
  };
  const plan_lock = known ? known.plan_lock : request.lock;
  const plan_workspace = request.workspace ?? known?.plan_workspace;
  return {
    ...stored,
    ...(plan_lock ? { plan_lock } : {}),
    ...(plan_workspace === undefined ? {} : { plan_workspace }),
  };
}

/** Returns the session after a run. `position`: of its state before the run. */
export function savedSession(run: RunFacts, now_ms: number, position: number | null): SavedSession {
  const { session_id: id, created_at, options, last_run, session: { session_state } } = run;
  const { saved, ready, request } = options;
  const keeps_plan = !hasOwnPlan(request) && request.mode === undefined;
  const { plan_hash } = saved && keeps_plan ? saved.object : ready.compiled;
  const metadata = run.secrets.redactValues(request.metadata ?? {});
  const first = { id, title: run.projection.title, parent_id: null, plan_hash, created_at, metadata };
  return {
    ...sessionAfter(run, saved, first, session_state, now_ms),
    position,
    ...planToStore(options),
    ...(last_run ? { last_run } : {}),
    ...(saved?.spawned ? { spawned: saved.spawned } : {}),
  };
}

/** Returns a sub-agent's session after its turn. */
export function savedChild(run: RunFacts, child: EndedChild, now_ms: number): SavedSession {
  const { session_id: id, parent_id, agent, ready, limited, saved, session_state, last_run } = child;
  const { compiled: { written: plan, plan_hash }, agents, base_url: plan_base_url = null } = ready;
  const created_at = timestamp(now_ms);
  const first = { id, title: agent, parent_id, plan_hash, created_at, metadata: { agent } };
  const { plan_lock, plan_workspace } = planToStore(run.options);
  return {
    ...sessionAfter(run, saved, first, session_state, now_ms),
    plan,
    plan_origin: agents?.origin ?? "caller", // least trust if unknown
    plan_base_url,
    ...(plan_lock ? { plan_lock } : {}),
    ...(plan_workspace === undefined ? {} : { plan_workspace }),
    last_run,
    spawned: { agent, limited },
  };
}

/**
 * Returns a session with the state that the log of a run contains. `first`: the fields that its first run
 * gives it.
 */
function sessionAfter(
  { projection, secrets }: RunFacts,
  saved: SavedSession | null,
  first: Omit<SavedSession["object"], "object" | "run_count" | "last_activity">,
  session_state: JsonObject,
  now_ms: number,
): Omit<SavedSession, keyof StoredPlan> {
  const { title, parent_id, created_at, metadata } = saved?.object ?? first;
  const { history, usages, counters, remembered } = projection.of(first.id);
  return {
    object: {
      id: first.id,
      object: "session",
      ...(title === undefined ? {} : { title }),
      parent_id,
      plan_hash: first.plan_hash,
      run_count: (saved?.object.run_count ?? 0) + 1,
      created_at,
      last_activity: timestamp(now_ms),
      metadata,
    },
    position: saved === null ? 0 : saved.position,
    version: 0,
    history: [...history],
    session_state: secrets.redactValues(session_state),
    usages: [...usages],
    counters: { ...counters },
    ...(remembered.length > 0 ? { remembered } : {}),
  };
}

/** Returns the state of a session after a run. One that reached a limit or was denied counts as completed. */
export function lastRunOf({ status, error }: Pick<Outcome, "status" | "error">): LastRun {
  const ended = status === "failed" || status === "cancelled" ? status : "completed";
  return { status: ended, error: error && { ...error } };
}

/** Returns the status of a session from its counters. */
export function statusFrom(
  session: { id: string; created_at: string },
  counters: Counters | undefined,
  total_messages: number,
  rest: Pick<SessionStatusFields, "status" | "ended_at" | "last_activity" | "last_error">,
): SessionStatus {
  const { tool_invocations = 0, tool_successes = 0, total_input_tokens = 0, total_output_tokens = 0 } =
    counters ?? {};
  return SessionStatus({
    session_id: session.id,
    started_at: session.created_at,
    total_messages,
    tool_invocations,
    tool_successes,
    // calls that were not executed count as neither success nor failure
    tool_failures: tool_invocations - tool_successes,
    total_input_tokens,
    total_output_tokens,
    cost_usd: counters?.cost_usd ?? null,
    ...rest,
  });
}
