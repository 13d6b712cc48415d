/**
 * Stores the input of runs, for replay, recovery and re-execution: plan, request, state of the session, and
 * descriptors of tools and providers.
 */
import type { Entry } from "../../kernel/host.ts";
import type { JsonObject } from "../../sdk/types.ts";
import { allRecords, type Change, type Store } from "../../store/store.ts";
import type { Caller, RunInput, RunRequest } from "../types.ts";
import type { StoredHeaders } from "./run_headers.ts";

/** A run's input as stored: with its caller and request. */
export interface StoredInput extends RunInput {
  run_id: string;
  session_id: string;
  caller: Caller;
  request: Omit<RunRequest, "plan" | "plan_ref" | "model">;
  created_at: string;
  /** Whether the plan came with the request and not from the session. */
  own_plan: boolean;
  /** Headers of the request that the plan names, until the run ends. */
  headers?: StoredHeaders;
}

/** A run that a crashed process began and did not end. */
export interface OrphanedRun {
  readonly input: StoredInput;
  /** The stored entries of its log. */
  readonly entries: readonly Entry[];
}

const KIND = "run_input";
/** A namespace of the service's own: recovery lists inputs of all callers. */
const NAMESPACE = "";

/**
 * Returns the change that stores a run's input.
 * @param expires_ms Expiry of an ended run's input, in milliseconds since the epoch. Default: not ended.
 */
export function inputChange({ headers, ...input }: StoredInput, expires_ms?: number): Change {
  const stored = headers && expires_ms === undefined ? { ...input, headers } : input;
  return {
    put: {
      kind: KIND,
      key: keyOf(input.run_id),
      namespace: NAMESPACE,
      value: stored as unknown as JsonObject,
      ...(expires_ms === undefined
        ? { index: { open: "true", ...(input.surface && { session_id: input.session_id }) } }
        : { index: { open: "false" }, expires_ms }),
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

/** What decides who may continue a run that has not ended. */
export interface OpenInput {
  readonly run_id: string;
  /** Session that the run has begun in; absent: it waits, or an older version has stored it. */
  readonly session_id?: string;
}

/** Resolves to the open inputs of all runs, oldest first. */
export async function openInputs(store: Store): Promise<OpenInput[]> {
  const open: OpenInput[] = [];
  const options = { namespace: NAMESPACE, where: { open: "true" } };
  for await (const { key, index: { session_id } = {} } of allRecords(store, KIND, options)) {
    open.push({ run_id: key.slice(PREFIX.length), ...(session_id === undefined ? {} : { session_id }) });
  }
  return open.reverse();
}

/** A store may delete the log that has the name of a deleted record. */
const PREFIX = "input/";

function keyOf(run_id: string): string {
  return PREFIX + run_id;
}

/** Returns the part of a stored input that belongs to a recording. */
export function recordedInput(
  { run_id, session_id, caller, request, created_at, own_plan, headers, ...input }: StoredInput,
): RunInput {
  void [run_id, session_id, caller, request, created_at, own_plan, headers];
  return input;
}
