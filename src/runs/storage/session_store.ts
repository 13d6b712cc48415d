/** Stores sessions between runs: history, module state and plan. */
import { modelRefused } from "../../plan/model_choice.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject, Message } from "../../sdk/types.ts";
import type { LoggedUsage } from "../../kernel/session/session_parts.ts";
import type { Counters } from "../../sdk/session_status.ts";
import type { Change, Store } from "../../store/store.ts";
import { printableId } from "../../process/ids.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { PageLimits, RunnablePlan } from "../ports.ts";
import type { RunProjection } from "../run/run_projection.ts";
import { type LastRun, statusFrom } from "../session_status.ts";
import type {
  AgentInput,
  Caller,
  Page,
  PageOptions,
  RememberedApproval,
  RunRequest,
  SessionObject,
} from "../types.ts";

const KIND = "session";

/** A session as stored. */
export interface SavedSession {
  object: Omit<SessionObject, "status">;
  messages: readonly Message[];
  session_state: JsonObject;
  /** Usage of the requests since the last compaction; absent in sessions of older versions. */
  usages?: readonly LoggedUsage[];
  /** Counters over all runs; absent in sessions of older versions. */
  counters?: Counters;
  /** Outcome of the last run; absent while a run is active and in sessions of older versions. */
  last_run?: LastRun;
  /** Remembered approvals; absent: none. */
  remembered?: readonly RememberedApproval[];
  /** The plan as written, and its owner. Continued runs use it with the same rights. */
  plan: JsonObject;
  plan_origin: "operator" | "caller";
  plan_base_url: string | null;
  /** Set on a sub-agent's session: its name, and whether its overlay sets limits of its own. */
  spawned?: { agent: string; limited: boolean };
  /** The lock that came with the plan; it applies to every run. */
  plan_lock?: JsonObject;
}

/** A session with an active run. */
export interface LiveSession {
  countersOf(session_id: string): Counters;
  historyOf(session_id: string): readonly Message[];
}

/** The members of a run that its session is saved from. */
export interface FinishedRun {
  readonly session_id: string;
  readonly created_at: string;
  readonly options: {
    readonly saved: SavedSession | null;
    readonly ready: RunnablePlan;
    readonly request: RunRequest;
    readonly caller: Caller;
  };
  readonly session_state: JsonObject;
  readonly last_run: LastRun | null;
  readonly projection: Pick<RunProjection, "historyOf" | "usagesOf" | "rememberedOf" | "countersOf">;
  withoutSecrets<T extends object>(data: T): T;
}

/** State of a sub-agent's session after a turn. */
export interface EndedChild {
  readonly session_id: string;
  readonly parent_id: string;
  readonly agent: string;
  readonly ready: RunnablePlan;
  /** Whether its overlay sets limits of its own. */
  readonly limited: boolean;
  /** The session before the turn; null for a new one. */
  readonly saved: SavedSession | null;
  readonly messages: readonly Message[];
  readonly session_state: JsonObject;
  readonly usages: readonly LoggedUsage[];
  readonly remembered: readonly RememberedApproval[];
  /** Outcome of the turn. */
  readonly last_run: LastRun;
  /** Input of the turn; null when it did not begin. */
  readonly input: AgentInput | null;
}

/** Loads, lists and deletes sessions. */
export class SessionStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Loads a session. @throws {PreampError} `not_found` for an unknown id and for another caller's session.
   */
  async load(caller: Caller, id: string): Promise<SavedSession> {
    const record = await this.#store.get(KIND, id);
    if (!record || record.namespace !== caller.namespace) throw notFound(id);
    return record.value as unknown as SavedSession;
  }

  /**
   * Loads the session of a run again, because another run may have ended since it was loaded.
   * @throws {PreampError} `session_conflict` when its plan, which the run uses, was replaced meanwhile.
   */
  async reload(caller: Caller, request: RunRequest, before: SavedSession): Promise<SavedSession> {
    const { id, plan_hash } = before.object;
    const now = await this.load(caller, id);
    const own_plan = request.plan !== undefined || request.plan_ref !== undefined;
    if (own_plan || now.object.plan_hash === plan_hash) return now;
    throw new PreampError(
      "session_conflict",
      `Cannot start a run in session "${id}": its plan was replaced meanwhile`,
    );
  }

  /** Returns the change that stores a session. */
  put(caller: Caller, saved: SavedSession): Change {
    return {
      put: {
        kind: KIND,
        key: saved.object.id,
        namespace: caller.namespace,
        value: saved as unknown as JsonObject,
        ...(saved.spawned && saved.object.parent_id ? { index: { spawned_by: saved.object.parent_id } } : {}),
      },
    };
  }

  /** Lists a page of sessions. @param live Returns a session's active run. */
  async list(
    caller: Caller,
    options: PageOptions,
    limits: PageLimits,
    live: (session_id: string) => LiveSession | undefined,
  ): Promise<Page<SessionObject>> {
    const { records, next_cursor } = await this.#store.list(KIND, listOptions(caller, options, limits));
    const data = records.map((record) =>
      withStatus(record.value as unknown as SavedSession, live(record.key))
    );
    return { data, next_cursor };
  }

  /** Resolves to the id of a session and those of all its sub-agents' sessions, nested ones included. */
  async familyOf(caller: Caller, id: string): Promise<string[]> {
    const family = [id];
    for (const member of family) {
      let cursor: string | undefined;
      do {
        const page = await this.#store.list(KIND, {
          namespace: caller.namespace,
          limit: 1000,
          ...(cursor === undefined ? {} : { cursor }),
          where: { spawned_by: member },
        });
        for (const { key } of page.records) if (!family.includes(key)) family.push(key);
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined);
    }
    return family;
  }

  async remove(ids: readonly string[]): Promise<void> {
    await this.#store.commit(ids.map((key) => ({ delete: { kind: KIND, key } })));
  }
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

function notFound(id: string): PreampError {
  return new PreampError("not_found", `Cannot find session "${printableId(id)}"`);
}

/** Returns the session resource. `live`: the session's active run. */
export function withStatus(
  { object, messages, counters, last_run }: SavedSession,
  live?: LiveSession,
): SessionObject {
  const { id, last_activity } = object;
  const is_running = live !== undefined || (counters !== undefined && last_run === undefined);
  const status = statusFrom(
    object,
    live?.countersOf(id) ?? counters,
    live?.historyOf(id).length ?? messages.length,
    {
      status: is_running ? "running" : last_run?.status ?? "completed",
      ended_at: is_running ? null : last_activity,
      last_activity,
      last_error: is_running ? null : last_run?.error ?? null,
    },
  );
  return { ...object, status: status.toDict() };
}

/** Returns the request with the session's plan, unless the request has a plan of its own. */
export function withSessionPlan(request: RunRequest, saved: SavedSession | null): RunRequest {
  return saved && request.plan === undefined && request.plan_ref === undefined
    ? { ...(saved.plan_lock ? { lock: saved.plan_lock } : {}), ...request, plan: saved.plan }
    : request;
}

/**
 * Returns the caller with the rights of the plan: a session's plan keeps the rights it was created with.
 *
 * @throws {PreampError} `policy_refused` for a caller that chooses the model of an operator's plan.
 */
export function callerOfPlan(caller: Caller, request: RunRequest, saved: SavedSession | null): Caller {
  if (!saved || request.plan !== undefined || request.plan_ref !== undefined) return caller;
  const { plan_origin } = saved;
  if (request.model !== undefined && plan_origin === "operator" && caller.origin === "caller") {
    throw modelRefused("the session's plan");
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

/** Returns the session as stored after a run. */
export function savedSession(run: FinishedRun, now_ms: number): SavedSession {
  const { session_id, projection } = run;
  const { saved, ready, request, caller } = run.options;
  const at = timestamp(now_ms);
  const own_plan = saved === null || hasOwnPlan(run);
  const plan_lock = lockOf(run);
  return {
    object: {
      id: session_id,
      object: "session",
      parent_id: saved?.object.parent_id ?? null,
      plan_hash: own_plan ? ready.compiled.plan_hash : saved.object.plan_hash,
      run_count: (saved?.object.run_count ?? 0) + 1,
      created_at: saved?.object.created_at ?? run.created_at,
      last_activity: at,
      metadata: saved?.object.metadata ?? run.withoutSecrets(request.metadata ?? {}),
    },
    messages: [...projection.historyOf(session_id)],
    session_state: run.session_state,
    usages: [...projection.usagesOf(session_id)],
    ...rememberedIn(projection.rememberedOf(session_id)),
    counters: { ...projection.countersOf(session_id) },
    ...(run.last_run ? { last_run: run.last_run } : {}),
    plan: own_plan ? ready.compiled.written : saved.plan,
    ...(plan_lock ? { plan_lock } : {}),
    plan_base_url: own_plan ? ready.base_url ?? null : saved.plan_base_url,
    plan_origin: own_plan ? originOfPlan(request, caller) : saved.plan_origin,
    ...(saved?.spawned ? { spawned: saved.spawned } : {}),
  };
}

/** Returns a sub-agent's session as stored after its turn. */
export function savedChild(run: FinishedRun, child: EndedChild, now_ms: number): SavedSession {
  const { session_id, parent_id, agent, ready, limited, saved } = child;
  const at = timestamp(now_ms);
  const plan_lock = lockOf(run);
  return {
    object: {
      id: session_id,
      object: "session",
      parent_id,
      plan_hash: ready.compiled.plan_hash,
      run_count: (saved?.object.run_count ?? 0) + 1,
      created_at: saved?.object.created_at ?? at,
      last_activity: at,
      metadata: saved?.object.metadata ?? { agent },
    },
    messages: [...child.messages],
    session_state: run.withoutSecrets(child.session_state),
    usages: [...child.usages],
    ...rememberedIn(child.remembered),
    counters: { ...run.projection.countersOf(session_id) },
    last_run: child.last_run,
    plan: ready.compiled.written,
    ...(plan_lock ? { plan_lock } : {}),
    plan_origin: ready.agents?.origin ?? "caller", // least trust if unknown
    plan_base_url: ready.base_url ?? null,
    spawned: { agent, limited },
  };
}

function rememberedIn(
  remembered: readonly RememberedApproval[],
): Pick<SavedSession, "remembered"> {
  return remembered.length > 0 ? { remembered } : {};
}

function hasOwnPlan({ options: { request } }: Pick<FinishedRun, "options">): boolean {
  return request.plan !== undefined || request.plan_ref !== undefined;
}

/** Returns the lock of a run's plan. */
function lockOf(run: FinishedRun): JsonObject | undefined {
  const { saved, request } = run.options;
  return saved === null || hasOwnPlan(run) ? request.lock : saved.plan_lock;
}
