/** What a run takes from its session and leaves of it: whose plan it runs, and what is kept (trace.md, section 4, D). */
import { timestamp } from "../../sdk/timestamp.ts";
import type { JsonObject } from "../../sdk/types.ts";
import type { ActiveRun } from "../run/run.ts";
import type { SavedSession } from "./session_store.ts";
import type { EndedChild } from "../subagents/spawner.ts";
import type { Caller, RunRequest } from "../types.ts";

/** A continued session without a plan of its own goes on with the session's. */
export function askedPlan(request: RunRequest, saved: SavedSession | null): RunRequest {
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
export function savedSession(runner: ActiveRun, now_ms: number): SavedSession {
  const { saved, ready, request, caller } = runner.options;
  const at = timestamp(now_ms);
  const own_plan = saved === null || hasOwnPlan(runner);
  const plan_lock = lockOf(runner);
  return {
    object: {
      id: runner.session_id,
      object: "session",
      parent_id: saved?.object.parent_id ?? null,
      plan_hash: own_plan ? ready.compiled.plan_hash : saved.object.plan_hash,
      run_count: (saved?.object.run_count ?? 0) + 1,
      created_at: saved?.object.created_at ?? runner.created_at,
      last_activity: at,
      metadata: saved?.object.metadata ?? runner.withoutSecrets(request.metadata ?? {}),
    },
    messages: [...runner.messages],
    session_state: runner.session_state,
    usages: [...runner.usages],
    ...(runner.remembered.length > 0 ? { remembered: runner.remembered } : {}),
    counters: runner.countersOf(runner.session_id),
    ...(runner.last_run ? { last_run: runner.last_run } : {}),
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
export function savedChild(runner: ActiveRun, child: EndedChild, now_ms: number): SavedSession {
  const { session_id, parent_id, agent, ready, limited, saved } = child;
  const at = timestamp(now_ms);
  const plan_lock = lockOf(runner);
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
    session_state: runner.withoutSecrets(child.session_state),
    usages: [...child.usages],
    ...(child.remembered.length > 0 ? { remembered: child.remembered } : {}),
    counters: runner.countersOf(session_id),
    last_run: child.last_run,
    plan: ready.compiled.written,
    ...(plan_lock ? { plan_lock } : {}),
    plan_origin: ready.agents?.origin ?? "caller", // the least trust, should it ever be unknown
    plan_base_url: ready.base_url ?? null,
    spawned: { agent, limited },
  };
}

function hasOwnPlan({ options: { request } }: ActiveRun): boolean {
  return request.plan !== undefined || request.plan_ref !== undefined;
}

/** The lock that came with the plan of a run. */
function lockOf(runner: ActiveRun): JsonObject | undefined {
  const { saved, request } = runner.options;
  return saved === null || hasOwnPlan(runner) ? request.lock : saved.plan_lock;
}
