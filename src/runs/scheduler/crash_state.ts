/**
 * Reads the state of an orphaned run from its log; the turn itself is `src/kernel/session/turn_recovery.ts`.
 */
import type { ApprovalRequest, Entry, KnownApproval } from "../../kernel/host.ts";
import type { UsedLimits } from "../../kernel/run_limits.ts";
import { type RecoveredTurn, recoverTurn } from "../../kernel/session/turn_recovery.ts";
import { REDACTED } from "../../policy/redact.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { RunProjection } from "../run/run_projection.ts";
import type { StoredInput } from "../storage/run_input.ts";
import type { Approval, RunInput } from "../types.ts";

/** A run that a crashed process began and did not end. */
export interface OrphanedRun {
  readonly input: StoredInput;
  /** The stored entries of its log. */
  readonly entries: readonly Entry[];
}

/**
 * Returns a session's state as of the log. A `session:state` entry is recorded right before the step that it
 * belongs to; at the end of the log it is ignored, because that step is still to come.
 */
export function stateAfter(before: JsonObject, entries: readonly Entry[], session_id: string): JsonObject {
  const state = { ...before };
  for (const { event, data, session_id: of } of entries.slice(0, -1)) {
    if (event !== "session:state" || of !== session_id || !isObject(data.set)) continue;
    for (const [key, value] of Object.entries(data.set)) {
      if (value === null) delete state[key]; // null: the key was deleted
      else state[key] = value;
    }
  }
  return state;
}

/**
 * Returns the state of an interrupted run's turn, or null when no turn began. `resume`: the turn began in
 * another run.
 */
export function turnStateOf(
  entries: readonly Entry[],
  session_id: string,
  resume: RunInput["resume"],
): RecoveredTurn | null {
  const recovered = recoverTurn(entries, session_id, REDACTED);
  if (recovered === null || resume === undefined) return recovered;
  recovered.prompted = true;
  recovered.iteration += resume.iteration;
  recovered.emitted.add("execution:start");
  return recovered;
}

/**
 * Returns how much of its limits a run had used when its process ended. `recovered`: state of the own
 * session's turn.
 */
export function usedBefore(
  projection: RunProjection,
  entries: readonly Entry[],
  recovered: RecoveredTurn | null,
): UsedLimits {
  const lost = [...recovered?.calls.values() ?? []].filter((call) => call === "lost").length;
  const { used } = projection;
  return {
    ...used,
    tool_calls: used.tool_calls + lost, // it is not known whether lost calls ran: they count as if they had
    duration_ms: activeDuration(entries),
  };
}

/** Returns whether a session began in this log; then its next initialisation continues it. */
export function hasStarted(entries: readonly Entry[], session_id: string): boolean {
  return entries.some(({ event, session_id: of }) =>
    of === session_id && (event === "session:start" || event === "session:resume")
  );
}

/** Returns the milliseconds that a run was active. Time spent waiting for approvals does not count. */
function activeDuration(entries: readonly Entry[]): number {
  let active_ms = 0;
  let is_active = true;
  let previous: number | null = null;
  for (const { event, ts, data } of entries) {
    const now = Date.parse(ts);
    // the clock may have been set back, or be another server's
    if (is_active && previous !== null) active_ms += Math.max(0, now - previous);
    previous = now;
    if (event === "run:status" || event === "run:start") is_active = data.status === "running";
  }
  return active_ms;
}

/**
 * Returns the earlier question about the same tool call with the same arguments. Redacted arguments have no
 * comparable hash; for them the call id alone decides, because an interrupted call is never repeated.
 */
export function knownApproval(
  approvals: readonly Approval[],
  { tool_call_id, args_hash, action }: Pick<ApprovalRequest, "tool_call_id" | "args_hash" | "action">,
  session_id: string,
): KnownApproval | null {
  const found = approvals.findLast((approval) =>
    approval.session_id === session_id && approval.tool_call_id === tool_call_id &&
    approval.action === action &&
    (approval.args_hash === args_hash || JSON.stringify(approval.tool_input).includes(REDACTED))
  );
  if (!found) return null;
  return {
    request: requestOf(found),
    answer: found.status === "pending" ? null : {
      decision: found.decision ?? "deny",
      reason: found.reason ?? null,
      decided_by: found.decided_by ?? null,
    },
  };
}

/** Returns the question of an approval. */
export function requestOf(approval: Approval): ApprovalRequest {
  return { ...approval, approval_id: approval.id };
}
