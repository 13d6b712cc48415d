/**
 * Asks a person for approval: one approval per question, bound to the exact arguments, with a timeout that
 * the kernel enforces. The host stores the question and delivers it: see src/docs/http.md#runs.
 */
import { canonicalHash } from "../sdk/digest.ts";
import { errorMessage } from "../sdk/errors.ts";
import { deepFreeze, toPlain, toPlainObject } from "../sdk/json.ts";
import { type ApprovalOutcome, approvalOutcome, rememberScopeOf, userDenied } from "../sdk/hook_outcomes.ts";
import type { ApprovalOption, ApprovalQuestion, JsonObject } from "../sdk/types.ts";
import { type SessionContext, withoutEnvelope } from "./session_context.ts";
import { onAbort } from "../sdk/abortable.ts";
import type {
  ApprovalDecision,
  ApprovalMatch,
  ApprovalRequest,
  LimitQuestion,
  RememberedAnswer,
} from "./host.ts";

/** Subject of a question: a tool call, or the data of another event. */
export interface ApprovalSubject {
  event: string;
  tool_name: string | null;
  tool_call_id: string | null;
  tool_input: JsonObject | null;
  /** Risk that the tool declares. */
  risk_level: string;
  /** Returns what the call would do; absent: its tool does not say. */
  preview?: () => Promise<string>;
  /** Data of the event; hashed in place of the input when the subject is not a tool call. */
  data: JsonObject;
  /** The limit that the person is asked to raise. */
  limit?: LimitQuestion;
  /** Whether a running tool call may be what asks, and waits for the answer. */
  may_be_in_call: boolean;
}

/** A question of a hook, or of the runtime. */
type Question = Omit<ApprovalQuestion, "hook_name"> & { readonly hook_name: string | null };

/** Milliseconds that a tool has to say what a call would do, and the longest text that is stored of it. */
const PREVIEW_MS = 2_000;
const MAX_PREVIEW_CHARS = 20_000;

/** Longest wait for a person, in seconds: a year, so that the end is a valid date. */
const LONGEST_TIMEOUT_S = 31_536_000;

/**
 * Asks a person and waits for the answer. Emits `approval:required` and exactly one of `approval:granted` and
 * `approval:denied`. The request is one frozen object that is logged, displayed and stored; its `tool_input`
 * is the input that runs.
 */
export async function askForApproval(
  session: SessionContext,
  question: Question,
  subject: ApprovalSubject,
): Promise<ApprovalOutcome> {
  const { host, hooks } = session;
  const asked = subject.tool_input ??
    { ...withoutEnvelope(subject.data), iteration: session.turn?.iteration ?? 0 };
  const args_hash = canonicalHash(toPlainObject(asked));
  const action = subject.tool_name === null ? subject.event : "execute";
  const { tool_call_id, tool_name } = subject;
  const known = session.turn?.recovered
    ? host.knownApproval?.({ tool_call_id, args_hash, action }, session.session_id) ?? null
    : null;
  if (known?.answer) return outcomeOf(known.answer, question);
  const pattern = question.pattern === undefined ? {} : { pattern: question.pattern };
  const { prompt, hook_name } = question;
  const match = { action, tool_name, tool_call_id, args_hash, prompt, hook_name, ...pattern };
  const remembered = known ? null : host.rememberedApproval?.(match, session.session_id) ?? null;
  if (remembered) return await applyRemembered(session, remembered, match);
  const preview = known ? {} : await previewOf(session, subject);
  const timeout_ms = known
    ? Math.max(0, Date.parse(known.request.expires_at) - host.clock.now())
    : timeoutOf(session, question) * 1000;
  const request: ApprovalRequest = deepFreeze(
    known?.request ?? {
      approval_id: host.newId("apr"),
      ...match,
      tool_input: subject.tool_input,
      ...preview,
      ...(subject.limit ? { limit: subject.limit } : {}),
      risk_level: question.risk_level ?? subject.risk_level,
      options: toPlain(question.options) as ApprovalOption[], // a copy
      default: question.default,
      expires_at: new Date(host.clock.now() + timeout_ms).toISOString(),
    },
  );
  if (!known) await hooks.emit("approval:required", { ...request });
  const resumes = subject.may_be_in_call ? pauseCalls(session) : [];
  const answer = await session.run_limits.paused(() => waitForAnswer(session, request, timeout_ms)).catch(
    (error) => {
      host.warn("approval_failed", errorMessage(error));
      return { decision: "deny", reason: "The approval system failed", decided_by: null }; // fail closed
    },
  );
  for (const resume of resumes) resume();
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

/** Returns what an answer means. The reason of an answer that no person gave is not a person's. */
function outcomeOf(
  answer: ApprovalDecision | null,
  question: Parameters<typeof approvalOutcome>[1],
): ApprovalOutcome {
  const said = answer && answer.decided_by !== null ? answer.reason : null;
  return approvalOutcome(answer?.decision ?? null, question, said);
}

/** Resolves to what a call would do; empty without an answer of its tool in time. */
async function previewOf(
  { host }: SessionContext,
  { preview }: ApprovalSubject,
): Promise<Pick<ApprovalRequest, "preview">> {
  if (!preview) return {};
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const stopTimer = host.clock.later(PREVIEW_MS, () => resolve(null));
  try {
    const text = await Promise.race([preview(), late]);
    return text ? { preview: text.slice(0, MAX_PREVIEW_CHARS).toWellFormed() } : {};
  } catch (error) {
    host.warn("preview_failed", errorMessage(error));
    return {}; // the question has the input
  } finally {
    stopTimer();
  }
}

/** Pauses the deadlines of all running tool calls: an event does not name the call whose tool emits it. */
function pauseCalls({ turn }: SessionContext): (() => void)[] {
  return turn?.calls.flatMap(({ deadline }) => deadline?.pause(false) ?? []) ?? [];
}

/** Returns the seconds that a person has to answer: the hook's timeout, at most the server's. */
function timeoutOf({ host, limits }: SessionContext, { timeout, hook_name }: Question): number {
  const maximum = Math.min(limits.approval_timeout, LONGEST_TIMEOUT_S);
  if (timeout === null || timeout <= maximum) return timeout ?? maximum;
  const message =
    `Hook "${hook_name}" gives a person ${timeout} s to answer; limits.approval_timeout is ${maximum}`;
  host.warn("approval_timeout_lowered", message);
  return maximum;
}

/** Applies an earlier answer of this session: emits its event without asking a person. */
async function applyRemembered(
  session: SessionContext,
  answer: RememberedAnswer,
  match: ApprovalMatch,
): Promise<ApprovalOutcome> {
  const { approval_id, allowed, decision, decided_by, recorded } = answer;
  const { tool_name, tool_call_id, args_hash, prompt, pattern } = match;
  if (!recorded || !session.turn?.recovered) {
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
  return allowed ? { allowed, reason: null } : { allowed, reason: userDenied(prompt) };
}

async function waitForAnswer(
  session: SessionContext,
  request: ApprovalRequest,
  timeout_ms: number,
): Promise<ApprovalDecision | null> {
  const { host, cancellation } = session;
  const stop = new AbortController();
  const stopTimer = host.clock.later(timeout_ms, () => stop.abort("timeout"));
  const ignore = onAbort(cancellation.any_signal, () => stop.abort("cancelled"));
  try {
    return await host.ask(request, stop.signal, session.session_id);
  } finally {
    stopTimer();
    ignore();
  }
}
