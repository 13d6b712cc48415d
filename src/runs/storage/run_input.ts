/**
 * What is kept of a run beside its log, so that it can be replayed, gone on with after a crash, and executed anew: plan,
 * request, where its session stood, and what its tools and providers said of themselves.
 */
import type { JsonObject } from "../../sdk/types.ts";
import type { Change, Store } from "../../store/store.ts";
import type { Caller, RunInput, RunRequest } from "../types.ts";

/** What is kept in the store: who started it and how, too. */
export interface StoredInput extends RunInput {
  run_id: string;
  session_id: string;
  caller: Caller;
  request: Omit<RunRequest, "plan" | "plan_ref">;
  created_at: string;
  /** Whether the plan was the request's own, not the session's. */
  own_plan: boolean;
}

const KIND = "run_input";
/** The service's own: inputs are listed across callers when a crashed process's runs are looked for. */
const NAMESPACE = "";

/**
 * Returns the change that keeps what a run started from.
 * @param open Whether the run has not ended.
 * @param expires_ms When it may go, in milliseconds since the epoch. Default: never.
 */
export function inputChange(input: StoredInput, open: boolean, expires_ms?: number): Change {
  return {
    put: {
      kind: KIND,
      key: keyOf(input.run_id),
      namespace: NAMESPACE,
      value: input as unknown as JsonObject,
      index: { open: String(open) },
      ...(expires_ms === undefined ? {} : { expires_ms }),
    },
  };
}

/** Returns the change that forgets what a run started from. */
export function inputDeletion(run_id: string): Change {
  return { delete: { kind: KIND, key: keyOf(run_id) } };
}

/** Resolves to what a run started from, or null when it is no longer known. */
export async function loadInput(store: Store, run_id: string): Promise<StoredInput | null> {
  const record = await store.get(KIND, keyOf(run_id));
  return record ? record.value as unknown as StoredInput : null;
}

/** Resolves to what the runs started from that have not ended, oldest first. */
export async function openInputs(store: Store): Promise<StoredInput[]> {
  const found: StoredInput[] = [];
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await store.list(KIND, {
      namespace: NAMESPACE,
      where: { open: "true" },
      limit: 1000,
      ...(cursor === undefined ? {} : { cursor }),
    });
    found.push(...page.records.map((record) => record.value as unknown as StoredInput));
    cursor = page.next_cursor;
  }
  return found.reverse();
}

/** Not the run's id alone: a store may drop the log of that name with the record. */
function keyOf(run_id: string): string {
  return `input/${run_id}`;
}

/** Returns what a recording holds of a stored input. */
export function recordedInput(input: StoredInput): RunInput {
  const { plan, plan_origin, plan_base_url, plan_lock, cost_is_asked_for, continued } = input;
  const { history, session_state, usages, remembered, surface, resume, agents } = input;
  return {
    version: 1,
    plan,
    plan_origin,
    plan_base_url,
    ...(plan_lock ? { plan_lock } : {}),
    cost_is_asked_for,
    continued,
    history,
    session_state,
    usages,
    ...(remembered ? { remembered } : {}),
    surface,
    ...(resume ? { resume } : {}),
    ...(agents ? { agents } : {}),
  };
}
