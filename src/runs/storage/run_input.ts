/**
 * What is kept of a run beside its log, so that it can be replayed, gone on with after a crash, and executed anew: plan,
 * request, where its session stood, and what its tools and providers said of themselves.
 */
import type { Entry } from "../../kernel/host.ts";
import type { LoggedUsage } from "../../kernel/session/session.ts";
import type { MountedDescriptors } from "../../kernel/mounting/mount_descriptors.ts";
import type { JsonObject, Message, Prompt } from "../../sdk/types.ts";
import type { Change, Store } from "../../store/store.ts";
import type { RememberedApproval } from "../run/approval_memory.ts";
import type { Caller, Run, RunRequest } from "../types.ts";

/** What a sub-agent's turn started from. */
export interface AgentInput {
  session_id: string;
  /** The turn; it tells the turns of one session apart. */
  turn_id: string;
  /** The agent's plan as written: overlay, preferences and filters are in it. */
  plan: JsonObject;
  /** Whether its overlay sets ceilings of its own. */
  limited: boolean;
  /** Whether the session had run before. */
  continued: boolean;
  history: readonly Message[];
  session_state: JsonObject;
  usages: readonly LoggedUsage[];
  remembered?: readonly RememberedApproval[];
  surface: MountedDescriptors;
}

/** What a run started from. */
export interface RunInput {
  version: 1;
  /** The plan as written, and whose it was. */
  plan: JsonObject;
  plan_origin: "operator" | "caller";
  plan_base_url: string | null;
  /** The lock that came with the plan. */
  plan_lock?: JsonObject;
  /** Whether plan or request set `max_cost_usd`. */
  cost_is_asked_for: boolean;
  /** Whether the session had run before. */
  continued: boolean;
  /** The session before the run. */
  history: readonly Message[];
  session_state: JsonObject;
  usages: readonly LoggedUsage[];
  /** Answers that held for later questions of the session. */
  remembered?: readonly RememberedApproval[];
  /** Null while the session is not initialised. */
  surface: MountedDescriptors | null;
  /** The turn that the run goes on with, when it was begun in another run: its prompt is in the history. */
  resume?: { prompt: Prompt; iteration: number };
  /** Turns of sub-agents that have ended, in the order of their ends. Absent: none, or nobody knows. */
  agents?: readonly AgentInput[];
}

/** A run as it can be replayed anywhere: its object, its log, what it started from. */
export interface Recording {
  run: Run;
  events: readonly Entry[];
  replay: RunInput;
}

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
