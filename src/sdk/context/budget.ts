/**
 * Computes the token budget of one request; see src/docs/context.md#budget-of-a-request. Learns what a model takes
 * when it refuses a request.
 */
import {
  type ContextOverflow,
  isObject,
  type JsonObject,
  type Message,
  methodOf,
  type Provider,
  type RequestOptions,
} from "../base.ts";
import type { Config } from "./config.ts";
import type { TokenCounter } from "./token_counter.ts";

/** Share of the window kept free for errors of the estimate. */
const SAFETY_SHARE = 0.1;

/** Maximum tokens kept free once the provider has reported a usage, which corrects the estimates. */
const SAFETY_MARGIN_TOKENS = 4096;

/** Assumed size of an answer when a provider states only its window. */
const USUAL_MAX_OUTPUT_TOKENS = 4096;

/** Share of the window for messages when reserve and margin would leave nothing; an assumed value. */
const SMALLEST_SHARE = 0.25;

/**
 * Returns the budget in tokens, as a promise only if the provider's info is one.
 *
 * Order: `token_budget`; window − `output_reserve_fraction` × max_output_tokens − margin, from the provider's
 * model info, else from its defaults; `max_tokens`. A configured `max_tokens` is an upper limit for all but
 * the first. The margin is a tenth of the window, and at most 4,096 tokens once estimates are `corrected`.
 * `extras` (tokens of tool schemas and injections) are subtracted, except from an explicit `token_budget`. The
 * result may be 0 or negative: then nothing fits.
 */
export function requestBudget(
  { token_budget: explicit, provider }: RequestOptions,
  config: Config,
  extras: number,
  corrected: boolean,
): number | Promise<number> {
  if (typeof explicit === "number" && explicit > 0 && Number.isFinite(explicit)) return Math.floor(explicit);
  const model = infoOf(provider, "getModelInfo");
  const own = infoOf(provider, "getInfo", "defaults");
  // perf: most providers answer synchronously, without a promise per request
  if (!isPromise(model) && !isPromise(own)) return inputTokens([model, own], config, corrected) - extras;
  return Promise.all([model, own]).then((infos) => inputTokens(infos, config, corrected) - extras);
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

function infoOf(provider: unknown, method: string, field?: string): Info | Promise<Info> {
  const read = (info: unknown) => {
    const found = field && isObject(info) ? info[field] : info;
    return isObject(found) ? found : null;
  };
  try {
    const info = methodOf(provider, method)?.();
    // a provider that fails is skipped
    return isPromise(info) ? Promise.resolve(info).then(read).catch(() => null) : read(info);
  } catch {
    return null; // a provider that fails is skipped
  }
}

function isPromise(value: unknown): value is Promise<unknown> {
  return isObject(value) && typeof value.then === "function";
}

function tokensOf(value: unknown): number | null {
  return typeof value === "number" && value > 0 && Number.isFinite(value) ? Math.floor(value) : null;
}

/** Returns the tokens of messages, as `meter` counts them. */
export function tokensOfAll(messages: readonly Message[] | undefined, meter: TokenCounter): number {
  let tokens = 0;
  for (const message of messages ?? []) tokens += meter.message(message);
  return tokens;
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
    const stated = !isCount(limit_tokens)
      ? Infinity
      : limit_tokens - Math.min(SAFETY_MARGIN_TOKENS, Math.floor(limit_tokens * SAFETY_SHARE));
    // the provider's count of this request may differ from the estimate: both numbers give the share to keep
    const share = isCount(requested_tokens) && stated < requested_tokens
      ? stated / requested_tokens
      : UNSTATED_SHARE;
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

/** Returns whether a value is a number of tokens; a loop may pass on what a module threw. */
function isCount(value: unknown): value is number {
  return typeof value === "number" && value > 0 && Number.isFinite(value);
}

/** Returns the provider's name with its model and window: another model has another limit. */
function keyOf(provider: Provider | undefined): string {
  const info: unknown = methodOf(provider, "getInfo")?.();
  const { model = "", context_window = "" } = isObject(info) && isObject(info.defaults) ? info.defaults : {};
  return `${provider?.name ?? ""} ${model} ${context_window}`;
}
