/** Decides when a view is compacted. Pure functions. */
import { PreampError } from "../base.ts";
import type { Calibration } from "./token_counter.ts";
import type { Config } from "./config.ts";
import { type CompactionCandidate, planCompaction, type SizeTarget } from "./compaction_plan.ts";
import type { Transcript } from "./transcript.ts";

/**
 * An optional compaction must free this share of the budget, because each compaction invalidates the
 * provider's cache.
 */
const LEAST_GAIN = 0.05;

/** Limits of one request, in the unit of view sizes: estimated tokens. */
export interface Limits {
  readonly budget: number;
  /** The budget in the provider's tokens. */
  readonly provider_budget: number;
  /** The budget without the reserve of the notice. */
  readonly effective: number;
  /** Whether the notice's reserve is ignored because it is not below the budget. */
  readonly reserve_ignored: boolean;
  /** Size from which a view is compacted. */
  readonly threshold: number;
  readonly target: number;
}

export interface Proposal {
  readonly plan: CompactionCandidate;
  readonly goal: SizeTarget;
}

/** Returns the limits for a budget and a configuration. */
export function limitsOf(budget: number, config: Config, calibration: Calibration): Limits {
  const rest = budget - (config.compaction_notice_enabled ? config.compaction_notice_token_reserve : 0);
  const effective = rest > 0 ? rest : budget;
  return {
    budget: Math.floor(calibration.estimateOf(budget)),
    provider_budget: budget,
    effective: Math.floor(calibration.estimateOf(effective)),
    reserve_ignored: rest <= 0,
    threshold: calibration.estimateOf(effective * config.compact_threshold),
    target: Math.floor(calibration.estimateOf(effective * config.target_usage)),
  };
}

/** Returns whether a view is large enough for a compaction. */
export function isDue(transcript: Transcript, limits: Limits): boolean {
  return transcript.tokens > limits.budget || transcript.tokens >= limits.threshold;
}

/**
 * Returns the tokens that no compaction frees: system messages, the first human message as a stub, the last
 * one in full.
 */
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
 * Returns the planned compaction. Returns null when the view fits and either the target cannot be reached or
 * too little would be freed.
 *
 * @throws {PreampError} `context_overflow` when no compaction gets the view into the budget.
 */
export function proposeCompaction(
  transcript: Transcript,
  limits: Limits,
  config: Config,
): Proposal | null {
  const { tokens } = transcript;
  const required = tokens > limits.budget;
  const irreducible = irreducibleTokens(transcript);
  const reachable = irreducible <= limits.target;
  if (!required && (!reachable || tokens < limits.threshold)) return null;
  const limit = irreducible < limits.effective ? limits.effective : limits.budget;
  // target cannot be reached: free half of the removable tokens, so that the next request needs no compaction
  // again
  const target = reachable ? limits.target : Math.floor((Math.min(irreducible, limit) + limit) / 2);
  const goal = { target, limit };
  const plan = planCompaction(transcript, goal, config);
  if (plan.tokens > limits.budget) throw overflow(plan.tokens, limits.budget);
  if (!required && tokens - plan.tokens < Math.max(1, limits.effective * LEAST_GAIN)) return null;
  return { plan, goal };
}

/** Returns the error of a request that does not fit even after compaction. */
export function overflow(tokens: number, budget: number): PreampError {
  return new PreampError(
    "context_overflow",
    `Cannot fit the request: its messages may take ${budget} tokens: received ${tokens} tokens that must stay (system messages, the latest user message and the calls after it); shorten them, offer fewer tools, or use a model with a larger window`,
    { facts: { tokens, budget } },
  );
}
