/**
 * Answers of a person that hold for later questions of their session (behaviour.md §9.1, `remember`): kept with the session, a
 * fold of its log, and never another session's, a sub-agent's or a fork's either.
 */
import type { ApprovalMatch, Entry } from "../../kernel/host.ts";
import type { Approval, RememberedApproval } from "../types.ts";

/** Answers that a session keeps; the oldest goes first. Our choice: they are looked through for each question. */
const MAX_REMEMBERED = 256;

/** Returns the answers of a session once this known is among them; the same when it holds for its own question alone. */
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

/** Returns the answer that holds for a question, the latest first; null when there is none. */
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
