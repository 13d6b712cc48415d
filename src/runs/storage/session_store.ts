/** Sessions as they are kept between runs: history, module state, plan (trace.md, section 4, D). */
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject, Message } from "../../sdk/types.ts";
import type { LoggedUsage } from "../../kernel/session/session.ts";
import type { Counters } from "../../sdk/session_counters.ts";
import type { Change, Store } from "../../store/store.ts";
import { printableId } from "../../process/ids.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { PageLimits, RunnablePlan } from "../ports.ts";
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

/** What is kept of a session. */
export interface SavedSession {
  object: Omit<SessionObject, "status">;
  messages: readonly Message[];
  session_state: JsonObject;
  /** What the requests since the last compaction took; absent in sessions kept before this was. */
  usages?: readonly LoggedUsage[];
  /** Counters of all its runs; absent in sessions kept before this was. */
  counters?: Counters;
  /** How its last run ended; absent while one is under way, and in sessions kept before this was. */
  last_run?: LastRun;
  /** Answers that hold for its later questions; absent: none. */
  remembered?: readonly RememberedApproval[];
  /** The plan as written, and whether it was an operator's: a continued session runs it with the same rights. */
  plan: JsonObject;
  plan_origin: "operator" | "caller";
  plan_base_url: string | null;
  /** Set on a sub-agent's session: its name, and whether its overlay set ceilings of its own. */
  spawned?: { agent: string; limited: boolean };
  /** The lock that came with the plan: it holds for every run of it. */
  plan_lock?: JsonObject;
}

/** A session whose run is under way. */
export interface LiveSession {
  countersOf(session_id: string): Counters;
  messagesOf(session_id: string): readonly unknown[];
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
  readonly messages: readonly Message[];
  readonly session_state: JsonObject;
  readonly usages: readonly LoggedUsage[];
  readonly remembered: readonly RememberedApproval[];
  readonly last_run: LastRun | null;
  countersOf(session_id: string): Counters;
  withoutSecrets<T extends object>(data: T): T;
}

/** What a child's turn left. */
export interface EndedChild {
  readonly session_id: string;
  readonly parent_id: string;
  readonly agent: string;
  readonly ready: RunnablePlan;
  /** Whether its overlay sets ceilings of its own. */
  readonly limited: boolean;
  /** What it was before, when it went on. */
  readonly saved: SavedSession | null;
  readonly messages: readonly Message[];
  readonly session_state: JsonObject;
  readonly usages: readonly LoggedUsage[];
  readonly remembered: readonly RememberedApproval[];
  /** How its turn ended. */
  readonly last_run: LastRun;
  /** What its turn started from; null when none was started. */
  readonly input: AgentInput | null;
}

/** The sessions of a store. */
export class SessionStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** @throws {PreampError} `not_found` for an unknown or foreign id. */
  async load(caller: Caller, id: string): Promise<SavedSession> {
    const record = await this.#store.get(KIND, id);
    if (!record || record.namespace !== caller.namespace) throw notFound(id);
    return record.value as unknown as SavedSession;
  }

  /** Returns the change that keeps a session. */
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

  /** @param live Returns the run of a session that is under way. */
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

  /** Ids of the sessions that a session's sub-agents have, and theirs; itself first. */
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

/** Returns a session as it is shown, with its status. `live`: its run that is under way. */
export function withStatus(
  { object, messages, counters, last_run }: SavedSession,
  live?: LiveSession,
): SessionObject {
  const { id, last_activity } = object;
  const is_running = live !== undefined || (counters !== undefined && last_run === undefined);
  const status = statusFrom(
    object,
    live?.countersOf(id) ?? counters,
    live?.messagesOf(id).length ?? messages.length,
    {
      status: is_running ? "running" : last_run?.status ?? "completed",
      ended_at: is_running ? null : last_activity,
      last_activity,
      last_error: is_running ? null : last_run?.error ?? null,
    },
  );
  return { ...object, status: status.toDict() };
}

/** A continued session without a plan of its own goes on with the session's. */
export function withSessionPlan(request: RunRequest, saved: SavedSession | null): RunRequest {
  return saved && request.plan === undefined && request.plan_ref === undefined
    ? { ...(saved.plan_lock ? { lock: saved.plan_lock } : {}), ...request, plan: saved.plan }
    : request;
}

/** Whose rights the plan has: a session's plan keeps those it came with. */
export function callerOfPlan(caller: Caller, request: RunRequest, saved: SavedSession | null): Caller {
  return saved && request.plan === undefined && request.plan_ref === undefined
    ? { ...caller, origin: saved.plan_origin }
    : caller;
}

/** Returns the session as it is after a run. */
export function savedSession(run: FinishedRun, now_ms: number): SavedSession {
  const { saved, ready, request, caller } = run.options;
  const at = timestamp(now_ms);
  const own_plan = saved === null || hasOwnPlan(run);
  const plan_lock = lockOf(run);
  return {
    object: {
      id: run.session_id,
      object: "session",
      parent_id: saved?.object.parent_id ?? null,
      plan_hash: own_plan ? ready.compiled.plan_hash : saved.object.plan_hash,
      run_count: (saved?.object.run_count ?? 0) + 1,
      created_at: saved?.object.created_at ?? run.created_at,
      last_activity: at,
      metadata: saved?.object.metadata ?? run.withoutSecrets(request.metadata ?? {}),
    },
    messages: [...run.messages],
    session_state: run.session_state,
    usages: [...run.usages],
    ...(run.remembered.length > 0 ? { remembered: run.remembered } : {}),
    counters: run.countersOf(run.session_id),
    ...(run.last_run ? { last_run: run.last_run } : {}),
    plan: own_plan ? ready.compiled.written : saved.plan,
    ...(plan_lock ? { plan_lock } : {}),
    plan_base_url: own_plan ? ready.base_url ?? null : saved.plan_base_url,
    plan_origin: own_plan
      ? (request.plan_ref !== undefined || request.plan === undefined ? "operator" : caller.origin)
      : saved.plan_origin,
    ...(saved?.spawned ? { spawned: saved.spawned } : {}),
  };
}

/** Returns a sub-agent's session as it is after its turn in a run. */
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
    ...(child.remembered.length > 0 ? { remembered: child.remembered } : {}),
    counters: run.countersOf(session_id),
    last_run: child.last_run,
    plan: ready.compiled.written,
    ...(plan_lock ? { plan_lock } : {}),
    plan_origin: ready.agents?.origin ?? "caller", // the least trust, should it ever be unknown
    plan_base_url: ready.base_url ?? null,
    spawned: { agent, limited },
  };
}

function hasOwnPlan({ options: { request } }: Pick<FinishedRun, "options">): boolean {
  return request.plan !== undefined || request.plan_ref !== undefined;
}

/** The lock that came with the plan of a run. */
function lockOf(run: FinishedRun): JsonObject | undefined {
  const { saved, request } = run.options;
  return saved === null || hasOwnPlan(run) ? request.lock : saved.plan_lock;
}
