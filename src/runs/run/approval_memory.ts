/**
 * Remembered approvals: answers that also hold for later questions of their session (`remember` of an
 * approval). They are stored with the session as a projection of its log. They do not hold in other sessions,
 * sub-agents or forks.
 */
import type { ApprovalMatch, Entry } from "../../kernel/host.ts";
import type { Approval, RememberedApproval } from "../types.ts";

/**
 * Maximum number of remembered answers of a session; the oldest are dropped. All are searched for each
 * question.
 */
const MAX_REMEMBERED = 256;

/**
 * Returns a session's remembered answers including this one. Returns the same array when the answer is not to
 * be remembered.
 */
export function storeApproval(
  before: readonly RememberedApproval[],
  approval: Approval,
  { event, data }: Entry,
): readonly RememberedApproval[] {
  const scope = data.remember;
  if (scope !== "session" && scope !== "pattern") return before;
  const { id: approval_id, action, tool_name, hook_name } = approval;
  const answer: RememberedApproval = {
    approval_id,
    action,
    tool_name,
    hook_name,
    scope,
    holds_for: keyOf(approval, scope),
    allowed: event === "approval:granted",
    decision: String(data.decision),
    decided_by: data.decided_by as string | null, // written by the kernel
  };
  return [...before.filter((known) => !isLike(known, approval)), answer].slice(-MAX_REMEMBERED);
}

/** Returns the latest remembered answer to a question, or null. */
export function findApproval(
  answers: readonly RememberedApproval[],
  question: ApprovalMatch,
): RememberedApproval | null {
  return answers.findLast((answer) => isLike(answer, question)) ?? null;
}

function isLike(answer: RememberedApproval, question: ApprovalMatch): boolean {
  return answer.action === question.action && answer.tool_name === question.tool_name &&
    answer.hook_name === question.hook_name && answer.holds_for === keyOf(question, answer.scope);
}

function keyOf(
  { prompt, pattern, args_hash }: Pick<ApprovalMatch, "prompt" | "pattern" | "args_hash">,
  scope: "session" | "pattern",
): string {
  return scope === "session" ? prompt : pattern ?? args_hash;
}
