/**
 * Earlier answers that apply to a question. Remembered ones also hold for later questions of their session
 * (`remember` of an approval): they are stored with the session as a projection of its log, and do not hold
 * in other sessions, sub-agents or forks. Known ones are those of an interrupted run to the same question.
 */
import type { ApprovalMatch, ApprovalRequest, Entry, KnownApproval, QuestionKey } from "../../kernel/host.ts";
import { REDACTED } from "../../policy/redact.ts";
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

/**
 * Returns the earlier question about the same tool call with the same arguments. Redacted arguments have no
 * comparable hash; for them the call id alone decides, because an interrupted call is never repeated.
 */
export function knownApproval(
  approvals: readonly Approval[],
  { tool_call_id, args_hash, action }: QuestionKey,
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
