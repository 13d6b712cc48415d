/** Runs a sub-agent's turn, after checking that its prompt fits. */
import type { RunLimitGuard } from "../../kernel/run_limits.ts";
import { failedOutcome, type Outcome } from "../../kernel/outcome.ts";
import type { Session } from "../../kernel/session.ts";
import { errorCode, PreampError } from "../../sdk/errors.ts";
import { messageTokens } from "../../sdk/token_estimate.ts";

/** Maximum share of the context window for a sub-agent's prompt, which cannot be compacted. */
const PROMPT_SHARE = 0.5;

export interface ChildTurn {
  readonly outcome: Outcome;
  /** Whether its modules were mounted; otherwise there is nothing to store. */
  readonly was_initialised: boolean;
}

/**
 * Runs a sub-agent's turn. Cancellation of the parent cancels it. Rejects only when the log cannot be stored.
 */
export async function runChildTurn(parent: Session, child: Session, prompt: string): Promise<ChildTurn> {
  parent.cancellation.registerChild(child.cancellation);
  const unsubscribe = parent.cancellation.onCancel(() => child.emitCancelRequested());
  try {
    return await initializeAndRun(child, prompt);
  } finally {
    unsubscribe();
    parent.cancellation.unregisterChild(child.cancellation);
  }
}

async function initializeAndRun(child: Session, prompt: string): Promise<ChildTurn> {
  let was_initialised = false;
  let outcome: Outcome;
  try {
    await child.initialize();
    was_initialised = true;
    checkWindow(prompt, child);
    outcome = await child.execute(prompt);
  } catch (error) {
    outcome = failedOutcome(error, errorCode(error));
  }
  await child.cleanup(outcome.status);
  return { outcome, was_initialised };
}

/** Checks that the run has a model call for a sub-agent besides the last one, which its parent keeps. */
export function checkCallsLeft({ calls_left, limits: { on_limit } }: RunLimitGuard): void {
  if (calls_left > 1 || on_limit === "pause") return;
  throw limitReached("max_iterations", "the last model call of the run is kept for this session");
}

/** Checks that the run's remaining tokens cover the prompt, before anything is created. */
export function checkTokenBudget(instruction: string, limitGuard: RunLimitGuard): void {
  const tokens = messageTokens({ role: "user", content: instruction });
  if (tokens < limitGuard.tokens_left) return;
  throw limitReached(
    "max_total_tokens",
    `its prompt takes about ${tokens} tokens, and ${limitGuard.tokens_left} are left of the run's max_total_tokens`,
  );
}

/** Checks that the prompt leaves room in the context window: every request of the sub-agent contains it. */
function checkWindow(prompt: string, child: Session): void {
  const window = child.context_window;
  if (window === null) return;
  const tokens = messageTokens({ role: "user", content: prompt });
  const max_tokens = Math.floor(window * PROMPT_SHARE);
  if (tokens <= max_tokens) return;
  throw new PreampError(
    "context_overflow",
    `Cannot run the agent: its prompt takes about ${tokens} tokens, more than half of its model's context window (${max_tokens} tokens): ` +
      "ask for less, or inherit less context",
  );
}

/** Returns the error of a spawn that a limit refuses. */
export function limitReached(name: string, fact: string): PreampError {
  return new PreampError("limit_reached", `Cannot spawn an agent: ${name}: ${fact}`, {
    facts: { limit: name },
  });
}
