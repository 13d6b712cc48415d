/** How many tokens the messages of one request may take (context.md, Budget; behaviour.md §8.2). */
import { isObject, type JsonObject, methodOf, type RequestOptions } from "../mod.ts";
import type { Config } from "./config.ts";
import type { TokenCounter } from "./token_counter.ts";

/** Share of the window kept free for what estimates miss. */
const SAFETY_SHARE = 0.1;

/** The most tokens kept free once the provider has reported a usage, which corrects the estimates. */
const SAFETY_MARGIN_TOKENS = 4096;

/** What is assumed when a provider tells its window but not the size of its answers (R0's example). */
const USUAL_MAX_OUTPUT_TOKENS = 4096;

/** Share of the window for messages when reserve and margin would leave nothing; our choice. */
const SMALLEST_SHARE = 0.25;

/**
 * Returns the budget in tokens, at once or as a promise. In order: `token_budget` as given; window − `output_reserve_fraction` × max_output_tokens
 * − margin of the provider's model info, else of its defaults; `max_tokens`. A configured `max_tokens` is a ceiling on all
 * but the first. The margin is a tenth of the window, and at most 4,096 tokens once estimates are `corrected`. Tool schemas and injections are taken off, except from a given `token_budget`, which speaks of messages
 * alone. May be 0 or below: then nothing fits.
 */
export function requestBudget(
  options: RequestOptions,
  config: Config,
  meter: TokenCounter,
  corrected: boolean,
): number | Promise<number> {
  const explicit = options.token_budget;
  if (typeof explicit === "number" && explicit > 0 && Number.isFinite(explicit)) return Math.floor(explicit);
  let taken = meter.tools(options.tools);
  for (const message of options.injections ?? []) taken += meter.message(message);
  const budget = (infos: readonly Info[]) => inputTokens(infos, config, corrected) - taken;
  const infos = [told(options.provider, "getModelInfo"), told(options.provider, "getInfo", "defaults")];
  // most providers tell at once: nobody waits then, at any request
  return infos.some(isPromise) ? Promise.all(infos).then(budget) : budget(infos as Info[]); // none is a promise
}

type Info = JsonObject | null;

/** Tokens of the window that the first of these tells, less what the answer needs; what the config says when none does. */
function inputTokens(infos: readonly Info[], config: Config, corrected: boolean): number {
  const { max_tokens, max_tokens_is_ceiling, output_reserve_fraction } = config;
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
    return max_tokens_is_ceiling ? Math.min(offered, max_tokens) : offered;
  }
  return max_tokens;
}

function told(provider: unknown, method: string, field?: string): Info | Promise<Info> {
  const read = (info: unknown) => {
    const found = field && isObject(info) ? info[field] : info;
    return isObject(found) ? found : null;
  };
  try {
    const info = methodOf(provider, method)?.();
    // a provider that cannot tell leaves the choice to the next source
    return isPromise(info) ? Promise.resolve(info).then(read).catch(() => null) : read(info);
  } catch {
    return null; // the same
  }
}

function isPromise(value: unknown): value is Promise<unknown> {
  return isObject(value) && typeof value.then === "function";
}

function tokensOf(value: unknown): number | null {
  return typeof value === "number" && value > 0 && Number.isFinite(value) ? Math.floor(value) : null;
}
