/** A run whose process is gone: what its log tells of it, beside the turn (`kernel/session/turn_recovery.ts`) (architecture.md, Resume). */
import type { ApprovalRequest, Entry, KnownApproval } from "../../kernel/host.ts";
import type { UsedLimits } from "../../kernel/run_limits.ts";
import { type RecoveredTurn, recoverTurn } from "../../kernel/session/turn_recovery.ts";
import { REDACTED } from "../../policy/redact.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { RunProjection } from "../run/run_projection.ts";
import type { StoredInput } from "../storage/run_input.ts";
import type { Approval, RunInput } from "../types.ts";

/** A run that another process began and did not end. */
export interface OrphanedRun {
  readonly input: StoredInput;
  /** What the log has of it. */
  readonly entries: readonly Entry[];
}

/**
 * Returns what modules had left of a session's state. It is told right before the step that it belongs to: where the log ends
 * with it, that step is still to come.
 */
export function stateAfter(before: JsonObject, entries: readonly Entry[], session_id: string): JsonObject {
  const state = { ...before };
  for (const { event, data, session_id: of } of entries.slice(0, -1)) {
    if (event !== "session:state" || of !== session_id || !isObject(data.set)) continue;
    for (const [key, value] of Object.entries(data.set)) {
      if (value === null) delete state[key]; // deleted
      else state[key] = value;
    }
  }
  return state;
}

/** Returns where the turn of an interrupted run stands, or null when none was begun. `resume`: it began in another run. */
export function turnStateOf(
  entries: readonly Entry[],
  session_id: string,
  resume: RunInput["resume"],
): RecoveredTurn | null {
  const recovered = recoverTurn(entries, session_id, REDACTED);
  if (recovered === null || resume === undefined) return recovered;
  return {
    ...recovered,
    prompted: true,
    iteration: recovered.iteration + resume.iteration,
    emitted: new Set([...recovered.emitted, "execution:start"]),
  };
}

/** Returns what a run had used of its ceilings when its process ended. `recovered`: where the turn of its own session stood. */
export function usedBefore(
  projection: RunProjection,
  entries: readonly Entry[],
  recovered: RecoveredTurn | null,
): UsedLimits {
  const lost = [...recovered?.calls.values() ?? []].filter((call) => call === "lost").length;
  const { used } = projection;
  return {
    ...used,
    tool_calls: used.tool_calls + lost, // whether they ran is not known: they count as if they had
    duration_ms: activeDuration(entries),
  };
}

/** Returns whether a session of a log was begun: when it is made again it goes on. */
export function hasStarted(entries: readonly Entry[], session_id: string): boolean {
  return entries.some(({ event, session_id: of }) =>
    of === session_id && (event === "session:start" || event === "session:resume")
  );
}

/** Milliseconds that a log worked for, as far as it tells: what waited for a person does not count. */
function activeDuration(entries: readonly Entry[]): number {
  let active_ms = 0;
  let is_active = true;
  let previous: number | null = null;
  for (const { event, ts, data } of entries) {
    const now = Date.parse(ts);
    if (is_active && previous !== null) active_ms += now - previous;
    previous = now;
    if (event === "run:status" || event === "run:start") is_active = data.status === "running";
  }
  return active_ms;
}

/**
 * Returns what was asked about this before; a question is the same when it is about the same call with the same arguments. Arguments
 * that were redacted have lost their hash: there the call alone counts, which is never run after an interruption.
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

/** Returns the question that an approval was made of. */
export function requestOf(approval: Approval): ApprovalRequest {
  const { id: approval_id, tool_name, tool_call_id, tool_input, args_hash, action } = approval;
  const { risk_level, prompt, options, expires_at, hook_name } = approval;
  return {
    approval_id,
    tool_name,
    tool_call_id,
    tool_input,
    args_hash,
    action,
    risk_level,
    prompt,
    options,
    default: approval.default,
    expires_at,
    hook_name,
    ...(approval.pattern === undefined ? {} : { pattern: approval.pattern }),
  };
}
