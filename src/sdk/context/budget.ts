/** How many tokens the messages of one request may take (context.md, Budget; behaviour.md §8.2). */
import { isObject, methodOf, type RequestOptions } from "../mod.ts";
import type { Config } from "./config.ts";
import type { Meter } from "./meter.ts";

/** Tokens kept free for what estimates miss; at most a tenth of the window. */
const SAFETY_MARGIN_TOKENS = 4096;

/** What is assumed when a provider tells its window but not the size of its answers (R0's example). */
const USUAL_MAX_OUTPUT_TOKENS = 4096;

/** Share of the window for messages when reserve and margin would leave nothing; our choice. */
const SMALLEST_SHARE = 0.25;

/**
 * Resolves to the budget in tokens. In order: `token_budget` as given; window − `output_reserve_fraction` × max_output_tokens
 * − margin of the provider's model info, else of its defaults; `max_tokens`. A configured `max_tokens` is a ceiling on all
 * but the first. Tool schemas and injections are taken off, except from a given `token_budget`, which speaks of messages
 * alone. May be 0 or below: then nothing fits.
 */
export async function requestBudget(
  options: RequestOptions,
  config: Config,
  meter: Meter,
): Promise<number> {
  const explicit = options.token_budget;
  if (typeof explicit === "number" && explicit > 0 && Number.isFinite(explicit)) return Math.floor(explicit);
  const offered = await inputTokensOf(options.provider, config.output_reserve_fraction);
  const input = config.max_tokens_is_ceiling || offered === null
    ? Math.min(offered ?? config.max_tokens, config.max_tokens)
    : offered;
  let injections = 0;
  for (const message of options.injections ?? []) injections += meter.message(message);
  return input - meter.tools(options.tools) - injections;
}

async function inputTokensOf(provider: unknown, reserve_fraction: number): Promise<number | null> {
  for (const [method, field] of SOURCES) {
    const info = await told(provider, method, field);
    const window = tokensOf(info?.context_window);
    if (window === null) continue;
    const reserve = Math.floor(
      reserve_fraction * (tokensOf(info?.max_output_tokens) ?? USUAL_MAX_OUTPUT_TOKENS),
    );
    const margin = Math.min(SAFETY_MARGIN_TOKENS, Math.floor(window / 10));
    const rest = window - reserve - margin;
    return rest > 0 ? rest : Math.floor(window * SMALLEST_SHARE);
  }
  return null;
}

/** Who tells the window, first one first: a method of the provider, and the field of what it returns. */
const SOURCES: readonly (readonly [method: string, field?: string])[] = [
  ["getModelInfo"],
  ["getInfo", "defaults"],
];

async function told(provider: unknown, method: string, field?: string) {
  try {
    const info = await methodOf(provider, method)?.();
    const found = field && isObject(info) ? info[field] : info;
    return isObject(found) ? found : null;
  } catch {
    return null; // a provider that cannot tell leaves the choice to the next source
  }
}

function tokensOf(value: unknown): number | null {
  return typeof value === "number" && value > 0 && Number.isFinite(value) ? Math.floor(value) : null;
}
