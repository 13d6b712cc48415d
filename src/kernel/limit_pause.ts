/**
 * Waits at a limit of the run, when the plan says `on_limit: pause`: a person is asked to raise it, and then
 * the step is tried again. The question is an approval with a `limit`.
 */
import type { LimitQuestion } from "./host.ts";
import { askForApproval } from "./approval.ts";
import { raisableLimit } from "./run_limits.ts";
import { cancelledError, type SessionContext } from "./session_context.ts";

/** The action of an approval that raises a limit. */
const ACTION = "raise_limit";

/** What is known of a step. */
interface StepFacts {
  /** Returns what a model call takes at most. */
  readonly next?: () => LimitQuestion["next"];
  /** Id of the tool call that the step is. */
  readonly tool_call_id?: string | null;
}

/**
 * Returns the result of a step, or a promise of it when the step has to wait for a person.
 *
 * @throws the error of the step, also when the limit is not raised.
 */
export function withinLimits<T>(
  session: SessionContext,
  step: () => T,
  { next = () => null, tool_call_id = null }: StepFacts,
): T | Promise<T> {
  try {
    return step();
  } catch (error) {
    if (raisableLimit(error) === undefined) throw error;
    return afterRaise(session, step, { next, tool_call_id }, error);
  }
}

async function afterRaise<T>(
  session: SessionContext,
  step: () => T,
  { next, tool_call_id }: Required<StepFacts>,
  error: unknown,
): Promise<T> {
  while (true) {
    const { guard, limit } = raisableLimit(error) ?? {};
    if (!guard || !limit || !session.host.mayRaise?.(limit)) throw error;
    const value = guard.limits[limit];
    const question = { name: limit, value, used: guard.used(limit), next: next() };
    const is_raised = await guard.askOnce(limit, () => ask(session, question, tool_call_id));
    if (session.cancellation.is_cancelled) throw cancelledError();
    if (is_raised === null) continue; // the session that asked was cancelled, this one not
    if (!is_raised) throw error;
    try {
      return step();
    } catch (again) {
      error = again;
    }
  }
}

async function ask(
  session: SessionContext,
  limit: LimitQuestion,
  tool_call_id: string | null,
): Promise<boolean | null> {
  const { allowed } = await askForApproval(
    session,
    {
      prompt: promptOf(limit),
      options: ["allow", "deny"],
      default: "deny",
      timeout: null,
      hook_name: null,
    },
    {
      event: ACTION,
      tool_name: null,
      tool_call_id,
      tool_input: null,
      risk_level: "medium",
      data: { limit: limit.name, value: limit.value },
      may_be_in_call: true,
      limit,
    },
  );
  return session.cancellation.is_cancelled ? null : allowed;
}

function promptOf({ name, value, used, next }: LimitQuestion): string {
  const unit = UNITS[name];
  const cost = next?.cost_usd == null ? "" : `, ${next.cost_usd} US dollars`;
  const step = next === null ? "" : ` The next model call takes at most ${next.tokens} tokens${cost}.`;
  return `The run has reached ${name}: ${used} of ${value} ${unit} are used.${step} Raise the limit by as much ` +
    "again and continue?";
}

const UNITS: Readonly<Record<LimitQuestion["name"], string>> = {
  max_iterations: "model calls",
  max_tool_calls: "tool calls",
  max_total_tokens: "tokens",
  max_cost_usd: "US dollars",
};
