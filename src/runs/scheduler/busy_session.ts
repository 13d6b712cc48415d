/** What a second run of a session does while the first has not ended. */
import { PreampError } from "../../sdk/errors.ts";
import type { RunRequest } from "../types.ts";

/**
 * Returns what a new run does with the run that has its session: cancels it, waits for its end, or is
 * refused. A run that waits for a person is superseded, whatever `if_busy` says.
 */
export function whenBusy(
  if_busy: RunRequest["if_busy"],
  awaits_approval: boolean,
): "supersede" | "cancel" | "wait" | "refuse" {
  if (awaits_approval) return "supersede";
  if (if_busy === "cancel") return "cancel";
  return if_busy === "queue" ? "wait" : "refuse";
}
