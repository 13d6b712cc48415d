/**
 * Asking a person: one approval per question, bound to the exact arguments, with a timeout the kernel enforces. Who is
 * asked and where the question is kept is the host's business (behaviour.md §9.1; http.md, Approvals).
 */
import { canonicalHash } from "../../sdk/digest.ts";
import { errorMessage } from "../../sdk/errors.ts";
import { deepFreeze, toPlain, toPlainObject } from "../../sdk/json.ts";
import type { ApprovalOption, ApprovalQuestion, JsonObject } from "../../sdk/types.ts";
import type { SessionContext } from "../session/session_context.ts";
import { later } from "../timeouts.ts";
import type { ApprovalDecision, ApprovalMatch, ApprovalRequest, RememberedAnswer } from "../host.ts";

/** What the question is about: a tool call, or another event's data. */
export interface ApprovalSubject {
  event: string;
  tool_name: string | null;
  tool_call_id: string | null;
  tool_input: JsonObject | null;
  /** Risk the tool declares. */
  risk_level: string;
  /** Data of an event that is no tool call; hashed in place of the input. */
  data: JsonObject;
}

/** What came of it. */
export interface ApprovalOutcome {
  allowed: boolean;
  /** Why not; empty when allowed. */
  reason: string;
}

/** Longest wait for a person, in seconds: a year; a date must be able to tell the end of it. */
const LONGEST_TIMEOUT_S = 31_536_000;

const ALLOWING: ReadonlySet<string> = new Set(["allow", "allow once", "allow always"]);

/**
 * Asks, waits, and says what came of it. Emits `approval:required` and exactly one of `approval:granted`, `approval:denied`. What is
 * told, shown, stored and hashed is one frozen object, and its `tool_input` is the input that runs.
 */
export async function askForApproval(
  session: SessionContext,
  question: ApprovalQuestion,
  subject: ApprovalSubject,
): Promise<ApprovalOutcome> {
  const { host, hooks } = session;
  const args_hash = canonicalHash(toPlainObject(subject.tool_input ?? subject.data));
  const action = subject.tool_name === null ? subject.event : "execute";
  const { tool_call_id, tool_name } = subject;
  const known = host.knownApproval?.({ tool_call_id, args_hash, action }, session.session_id) ?? null;
  if (known?.answer) return outcomeOf(known.answer, question);
  const pattern = question.pattern === undefined ? {} : { pattern: question.pattern };
  const { prompt, hook_name } = question;
  const asked = { action, tool_name, tool_call_id, args_hash, prompt, hook_name, ...pattern };
  const before = known ? null : host.rememberedApproval?.(asked, session.session_id) ?? null;
  if (before) return await applyRemembered(session, before, asked);
  const timeout_ms = known
    ? Math.max(0, Date.parse(known.request.expires_at) - host.clock.now())
    : timeoutOf(session, question) * 1000;
  const request: ApprovalRequest = deepFreeze(
    known?.request ?? {
      approval_id: host.newId("apr"),
      tool_name: subject.tool_name,
      tool_call_id: subject.tool_call_id,
      tool_input: subject.tool_input,
      args_hash,
      action,
      risk_level: question.risk_level ?? subject.risk_level,
      prompt: question.prompt,
      options: toPlain(question.options) as ApprovalOption[], // a copy of it
      default: question.default,
      expires_at: new Date(host.clock.now() + timeout_ms).toISOString(),
      hook_name: question.hook_name,
      ...pattern,
    },
  );
  if (!known) await hooks.emit("approval:required", { ...request });
  const answer = await session.run_limits.paused(() => waitForAnswer(session, request, timeout_ms)).catch(
    (error) => {
      host.warn("approval_failed", errorMessage(error));
      return { decision: "deny", reason: "The approval system failed", decided_by: null }; // fail closed (behaviour.md §9.1)
    },
  );
  const outcome = outcomeOf(answer, request);
  const remember = answer ? rememberScopeOf(answer.decision, request.options) : null;
  await hooks.emit(outcome.allowed ? "approval:granted" : "approval:denied", {
    approval_id: request.approval_id,
    tool_name: request.tool_name,
    tool_call_id: request.tool_call_id,
    args_hash: request.args_hash,
    decision: answer?.decision ?? "deny",
    reason: answer === null ? outcome.reason : answer.reason,
    decided_by: answer?.decided_by ?? null,
    ...(remember ? { remember, ...pattern } : {}),
  });
  return outcome;
}

/** Returns the seconds that a person has to answer: what the hook says, at most what the server allows. */
function timeoutOf({ host, limits }: SessionContext, { timeout, hook_name }: ApprovalQuestion): number {
  const most = Math.min(limits.approval_timeout, LONGEST_TIMEOUT_S);
  if (timeout === null || timeout <= most) return timeout ?? most;
  const message =
    `Hook "${hook_name}" gives a person ${timeout} s to answer; limits.approval_timeout is ${most}`;
  host.warn("approval_timeout_lowered", message);
  return most;
}

/** An answer of this session that was given to hold for the like: told, and nobody is asked. */
async function applyRemembered(
  session: SessionContext,
  answer: RememberedAnswer,
  asked: ApprovalMatch,
): Promise<ApprovalOutcome> {
  const { approval_id, allowed, decision, decided_by, recorded: told } = answer;
  const { tool_name, tool_call_id, args_hash, prompt, pattern } = asked;
  if (!told) {
    await session.hooks.emit(allowed ? "approval:granted" : "approval:denied", {
      approval_id,
      tool_name,
      tool_call_id,
      args_hash,
      decision,
      reason: null,
      decided_by,
      remembered: true,
      prompt,
      ...(pattern === undefined ? {} : { pattern }),
    });
  }
  return allowed ? { allowed, reason: "" } : { allowed, reason: `User denied: ${shorten(prompt)}` };
}

async function waitForAnswer(
  session: SessionContext,
  request: ApprovalRequest,
  timeout_ms: number,
): Promise<ApprovalDecision | null> {
  const { host, cancellation } = session;
  const stop = new AbortController();
  const stopTimer = later(host.clock, timeout_ms, () => stop.abort("timeout"));
  const cancel = () => stop.abort("cancelled");
  if (cancellation.is_cancelled) cancel();
  else cancellation.any_signal.addEventListener("abort", cancel, { once: true });
  const watched = cancellation.any_signal;
  try {
    return await host.ask(request, stop.signal, session.session_id);
  } finally {
    stopTimer();
    watched.removeEventListener("abort", cancel);
  }
}

function outcomeOf(
  answer: ApprovalDecision | null,
  question: Pick<ApprovalQuestion, "prompt" | "options" | "default">,
): ApprovalOutcome {
  if (answer === null) return { allowed: false, reason: "No approval system available" };
  const prompt = shorten(question.prompt);
  if (answer.decision === "timeout") {
    if (question.default === "allow") return { allowed: true, reason: "" };
    return { allowed: false, reason: `Approval timeout - denied by default: ${prompt}` };
  }
  return allows(answer.decision, question.options)
    ? { allowed: true, reason: "" }
    : { allowed: false, reason: `User denied: ${prompt}` };
}

/** Returns whether a decision allows: `allow`, an option object's effect, or upstream's three words (APPR-02). */
export function allows(decision: string, options: readonly ApprovalOption[]): boolean {
  for (const option of options) {
    if (typeof option === "object" && option.label.toLowerCase() === decision.toLowerCase()) {
      return option.effect === "allow";
    }
  }
  return ALLOWING.has(decision.toLowerCase());
}

/**
 * Returns what else a decision holds for: its option's `remember`; `Allow always` among plain words the session, as upstream has
 * it (behaviour.md §9.1); null: nothing.
 */
export function rememberScopeOf(
  decision: string,
  options: readonly ApprovalOption[],
): "session" | "pattern" | null {
  for (const option of options) {
    const label = typeof option === "string" ? option : option.label;
    if (label.toLowerCase() !== decision.toLowerCase()) continue;
    if (typeof option === "string") return label.toLowerCase() === "allow always" ? "session" : null;
    return option.remember === "session" || option.remember === "pattern" ? option.remember : null;
  }
  return null;
}

function shorten(prompt: string): string {
  const points = [...prompt];
  return points.length <= 200 ? prompt : `${points.slice(0, 200).join("")}...`;
}
