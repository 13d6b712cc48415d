/**
 * What a second run of a session does while the first has not ended: whether it cancels the first, and the
 * error if it is refused. `run_starter.ts` carries it out, and lets other runs wait.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { RunRequest } from "../types.ts";

/**
 * Returns whether a new run cancels the run that has its session. Otherwise it waits with `if_busy: queue`,
 * and is refused with `reject`. A run that waits for a person is always cancelled.
 */
export function cancelsActive(if_busy: RunRequest["if_busy"], awaits_approval: boolean): boolean {
  return awaits_approval || if_busy === "cancel";
}

/** Returns the error of a run whose session is in use. `fact`: by what. */
export function busyError(session_id: string, fact: string): PreampError {
  return new PreampError("session_busy", `Cannot start a run in session "${session_id}": ${fact}`);
}
