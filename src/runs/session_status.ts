/** Computes the status of a session and its counters over all of its runs. */
import type { Outcome } from "../kernel/session/outcome.ts";
import type { JsonObject } from "../sdk/json.ts";
import { type Counters, type SessionState, SessionStatus } from "../sdk/session_status.ts";

/** Outcome of a session's last run. */
export interface LastRun {
  readonly status: SessionState;
  readonly error: JsonObject | null;
}

/**
 * Returns the state of a session after a run. Runs that reached a limit or were denied count as completed.
 */
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
    // calls that were not executed count as neither success nor failure
    tool_failures: tool_invocations - tool_successes,
    total_input_tokens,
    total_output_tokens,
    cost_usd: counters?.cost_usd ?? null,
    ...rest,
  });
}
