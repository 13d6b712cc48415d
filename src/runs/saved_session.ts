/** What a run takes from its session and leaves of it: whose plan it runs, and what is kept (trace.md, section 4, D). */
import type { Runner } from "./runner.ts";
import type { SavedSession } from "./sessions.ts";
import type { Caller, RunRequest } from "./types.ts";

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
export function savedSession(runner: Runner, now_ms: number): SavedSession {
  const { saved, ready, request, caller } = runner.options;
  const at = new Date(now_ms).toISOString();
  const own_plan = saved === null || request.plan !== undefined || request.plan_ref !== undefined;
  const plan_lock = own_plan ? request.lock : saved.plan_lock;
  return {
    object: {
      id: runner.session_id,
      object: "session",
      parent_id: saved?.object.parent_id ?? null,
      plan_hash: own_plan ? ready.compiled.plan_hash : saved.object.plan_hash,
      run_count: (saved?.object.run_count ?? 0) + 1,
      created_at: saved?.object.created_at ?? runner.created_at,
      last_activity: at,
      metadata: saved?.object.metadata ?? request.metadata ?? {},
    },
    messages: [...runner.messages],
    session_state: runner.session_state,
    usages: [...runner.usages],
    plan: own_plan ? ready.compiled.written : saved.plan,
    ...(plan_lock ? { plan_lock } : {}),
    plan_base_url: own_plan ? ready.base_url ?? null : saved.plan_base_url,
    plan_origin: own_plan
      ? (request.plan_ref !== undefined || request.plan === undefined ? "operator" : caller.origin)
      : saved.plan_origin,
  };
}
