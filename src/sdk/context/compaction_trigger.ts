/** When a view is compacted, and when better not (behaviour.md §8.5; CTX-02, CTX-09 to CTX-11, CTX-16). Pure. */
import { PreampError } from "../mod.ts";
import type { Calibration } from "./token_calibration.ts";
import type { Config } from "./config.ts";
import { planCompaction, type SizeTarget } from "./compaction_levels.ts";
import type { Transcript } from "./transcript.ts";

/** A compaction that does not have to be must free this share of the budget: each one costs the provider's cache. */
const LEAST_GAIN = 0.05;

/** Limits of one request, in estimated tokens, which views are made with. */
export interface Limits {
  readonly budget: number;
  /** The budget in the provider's tokens, as it is told. */
  readonly told_budget: number;
  /** The budget without what is kept free for the notice. */
  readonly effective: number;
  /** Whether the notice's reserve is ignored because nothing would be left. */
  readonly reserve_ignored: boolean;
  /** A view of this size is compacted. */
  readonly threshold: number;
  readonly target: number;
}

/** A compaction that is to be made. */
export interface Proposal {
  readonly plan: ReturnType<typeof planCompaction>;
  readonly goal: SizeTarget;
}

/** Returns the limits that a budget and the knobs come to. */
export function limitsOf(budget: number, config: Config, calibration: Calibration): Limits {
  const rest = budget - (config.compaction_notice_enabled ? config.compaction_notice_token_reserve : 0);
  const effective = rest > 0 ? rest : budget;
  return {
    budget: Math.floor(calibration.estimateOf(budget)),
    told_budget: budget,
    effective: Math.floor(calibration.estimateOf(effective)),
    reserve_ignored: rest <= 0,
    threshold: calibration.estimateOf(effective * config.compact_threshold),
    target: Math.floor(calibration.estimateOf(effective * config.target_usage)),
  };
}

/** Returns whether a view is large enough to think about it. */
export function isDue(transcript: Transcript, limits: Limits): boolean {
  return transcript.tokens > limits.budget || transcript.tokens >= limits.threshold;
}

/** Returns the tokens that no compaction frees: system messages, the first human message as a stub, the last whole. */
export function irreducibleTokens(transcript: Transcript): number {
  const humans = transcript.units.filter((unit) => unit.kind === "human");
  const first = humans[0];
  const last = humans.at(-1);
  let tokens = transcript.system_tokens + (last?.head.tokens ?? 0);
  if (first && first !== last) {
    const stub = transcript.forms.stubbed(first.head);
    tokens += Math.min(first.head.tokens, stub ? transcript.forms.count(stub) : Infinity);
  }
  return tokens;
}

/**
 * Returns the compaction that is to be made, or null: the view fits, and either the target is out of reach or too little
 * would be gained.
 *
 * @throws {PreampError} `context_overflow` when no compaction gets the view into the budget.
 */
export function proposeCompaction(
  transcript: Transcript,
  limits: Limits,
  config: Config,
): Proposal | null {
  const { tokens } = transcript;
  const must = tokens > limits.budget;
  const irreducible = irreducibleTokens(transcript);
  const reachable = irreducible <= limits.target;
  if (!must && (!reachable || tokens < limits.threshold)) return null;
  const limit = irreducible < limits.effective ? limits.effective : limits.budget;
  // Out of reach: half of what can move at all, so that the next compaction is not the next request's.
  const target = reachable ? limits.target : Math.floor((Math.min(irreducible, limit) + limit) / 2);
  const goal = { target, limit };
  const plan = planCompaction(transcript, goal, config);
  if (plan.tokens > limits.budget) throw overflow(plan.tokens, limits.budget);
  if (!must && tokens - plan.tokens < Math.max(1, limits.effective * LEAST_GAIN)) return null;
  return { plan, goal };
}

/** Returns the error of a request that cannot be made to fit. */
export function overflow(tokens: number, budget: number): PreampError {
  return new PreampError(
    "context_overflow",
    `Cannot fit the request: its messages may take ${budget} tokens: received ${tokens} tokens that must stay (system messages, the latest user message and the calls after it); shorten them, offer fewer tools, or use a model with a larger window`,
    { facts: { tokens, budget } },
  );
}
