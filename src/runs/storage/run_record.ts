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
  const input: StoredInput = {
    ...planToStore(run.options),
    ...initialState(saved),
    version: 1,
    run_id: run.id,
    session_id: run.session_id,
    caller,
    request: run.withoutSecrets(rest),
    created_at: run.created_at,
    own_plan: saved === null || hasOwnPlan(request),
    plan: ready.compiled.written,
    cost_is_asked_for: ready.cost_is_asked_for,
    surface: descriptors && run.withoutSecrets(descriptors),
  };
  if (resume) input.resume = { prompt: request.prompt, iteration: resume.iteration };
  return input;
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
  const { id: key, session_id, status, ended_at, created_at } = run;
  const index = { session_id, status, open: String(ended_at === null) };
  return {
    put: {
      kind: "run",
      key,
      namespace,
      value: run as unknown as JsonObject,
      index: place === undefined ? index : { ...index, place },
      created_ms: millisecondsOf(created_at),
    },
  };
}
