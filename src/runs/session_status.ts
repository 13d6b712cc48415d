/** How a session stands, with its counters over all of its runs (behaviour.md §4.5). A fold of the log, as the run object is. */
import type { Counters } from "../sdk/session_counters.ts";
import type { Outcome } from "../kernel/session/outcome.ts";
import type { JsonObject } from "../sdk/json.ts";
import { type SessionState, SessionStatus } from "../sdk/session_status.ts";

/** How the last run of a session ended. */
export interface LastRun {
  readonly status: SessionState;
  readonly error: JsonObject | null;
}

/** Returns how a run that ended so leaves its session: a run that reached a limit or was denied has ended in order. */
export function lastRunOf({ status, error }: Pick<Outcome, "status" | "error">): LastRun {
  const ended = status === "failed" || status === "cancelled" ? status : "completed";
  return { status: ended, error: error && { ...error } };
}

/** Returns the status of a session from its counters. */
export function statusFrom(
  session: { id: string; created_at: string },
  counters: Counters | undefined,
  total_messages: number,
  rest: {
    status?: SessionState;
    ended_at?: string | null;
    last_activity?: string;
    last_error?: JsonObject | null;
  },
): SessionStatus {
  const { tool_invocations = 0, tool_successes = 0, total_input_tokens = 0, total_output_tokens = 0 } =
    counters ?? {};
  return SessionStatus({
    session_id: session.id,
    started_at: session.created_at,
    total_messages,
    tool_invocations,
    tool_successes,
    tool_failures: tool_invocations - tool_successes, // calls that never ran failed, and are in neither
    total_input_tokens,
    total_output_tokens,
    cost_usd: counters?.cost_usd ?? null,
    ...rest,
  });
}
