/** Builds the stored records of a run: its run object and its input. */
import type { JsonObject } from "../../sdk/json.ts";
import { millisecondsOf } from "../../sdk/timestamp.ts";
import type { Change } from "../../store/store.ts";
import type { StoredInput } from "./run_input.ts";
import type { Run } from "../types.ts";
import { type FinishedRun, hasOwnPlan, initialState, planToStore } from "./session_store.ts";

/** Milliseconds of a day, the unit of `log_days`. */
export const DAY_MS = 86_400_000;

/** The members of a run that its records are made from. */
export interface StoredRun extends Pick<FinishedRun, "session_id" | "created_at" | "withoutSecrets"> {
  readonly id: string;
  readonly options: FinishedRun["options"] & { readonly resume?: { readonly iteration: number } };
  current(): Run;
}

/** Returns the input of a run. `descriptors`: null while its session is not initialised. */
export function inputOf(run: StoredRun, descriptors: StoredInput["surface"]): StoredInput {
  const { ready, request, caller, saved, resume } = run.options;
  const { plan: _, plan_ref: __, model: ___, ...rest } = request; // the stored plan has the model
  return {
    version: 1,
    run_id: run.id,
    session_id: run.session_id,
    caller,
    request: run.withoutSecrets(rest),
    created_at: run.created_at,
    own_plan: saved === null || hasOwnPlan(request),
    ...planToStore(run.options),
    plan: ready.compiled.written,
    cost_is_asked_for: ready.cost_is_asked_for,
    ...initialState(saved),
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
