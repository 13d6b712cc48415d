/** Restores a run of a crashed process from its log, and records that it continues. */
import { allows } from "../../sdk/hook_actions.ts";
import { draftEntry } from "../../kernel/host.ts";
import type { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { RecoveredTurn } from "../../kernel/session/turn_recovery.ts";
import { type OrphanedRun, requestOf, turnStateOf, usedBefore } from "../scheduler/crash_state.ts";
import type { HostedRun, SessionHost } from "./session_host.ts";

/** The run that is restored. */
type RestoredRun = Pick<HostedRun, "session_id" | "log" | "projection" | "approvalQueue"> & {
  readonly limitGuard: RunLimitGuard;
};

/** Restores projection, log, approvals and used limits; returns the state of the interrupted turn, if any. */
export function restoreRun(
  { input, entries }: OrphanedRun,
  { session_id, log, projection, approvalQueue, limitGuard }: RestoredRun,
): RecoveredTurn | null {
  for (const entry of entries) projection.add(entry);
  log.continueAfter(entries);
  const recovered = turnStateOf(entries, session_id, input.resume);
  limitGuard.restore(usedBefore(projection, entries, recovered));
  for (const { status, id } of projection.approvals) {
    if (status === "pending") approvalQueue.expect(id);
  }
  return recovered;
}

/**
 * Records that the run continues in this process. Denies the open questions of its sub-agents, which do not
 * continue.
 */
export async function announceRecovery(
  { entries }: OrphanedRun,
  { session_id, projection, approvalQueue }: RestoredRun,
  host: SessionHost,
): Promise<void> {
  const status = projection.status === "awaiting_approval" ? "awaiting_approval" : "running";
  await host.status({ status, resumed: true });
  for (const approval of projection.approvals) {
    const { id, session_id: asked_by, tool_name, tool_call_id, args_hash, options } = approval;
    if (approval.status !== "pending" || asked_by === session_id) continue;
    const answer = await approvalQueue.drop(requestOf(approval), "its sub-agent was interrupted");
    const question = entries.find(({ data }) => data.approval_id === id);
    const decision = { approval_id: id, tool_name, tool_call_id, args_hash, ...answer };
    const event = allows(answer.decision, options) ? "approval:granted" : "approval:denied";
    const { parent_id = null, turn_id, iteration } = question ?? {};
    await host.record(draftEntry(event, asked_by, decision, { parent_id, turn_id, iteration }));
  }
}
