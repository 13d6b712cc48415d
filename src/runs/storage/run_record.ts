/** What is kept of a run beside its log: its object, and what it started from. */
import type { JsonObject } from "../../sdk/json.ts";
import type { Change } from "../../store/store.ts";
import type { StoredInput } from "./run_input.ts";
import type { ActiveRun } from "../run/run.ts";

/** Returns what a run started from. `surface`: null while its session is not initialised. */
export function inputOf(runner: ActiveRun, surface: StoredInput["surface"]): StoredInput {
  const { ready, request: { plan, plan_ref, ...request }, caller, saved, resume } = runner.options;
  const own_plan = saved === null || plan !== undefined || plan_ref !== undefined;
  const by_operator = plan_ref !== undefined || plan === undefined;
  const plan_lock = own_plan ? request.lock : saved.plan_lock;
  return {
    version: 1,
    run_id: runner.id,
    session_id: runner.session_id,
    caller,
    request: runner.withoutSecrets(request),
    created_at: runner.created_at,
    own_plan,
    plan: ready.compiled.written,
    plan_origin: !own_plan ? saved.plan_origin : by_operator ? "operator" : caller.origin,
    plan_base_url: (own_plan ? ready.base_url : saved.plan_base_url) ?? null,
    ...(plan_lock ? { plan_lock } : {}),
    cost_is_asked_for: ready.cost_is_asked_for,
    continued: saved !== null,
    history: saved?.messages ?? [],
    session_state: saved?.session_state ?? {},
    usages: saved?.usages ?? [],
    ...(saved?.remembered ? { remembered: saved.remembered } : {}),
    surface: surface && runner.withoutSecrets(surface),
    ...(resume ? { resume: { prompt: request.prompt, iteration: resume.iteration } } : {}),
  };
}

/** Returns the change that keeps the run object for lists and for readers in other processes. */
export function recordChange(runner: ActiveRun): Change {
  const run = runner.current();
  return {
    put: {
      kind: "run",
      key: runner.id,
      namespace: runner.options.caller.namespace,
      value: run as unknown as JsonObject,
      index: { session_id: runner.session_id, status: run.status, open: String(run.ended_at === null) },
      created_ms: Date.parse(runner.created_at),
    },
  };
}
