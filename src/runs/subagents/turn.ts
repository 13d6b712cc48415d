/** A sub-agent's turn: whether its prompt may be asked at all, and its session from mounting to clean-up. */
import type { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { Outcome } from "../../kernel/session/outcome.ts";
import type { Session } from "../../kernel/session/session.ts";
import { errorCode, PreampError } from "../../sdk/errors.ts";
import { failedOutcome } from "../run/outcomes.ts";
import { messageTokens } from "../../sdk/token_estimate.ts";

/** The share of a context window that the first prompt of an agent may take (W-33): a prompt is never compacted. */
const PROMPT_SHARE = 0.5;

/** How a child's turn went. */
export interface ChildTurn {
  readonly outcome: Outcome;
  /** Whether its modules could be mounted: else there is nothing to keep. */
  readonly was_initialised: boolean;
}

/** Runs a child's turn; it stops with its parent. Rejects only when the log cannot be kept. */
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

/** A prompt that the run's tokens cannot pay for is refused before anything is made. */
export function checkTokenBudget(instruction: string, ceilings: RunLimitGuard): void {
  const tokens = messageTokens({ role: "user", content: instruction });
  if (tokens < ceilings.tokens_left) return;
  throw limitReached(
    "max_total_tokens",
    `its prompt takes about ${tokens} tokens, and ${ceilings.tokens_left} are left of the run's`,
  );
}

/** A prompt that fills the window cannot be compacted away: every request of the agent would carry it (W-33). */
function checkWindow(prompt: string, child: Session): void {
  const window = child.context_window;
  if (window === null) return;
  const tokens = messageTokens({ role: "user", content: prompt });
  const max_tokens = Math.floor(window * PROMPT_SHARE);
  if (tokens <= max_tokens) return;
  throw new PreampError(
    "context_overflow",
    `Cannot run the agent: its prompt takes about ${tokens} tokens, more than the ${max_tokens} that half of its model's window has: ` +
      "ask for less, or inherit less context",
  );
}

/** Returns the error of a spawn that a limit refuses. */
export function limitReached(name: string, fact: string): PreampError {
  return new PreampError("limit_reached", `Cannot spawn an agent: ${name}: ${fact}`, {
    facts: { limit: name },
  });
}
