/**
 * Decides what the result of an event's handlers leads to: which texts are injected, and what a person's
 * answer means. Pure; the kernel and the test coordinator execute the decisions.
 */
import { PreampError } from "./errors.ts";
import type { ApprovalOption } from "./hook_result.ts";
import type { ApprovalQuestion, Emission, Injection } from "./hooks.ts";
import type { JsonObject } from "./json.ts";
import type { Message } from "./messages.ts";
import { sanitizeText } from "./tools.ts";

/** Limits of injected texts. Without a limit, a large text is reported and injected; null = unlimited. */
export interface InjectionLimits {
  /** Maximum code points of one injection. */
  readonly injection_size_limit?: number | null | undefined;
  /** Maximum tokens of all injections of a turn. */
  readonly injection_budget_per_turn?: number | null | undefined;
  /** Handling of an injection over the budget; default `warn`. */
  readonly injection_budget_mode?: "warn" | "drop" | "error" | undefined;
}

/** Code points of an injection, and tokens of a turn, above which a session without limits reports it. */
const REPORTED_ABOVE = { size: 10_240, budget: 10_000 };

/** Decision about the injections of an emission. */
export interface Admission {
  /** Injections with sanitised texts; empty if any is refused. */
  readonly admitted: Injection[];
  /** Tokens of the turn's injections, including the admitted ones. */
  readonly tokens: number;
  /** Data of the `policy:violation` events. */
  readonly violations: JsonObject[];
  /** Error for an injection over a limit; code `denied`. */
  readonly refusal: PreampError | null;
}

/**
 * Decides about an emission's injections; those of a denied operation are not injected. Texts that are empty
 * after sanitising are left out.
 *
 * @param tokens Tokens of the turn's earlier injections.
 */
export function admitInjections(
  { action, injections }: Pick<Emission, "action" | "injections">,
  tokens: number,
  limits: InjectionLimits,
): Admission {
  const { injection_size_limit: size_limit, injection_budget_per_turn: budget } = limits;
  const { injection_budget_mode: mode = "warn" } = limits;
  const admitted: Injection[] = [];
  const violations: JsonObject[] = [];
  const refused = (message: string, hook_name: string): Admission => {
    const refusal = new PreampError("denied", `Context injection exceeds ${message}`, {
      facts: { hook_name },
    });
    return { admitted: [], tokens, violations, refusal };
  };
  let total = tokens;
  for (const injection of action === "deny" ? [] : injections) {
    const { hook_name } = injection;
    const text = sanitizeText(injection.text);
    if (text === "") continue;
    const size = [...text].length;
    if (exceeds(size, size_limit, REPORTED_ABOVE.size)) {
      const limit = size_limit ?? REPORTED_ABOVE.size;
      violations.push({ kind: "injection_size", hook_name, limit, actual: size });
      if (size_limit !== undefined) return refused(`${limit} characters`, hook_name);
    }
    const actual = total + Math.floor(size / 4);
    if (exceeds(actual, budget, REPORTED_ABOVE.budget)) {
      const limit = budget ?? REPORTED_ABOVE.budget;
      violations.push({ kind: "injection_budget", hook_name, limit, actual });
      if (budget !== undefined && mode === "drop") continue;
      if (budget !== undefined && mode === "error") {
        return refused(`${limit} tokens of this turn`, hook_name);
      }
    }
    total = actual;
    admitted.push({ ...injection, text });
  }
  return { admitted, tokens: total, violations, refusal: null };
}

function exceeds(value: number, limit: number | null | undefined, reported_above: number): boolean {
  return limit !== null && value > (limit ?? reported_above);
}

/** Returns the message that an injection is stored as; `now` in milliseconds since the epoch. */
export function injectedMessage({ role, text, hook_name }: Injection, event: string, now: number): Message {
  const timestamp = new Date(now).toISOString();
  return { role, content: text, metadata: { source: "hook", hook_name, event, timestamp } };
}

/** Meaning of the answer to a question. */
export interface ApprovalOutcome {
  allowed: boolean;
  /** Reason of the denial; null when allowed. */
  reason: string | null;
}

/**
 * Returns what an answer means. `timeout` is a missing answer, `unanswered` means that no person could be
 * asked, null that there is no approval system.
 *
 * @param said Reason that the person gave; it is a part of the denial, so that the model reads it.
 */
export function approvalOutcome(
  decision: string | null,
  question: Pick<ApprovalQuestion, "prompt" | "options" | "default">,
  said: string | null = null,
): ApprovalOutcome {
  if (decision === null) return { allowed: false, reason: "No approval system available" };
  if (decision === "unanswered") {
    return { allowed: false, reason: `No one could be asked: ${shorten(question.prompt)}` };
  }
  const late = decision === "timeout";
  if (late ? question.default === "allow" : allows(decision, question.options)) {
    return { allowed: true, reason: null };
  }
  const reason = late
    ? `Approval timeout - denied by default: ${shorten(question.prompt)}`
    : userDenied(question.prompt, said);
  return { allowed: false, reason };
}

/** Returns the reason of a person's denial. */
export function userDenied(prompt: string, said: string | null = null): string {
  const reason = sanitizeText(said ?? "").trim();
  return `User denied: ${shorten(prompt)}${reason === "" ? "" : ` Their reason: ${shorten(reason, 2_000)}`}`;
}

function shorten(text: string, max = 200): string {
  const points = [...text];
  return points.length <= max ? text : `${points.slice(0, max).join("")}...`;
}

/** Returns the emission after the answer to its question: `continue` or `deny`. */
export function afterApproval(emission: Emission, { allowed, reason }: ApprovalOutcome): Emission {
  return {
    ...emission,
    action: allowed ? "continue" : "deny",
    reason,
    approval: null,
    approval_prompt: null,
  };
}

const ALLOWING: ReadonlySet<string> = new Set(["allow", "allow once", "allow always"]);

/**
 * Returns whether a decision allows: by the effect of its option, else because it is `allow`, `allow once` or
 * `allow always`. The case of letters is ignored.
 */
export function allows(decision: string, options: readonly ApprovalOption[]): boolean {
  const option = options.find((option) => typeof option === "object" && isChosen(option, decision));
  return typeof option === "object" ? option.effect === "allow" : ALLOWING.has(decision.toLowerCase());
}

/**
 * Returns what a decision also applies to: its option's `remember`, `session` for the plain option `Allow
 * always`, else null.
 */
export function rememberScopeOf(
  decision: string,
  options: readonly ApprovalOption[],
): "session" | "pattern" | null {
  const option = options.find((option) => isChosen(option, decision));
  if (typeof option === "string") return option.toLowerCase() === "allow always" ? "session" : null;
  return option?.remember === "session" || option?.remember === "pattern" ? option.remember : null;
}

function isChosen(option: ApprovalOption, decision: string): boolean {
  const label = typeof option === "string" ? option : option.label;
  return label.toLowerCase() === decision.toLowerCase();
}
