/**
 * Restores the run of a crashed process from its log, and records that it continues. What happens to the tool
 * calls of its turn is decided by `src/kernel/interrupted_turn.ts`.
 */
import { draftEntry, type Entry } from "../../kernel/host.ts";
import type { UsedLimits } from "../../kernel/run_limits.ts";
import { type InterruptedTurn, interruptedTurnOf } from "../../kernel/interrupted_turn.ts";
import { REDACTED } from "../../policy/redact.ts";
import { allows } from "../../sdk/hook_outcomes.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { OrphanedRun } from "../storage/run_input.ts";
import { AWAITING, type RunInput } from "../types.ts";
import { requestOf } from "./approval_memory.ts";
import type { RunProjection } from "./run_projection.ts";
import type { HostedRun, SessionHost } from "./session_host.ts";

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
): InterruptedTurn | null {
  const interrupted = interruptedTurnOf(entries, session_id, REDACTED);
  if (interrupted === null || resume === undefined) return interrupted;
  interrupted.prompted = true;
  interrupted.turn.iteration += resume.iteration;
  return interrupted;
}

/**
 * Returns how much of its limits a run had used when its process ended. `recovered`: state of the own
 * session's turn.
 */
export function usedBefore(
  projection: RunProjection,
  entries: readonly Entry[],
  recovered: InterruptedTurn | null,
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

/**
 * Returns how often the open model call of a session was lost with its process; 0 if none is open. A call
 * that outlives the patience of its host is lost again and again, and each attempt may be paid.
 */
export function lostAttempts(entries: readonly Entry[], session_id: string): number {
  let lost = 0;
  let is_open = false;
  for (const { event, data, session_id: of } of entries) {
    if (of !== session_id) continue;
    if (event === "provider:request") is_open = true;
    else if (event === "provider:response" || event === "provider:error") {
      is_open = false;
      lost = 0;
    } else if (event === "run:status" && data.resumed === true && is_open) {
      is_open = false;
      lost++;
    }
  }
  return is_open ? lost + 1 : 0;
}

/** Returns the steering texts that were received and have not joined the turn. */
export function waitingTexts(entries: readonly Entry[]): string[] {
  const waiting: string[] = [];
  const joined: string[] = [];
  for (const { event, data } of entries) {
    if (event === "run:steered") waiting.push(String(data.text));
    else if (event === "orchestrator:steering_injected") joined.push(String(data.content));
  }
  for (const text of joined) { // maybe recorded before it was received
    const index = waiting.indexOf(text);
    if (index >= 0) waiting.splice(index, 1);
  }
  return waiting;
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

/** Events after which the deltas of a session's model call are those of its answer, or known to be void. */
const SETTLES_DELTAS: ReadonlySet<string> = new Set([
  "provider:response",
  "provider:error",
  "llm:stream_aborted",
  "content_block:void",
]);

/** Returns the last streamed entry of each model call that the process did not finish. */
function lostStreams(entries: readonly Entry[]): Entry[] {
  const streaming = new Map<string, Entry>();
  for (const entry of entries) {
    if (SETTLES_DELTAS.has(entry.event)) streaming.delete(entry.session_id);
    else if (entry.event.startsWith("content_block:")) streaming.set(entry.session_id, entry);
  }
  return [...streaming.values()];
}

/** Restores projection, log and used limits; returns the state of the interrupted turn, if any. */
export function restoreRun(
  { input, entries }: OrphanedRun,
  { session_id, log, projection, limitGuard }: HostedRun,
): InterruptedTurn | null {
  for (const entry of entries) projection.add(entry);
  log.continueAfter(entries);
  const recovered = turnStateOf(entries, session_id, input.resume);
  limitGuard.raise(projection.run.limits);
  limitGuard.restore(usedBefore(projection, entries, recovered));
  return recovered;
}

/**
 * Records durably that the run continues in this process, and which streamed text is void. Denies the open
 * questions of its sub-agents, which do not continue, and all of a run that was cancelled. A limit that was
 * raised is no question any more.
 */
export async function announceRecovery(
  { entries }: OrphanedRun,
  { session_id, log, projection, approvalQueue }: HostedRun,
  host: SessionHost,
): Promise<void> {
  const status = AWAITING.has(projection.status) ? projection.status : "running";
  await host.status({ status, resumed: true });
  for (const { session_id: of, data, parent_id = null, turn_id, iteration } of lostStreams(entries)) {
    const { request_id } = data;
    await host.record(
      draftEntry("content_block:void", of, { request_id }, { parent_id, turn_id, iteration }),
    );
  }
  await log.flush();
  const is_cancelled = entries.some(({ event, session_id: of }) =>
    event === "cancel:requested" && of === session_id
  );
  for (const approval of projection.approvals) {
    const { id, session_id: asked_by, tool_name, tool_call_id, args_hash, options } = approval;
    const is_own = asked_by === session_id;
    const { limit } = approval;
    const is_raised = limit !== undefined && projection.run.limits[limit.name] !== limit.value;
    if (approval.status !== "pending" || is_own && !is_cancelled && !is_raised) continue;
    const reason = is_raised ? "raised" : is_own ? "cancelled" : "its sub-agent was interrupted";
    const answer = await approvalQueue.drop(requestOf(approval), reason, is_raised ? "allow" : "deny");
    const question = entries.find(({ data }) => data.approval_id === id);
    const decision = { approval_id: id, tool_name, tool_call_id, args_hash, ...answer };
    const event = allows(answer.decision, options) ? "approval:granted" : "approval:denied";
    const { parent_id = null, turn_id, iteration } = question ?? {};
    await host.record(draftEntry(event, asked_by, decision, { parent_id, turn_id, iteration }));
  }
}
