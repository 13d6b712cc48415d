/**
 * Maximum input tokens of a request, for each model that refused one as too long. A provider's info may be
 * wrong: a local server is often started with a smaller window than its model has.
 */
import { type ContextOverflow, isObject, methodOf, type Provider } from "../base.ts";

/** Share of a refused request that the next one may have, when the provider does not say what it takes. */
const UNSTATED_SHARE = 0.8;

/** Share of a stated limit kept free for errors of the estimate, and its maximum in tokens. */
const SAFETY_SHARE = 0.1;
const SAFETY_MARGIN_TOKENS = 4096;

/** Learned limits, by model. */
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
