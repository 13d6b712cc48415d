/**
 * Computes the token budget of one request (src/docs/context.md#budget-of-a-request), and decides when a
 * view is compacted to fit it. Learns what a model takes when it refuses a request.
 */
import {
  type ContextOverflow,
  isObject,
  type JsonObject,
  messageTokens,
  PreampError,
  type Provider,
  type RequestOptions,
} from "../base.ts";
import type { Config } from "./config.ts";
import type { Calibration } from "./calibration.ts";
import { type CompactionCandidate, planCompaction, type SizeTarget } from "./compaction_plan.ts";
import { infoOf } from "./request_message.ts";
import type { Transcript } from "./transcript.ts";

/** Share of the window kept free for errors of the estimate. */
const SAFETY_SHARE = 0.1;

/** Maximum tokens kept free once the provider has reported a usage, which corrects the estimates. */
const SAFETY_MARGIN_TOKENS = 4096;

/** Assumed size of an answer when a provider states only its window. */
const USUAL_MAX_OUTPUT_TOKENS = 4096;

/** Share of the window for messages when reserve and margin would leave nothing; an assumed value. */
const SMALLEST_SHARE = 0.25;

/**
 * Resolves to the budget in tokens.
 *
 * Order: `token_budget`; window − `output_reserve_fraction` × max_output_tokens − margin, from the provider's
 * model info, else from its defaults; `max_tokens`. A configured `max_tokens` is an upper limit for all but
 * the first. The margin is a tenth of the window, and at most 4,096 tokens once estimates are `corrected`.
 * `extras` (tokens of tool schemas and injections) are subtracted, except from an explicit `token_budget`.
 * The result may be 0 or negative: then nothing fits.
 */
export async function requestBudget(
  { token_budget: explicit, provider }: RequestOptions,
  config: Config,
  extras: number,
  corrected: boolean,
): Promise<number> {
  if (typeof explicit === "number" && explicit > 0 && Number.isFinite(explicit)) return Math.floor(explicit);
  const model = sizesOf(infoOf(provider, "getModelInfo"));
  const own = sizesOf(infoOf(provider, "getInfo"), "defaults");
  return inputTokens([await model, await own], config, corrected) - extras;
}

type Info = JsonObject | null;

/**
 * Returns the tokens of the first known window without the answer's; the configured `max_tokens` if no window
 * is known.
 */
function inputTokens(infos: readonly Info[], config: Config, corrected: boolean): number {
  const { max_tokens, max_tokens_is_limit, output_reserve_fraction } = config;
  for (const info of infos) {
    const window = tokensOf(info?.context_window);
    if (window === null) continue;
    const reserve = Math.floor(
      output_reserve_fraction * (tokensOf(info?.max_output_tokens) ?? USUAL_MAX_OUTPUT_TOKENS),
    );
    const share = Math.floor(window * SAFETY_SHARE);
    const margin = corrected ? Math.min(SAFETY_MARGIN_TOKENS, share) : share;
    const rest = window - reserve - margin;
    const offered = rest > 0 ? rest : Math.floor(window * SMALLEST_SHARE);
    return max_tokens_is_limit ? Math.min(offered, max_tokens) : offered;
  }
  return max_tokens;
}

/** Resolves to an info, a promise for a sandboxed provider, or to a field of it; null if it fails. */
async function sizesOf(info: unknown, field?: string): Promise<Info> {
  try {
    const whole = await info;
    const found = field && isObject(whole) ? whole[field] : whole;
    return isObject(found) ? found : null;
  } catch {
    return null;
  }
}

function tokensOf(value: unknown): number | null {
  return typeof value === "number" && value > 0 && Number.isFinite(value) ? Math.floor(value) : null;
}

/** Share of a refused request that the next one may have, when the provider does not say what it takes. */
const UNSTATED_SHARE = 0.8;

/**
 * Maximum input tokens of a request, for each model that refused one as too long. A provider's info may be
 * wrong: a local server is often started with a smaller window than its model has.
 */
export class LearnedLimits {
  readonly #limits = new Map<string, number>();

  /** Learns from a refused request; `size` is its estimate in tokens, tools and injections included. */
  learn(
    provider: Provider | undefined,
    { limit_tokens, requested_tokens }: ContextOverflow,
    size: number,
  ): void {
    const limit = tokensOf(limit_tokens) ?? Infinity; // a loop may pass on what a module threw
    const requested = tokensOf(requested_tokens) ?? 0;
    const stated = limit - Math.min(SAFETY_MARGIN_TOKENS, Math.floor(limit * SAFETY_SHARE));
    // the provider's count of this request may differ from the estimate: both numbers give the share to keep
    const share = stated < requested ? stated / requested : UNSTATED_SHARE;
    this.#limits.set(keyOf(provider), Math.floor(Math.min(stated, size * share)));
  }

  /** Returns the maximum input tokens of a request to the model; Infinity if it refused none. */
  of(provider: Provider | undefined): number {
    return this.#limits.size === 0 ? Infinity : this.#limits.get(keyOf(provider)) ?? Infinity;
  }

  /** Returns the saved form; undefined without limits. */
  save(): [string, number][] | undefined {
    return this.#limits.size === 0 ? undefined : [...this.#limits];
  }

  /** Restores the saved form; ignores a value of another form. */
  restore(saved: unknown): void {
    if (!Array.isArray(saved)) return;
    for (const [key, limit] of saved.filter(Array.isArray)) {
      if (typeof key === "string" && Number.isSafeInteger(limit)) this.#limits.set(key, limit);
    }
  }
}

/** Returns the provider's name with its model and window: another model has another limit. */
function keyOf(provider: Provider | undefined): string {
  const info = infoOf(provider, "getInfo");
  const { model = "", context_window = "" } = isObject(info) && isObject(info.defaults) ? info.defaults : {};
  return `${provider?.name ?? ""} ${model} ${context_window}`;
}

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
    tokens += Math.min(first.head.tokens, stub ? messageTokens(stub) : Infinity);
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
