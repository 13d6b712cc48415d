/** Builds the stored records of a run: its run object and its input. */
import type { JsonObject } from "../../sdk/json.ts";
import { millisecondsOf } from "../../sdk/timestamp.ts";
import type { Change } from "../../store/store.ts";
import type { StoredInput } from "./run_input.ts";
import type { RunnablePlan } from "../ports.ts";
import type { Caller, Run, RunRequest } from "../types.ts";
import { originOfPlan, type SavedSession } from "./session_store.ts";

/** Milliseconds of a day, the unit of `log_days`. */
export const DAY_MS = 86_400_000;

/** The members of a run that its records are made from. */
export interface StoredRun {
  readonly id: string;
  readonly session_id: string;
  readonly created_at: string;
  readonly options: {
    readonly ready: RunnablePlan;
    readonly request: RunRequest;
    readonly caller: Caller;
    readonly saved: SavedSession | null;
    readonly resume?: { readonly iteration: number };
  };
  current(): Run;
  withoutSecrets<T extends object>(data: T): T;
}

/** Returns the input of a run. `descriptors`: null while its session is not initialised. */
export function inputOf(run: StoredRun, descriptors: StoredInput["surface"]): StoredInput {
  const { ready, request, caller, saved, resume } = run.options;
  const { plan, plan_ref, model: _, ...rest } = request; // the stored plan has the model
  const own_plan = saved === null || plan !== undefined || plan_ref !== undefined;
  const plan_lock = own_plan ? request.lock : saved.plan_lock;
  return {
    version: 1,
    run_id: run.id,
    session_id: run.session_id,
    caller,
    request: run.withoutSecrets(rest),
    created_at: run.created_at,
    own_plan,
    plan: ready.compiled.written,
    plan_origin: own_plan ? originOfPlan(request, caller) : saved.plan_origin,
    plan_base_url: (own_plan ? ready.base_url : saved.plan_base_url) ?? null,
    ...(plan_lock ? { plan_lock } : {}),
    cost_is_asked_for: ready.cost_is_asked_for,
    continued: saved !== null,
    history: saved?.messages ?? [],
    session_state: saved?.session_state ?? {},
    usages: saved?.usages ?? [],
    ...(saved?.remembered ? { remembered: saved.remembered } : {}),
    surface: descriptors && run.withoutSecrets(descriptors),
    ...(resume ? { resume: { prompt: request.prompt, iteration: resume.iteration } } : {}),
  };
}

/**
 * Returns the change that stores the run object, for lists and for other processes. `place`: place of a waiting run in
 * the queue of its session.
 */
export function recordChange(active: StoredRun, place?: string): Change {
  return runRecordChange(active.current(), active.options.caller.namespace, place);
}

/** Returns the change that stores a run object. */
export function runRecordChange(run: Run, namespace: string, place?: string): Change {
  return {
    put: {
      kind: "run",
      key: run.id,
      namespace,
      value: run as unknown as JsonObject,
      index: {
        session_id: run.session_id,
        status: run.status,
        open: String(run.ended_at === null),
        ...(place === undefined ? {} : { place }),
      },
      created_ms: millisecondsOf(run.created_at),
    },
  };
}
