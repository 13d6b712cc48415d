/** Reads recorded results of hooks and answers to approvals. */
import type { ApprovalDecision, ApprovalRequest, Entry } from "../../kernel/host.ts";
import { noopEmission } from "../../sdk/hook_chain.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { ApprovalQuestion, Emission, Injection } from "../../sdk/types.ts";
import { callOf, type RecordedEvents } from "./recorded_events.ts";

/** Returns the emission that a recorded entry resulted in. */
export function emissionOf(entry: Entry, data: JsonObject, recorded: RecordedEvents): Emission {
  const { verdict } = entry;
  const emission = noopEmission(verdict?.modified ? { ...entry.data } : data);
  if (!verdict) return emission;
  const injections = (verdict.injections ?? []) as unknown as Injection[]; // written by the kernel
  const [first] = injections;
  const question = verdict.action === "ask_user" ? questionOf(entry, recorded) : null;
  return {
    ...emission,
    action: verdict.action as Emission["action"], // written by the kernel
    hook_name: verdict.hook_name,
    reason: verdict.reason ?? null,
    modified: verdict.modified === true,
    injections: injections.map((injection) => ({ ...injection })),
    context_injection: first ? injections.map(({ text }) => text).join("\n\n") : null,
    context_injection_role: first?.role ?? "system",
    ephemeral: first?.ephemeral ?? false,
    append_to_last_tool_result: injections.some((injection) => injection.append_to_last_tool_result),
    ...(question ? { approval: question, approval_prompt: question.prompt } : {}),
  };
}

/**
 * Returns the recorded question, or what is recorded of it: the prompt, when a remembered approval answered
 * it; nothing, when the call could not run. The kernel's defaults take the place of the rest.
 */
function questionOf({ seq, event, data, verdict }: Entry, recorded: RecordedEvents): ApprovalQuestion {
  const call = event === "tool:pre" ? callOf(data) : null;
  // it keeps its wording after a recovery
  const nearest = (wanted: (entry: Entry) => boolean) =>
    recorded.find(seq, wanted) ?? recorded.findBefore(wanted);
  const asked = nearest((other) =>
    other.event === "approval:required" &&
    (call === null ? other.data.action === event : other.data.tool_call_id === call)
  ) ?? nearest((other) => other.data.remembered === true && other.data.tool_call_id === call);
  const { prompt, options, expires_at, default: default_, risk_level, pattern } =
    (asked?.data ?? {}) as Partial<ApprovalRequest>; // written by the kernel
  return {
    prompt: prompt ?? "Allow this operation?",
    options: options ?? ["Allow", "Deny"],
    timeout: asked && expires_at
      ? Math.max(0.001, (Date.parse(expires_at) - Date.parse(asked.ts)) / 1000)
      : null,
    default: default_ ?? "deny",
    hook_name: verdict?.hook_name ?? "",
    ...(risk_level === undefined ? {} : { risk_level }),
    ...(pattern === undefined ? {} : { pattern }),
  };
}

/** Returns the decision on a question: null without an approval system, undefined if it is not recorded. */
export function decisionOf(
  recorded: RecordedEvents,
  approval_id: string,
): ApprovalDecision | null | undefined {
  const entry = recorded.find(
    0,
    ({ event, data }) =>
      (event === "approval:granted" || event === "approval:denied") && data.approval_id === approval_id,
  );
  if (!entry) return undefined;
  const { decision, reason, decided_by } = entry.data as unknown as ApprovalDecision; // written by the kernel
  if (reason === "No approval system available" && decided_by === null) return null;
  return { decision, reason, decided_by };
}

/** Returns a session's cleanup report with the recorded results of modules that do not run in a replay. */
export function withRecordedCleanups(report: JsonObject, recorded: RecordedEvents): JsonObject {
  const in_log = recorded.find(0, ({ event }) => event === "session:cleanup")?.data;
  if (!in_log || !Array.isArray(in_log.failed) || !Array.isArray(report.failed)) return report;
  const own = [...report.failed];
  const failed = in_log.failed.filter(isObject)
    .flatMap((failure) => recorded.isOwnModule(failure.module_id) ? own.splice(0, 1) : [failure]);
  return { ...report, ran: Math.max(Number(report.ran), Number(in_log.ran)), failed: [...failed, ...own] };
}

export function answersOf(recorded: RecordedEvents, from: number, data: JsonObject): JsonObject[] {
  const decided = recorded.find(
    from,
    (entry) => callOf(entry.data) === callOf(data) && Array.isArray(entry.data.decisions),
  );
  return decided ? (decided.data.decisions as unknown[]).filter(isObject) : [];
}

/**
 * Returns the text of a steering message and of those queued with it; none when an earlier entry was queued
 * with it.
 */
export function steeringTexts({ seq, data }: Entry, recorded: RecordedEvents): string[] {
  const steering = recorded.all(({ event }) => event === "orchestrator:steering_injected");
  const before = steering.findLast((entry) => entry.seq < seq);
  if (before && Number(before.data.queued_remaining) > 0) return [];
  const queued = Number(data.queued_remaining);
  const later = steering.filter((entry) => entry.seq > seq).slice(0, queued).map((entry) => entry.data);
  const texts = [data, ...later].map(({ content }) => String(content));
  // the process ended before the others were recorded
  while (texts.length <= queued) texts.push("(steering message that was not recorded)");
  return texts;
}
