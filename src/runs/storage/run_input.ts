/**
 * Stores the input of runs, for replay, recovery and re-execution: plan, request, descriptors of tools and
 * providers, and the position in the session's log at which the run began.
 */
import type { Entry } from "../../kernel/host.ts";
import type { JsonObject } from "../../sdk/types.ts";
import { allRecords, type Change, type Store, type StoredRecord } from "../../store/store.ts";
import type { AgentInput, Caller, RunInput, RunRequest, SavedState } from "../types.ts";
import type { StoredHeaders } from "./run_headers.ts";
import { EMPTY_STATE, stateAt } from "./session_log.ts";

/** A run's input, with its caller and request. */
export interface StoredInput extends Omit<RunInput, "agents"> {
  run_id: string;
  session_id: string;
  /** Entries of the session's log before the run; null: an older version stored the state with the input. */
  position: number | null;
  caller: Caller;
  request: Omit<RunRequest, "plan" | "plan_ref" | "model">;
  created_at: string;
  /** Whether the plan came with the request and not from the session. */
  own_plan: boolean;
  /** Headers of the request that the plan names, until the run ends. */
  headers?: StoredHeaders;
  /** Whether the loop takes steering texts. Absent: the run waits, or an older version has stored it. */
  steerable?: boolean;
  agents?: readonly PlacedInput[];
}

/** Input of a sub-agent's turn, with the position in its session's log; an older version stored none. */
export type PlacedInput = AgentInput & { readonly position: number };

/** A run that a crashed process began and did not end. */
export interface OrphanedRun {
  readonly input: StoredInput;
  /** The stored entries of its log. */
  readonly entries: readonly Entry[];
}

const KIND = "input";
/** Inputs of older versions, which have the state of the session. An older version finds no others. */
const OLDER_KIND = "run_input";
const KINDS = [KIND, OLDER_KIND];
/** A namespace of the service's own: recovery lists inputs of all callers. */
const NAMESPACE = "";

/**
 * Returns the change that stores a run's input.
 * @param expires_ms Expiry of an ended run's input, in milliseconds since the epoch. Default: not ended.
 */
export function inputChange(input: StoredInput, expires_ms?: number): Change {
  const { headers, ...rest } = input;
  const { request, ...ended } = rest;
  const stored = expires_ms !== undefined ? ended : headers ? { ...rest, headers } : rest;
  const is_older = input.position === null;
  return {
    put: {
      kind: is_older ? OLDER_KIND : KIND,
      key: keyOf(input.run_id),
      namespace: NAMESPACE,
      value: (is_older ? { ...stored, request } : withoutState(stored)) as unknown as JsonObject,
      ...(expires_ms === undefined
        ? { index: { open: "true", ...(input.surface && { session_id: input.session_id }) } }
        : { index: { open: "false" }, expires_ms }),
    },
  };
}

/** Leaves out what the logs of the sessions have. */
function withoutState<Input extends SavedState & { agents?: readonly PlacedInput[] }>(input: Input) {
  const { history: _, session_state: __, usages: ___, remembered: ____, agents, ...rest } = input;
  if (!agents) return rest;
  // the module state of a sub-agent has what its parent shared, too
  return { ...rest, agents: agents.map(({ history: _, usages: __, remembered: ___, ...agent }) => agent) };
}

/** Returns the changes that delete a run's input. */
export function inputDeletions(run_id: string): Change[] {
  return KINDS.map((kind) => ({ delete: { kind, key: keyOf(run_id) } }));
}

/** Returns the change that deletes an input of an older version. */
export function olderInputDeletion(run_id: string): Change {
  return { delete: { kind: OLDER_KIND, key: keyOf(run_id) } };
}

/** Resolves to a run's input, or null when it is no longer stored. */
export async function loadInput(store: Store, run_id: string): Promise<StoredInput | null> {
  const record = await store.get(KIND, keyOf(run_id));
  return record ? await whole(store, record) : await loadOlderInput(store, run_id);
}

/** Resolves to a run's input that an older version stored, or null. */
export async function loadOlderInput(store: Store, run_id: string): Promise<StoredInput | null> {
  const record = await store.get(OLDER_KIND, keyOf(run_id));
  return record && await whole(store, record);
}

/** Resolves to what decides about commands for a run; null when its input is no longer stored. */
export async function commandFacts(
  store: Store,
  run_id: string,
): Promise<Pick<StoredInput, "caller" | "steerable"> | null> {
  for (const kind of KINDS) {
    const record = await store.get(kind, keyOf(run_id));
    if (record) return record.value as unknown as StoredInput; // written by `inputChange`
  }
  return null;
}

/** Resolves to the input of a run that has not ended, otherwise to null. */
export async function loadOpenInput(store: Store, run_id: string): Promise<StoredInput | null> {
  for (const kind of KINDS) {
    const record = await store.get(kind, keyOf(run_id));
    if (record?.index?.open === "true") return await whole(store, record);
  }
  return null;
}

/** Resolves to a stored input with the states of its sessions; null if the log of its own one is missing. */
async function whole(store: Store, { kind, value }: StoredRecord): Promise<StoredInput | null> {
  const input = value as unknown as StoredInput; // written by `inputChange`
  if (kind === OLDER_KIND) return { ...input, position: null };
  const { session_id, position, surface } = input;
  const state = surface === null ? EMPTY_STATE : await stateAt(store, session_id, position ?? 0);
  if (state === null) return null;
  if (!input.agents) return { ...input, ...state };
  const agents: PlacedInput[] = [];
  for (const agent of input.agents) {
    const before = await stateAt(store, agent.session_id, agent.position);
    if (before) agents.push({ ...before, ...agent });
  }
  return { ...input, ...state, agents };
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
  for (const kind of KINDS) {
    for await (const { key, index: { session_id } = {} } of allRecords(store, kind, options)) {
      open.push({ run_id: key.slice(PREFIX.length), ...(session_id === undefined ? {} : { session_id }) });
    }
  }
  return open.reverse();
}

/** A store may delete the log that has the name of a deleted record. */
const PREFIX = "input/";

function keyOf(run_id: string): string {
  return PREFIX + run_id;
}

/** Returns the part of a stored input that belongs to a recording. */
export function recordedInput(stored: StoredInput): RunInput {
  const { run_id, session_id, position, caller, request, created_at, own_plan, headers, ...rest } = stored;
  const { steerable, ...input } = rest;
  void [run_id, session_id, position, caller, request, created_at, own_plan, headers, steerable];
  if (!input.agents) return input;
  const agents = input.agents.map(({ position: _, ...agent }) => agent);
  return { ...input, agents };
}
