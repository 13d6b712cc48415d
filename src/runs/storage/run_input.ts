/**
 * Stores the input of runs, for replay, recovery and re-execution: plan, request, state of the session, and
 * descriptors of tools and providers.
 */
import type { JsonObject } from "../../sdk/types.ts";
import { allRecords, type Change, type Store } from "../../store/store.ts";
import type { Caller, RunInput, RunRequest } from "../types.ts";

/** A run's input as stored: with its caller and request. */
export interface StoredInput extends RunInput {
  run_id: string;
  session_id: string;
  caller: Caller;
  request: Omit<RunRequest, "plan" | "plan_ref" | "model">;
  created_at: string;
  /** Whether the plan came with the request and not from the session. */
  own_plan: boolean;
}

const KIND = "run_input";
/** A namespace of the service's own: recovery lists inputs of all callers. */
const NAMESPACE = "";

/**
 * Returns the change that stores a run's input.
 * @param expires_ms Expiry of an ended run's input, in milliseconds since the epoch. Default: not ended.
 */
export function inputChange(input: StoredInput, expires_ms?: number): Change {
  return {
    put: {
      kind: KIND,
      key: keyOf(input.run_id),
      namespace: NAMESPACE,
      value: input as unknown as JsonObject,
      index: { open: String(expires_ms === undefined) },
      ...(expires_ms === undefined ? {} : { expires_ms }),
    },
  };
}

export function inputDeletion(run_id: string): Change {
  return { delete: { kind: KIND, key: keyOf(run_id) } };
}

/** Resolves to a run's input, or null when it is no longer stored. */
export async function loadInput(store: Store, run_id: string): Promise<StoredInput | null> {
  const record = await store.get(KIND, keyOf(run_id));
  return record ? record.value as unknown as StoredInput : null;
}

/** Resolves to the input of a run that has not ended, otherwise to null. */
export async function loadOpenInput(store: Store, run_id: string): Promise<StoredInput | null> {
  const record = await store.get(KIND, keyOf(run_id));
  return record?.index?.open === "true" ? record.value as unknown as StoredInput : null;
}

/** The fields of the input of a run that has not ended that decide who may continue it. */
export type OpenInput = Pick<StoredInput, "run_id" | "session_id"> & {
  /** Whether the session was initialised. */
  readonly has_begun: boolean;
};

/** Resolves to the open inputs of all runs, oldest first, without their histories: there may be many. */
export async function openInputs(store: Store): Promise<OpenInput[]> {
  const open: OpenInput[] = [];
  for await (const { value } of allRecords(store, KIND, { namespace: NAMESPACE, where: { open: "true" } })) {
    const { run_id, session_id, surface } = value as unknown as StoredInput;
    open.push({ run_id, session_id, has_begun: surface !== null });
  }
  return open.reverse();
}

/** Prefixed, because a store may delete the log that has the name of a deleted record. */
function keyOf(run_id: string): string {
  return `input/${run_id}`;
}

/** Returns the part of a stored input that belongs to a recording. */
export function recordedInput(
  { run_id: _, session_id: __, caller: ___, request: ____, created_at: _____, own_plan: ______, ...input }:
    StoredInput,
): RunInput {
  return input;
}
