/**
 * Money as decimal strings, never as floats, and the prices of models. Calculates in units of 10⁻¹⁸ dollars.
 */
import { isObject, type JsonSchema } from "./json.ts";
import type { Usage } from "./messages.ts";

const SCALE = 18;
const DOLLAR = 10n ** BigInt(SCALE);
const DECIMAL = /^(\d{1,15})(?:\.(\d{1,18}))?$/;

/** Returns true for a non-negative decimal string such as `"0.50"`. */
export function isDecimal(value: unknown): value is string {
  return typeof value === "string" && DECIMAL.test(value);
}

let last_text = "0";
let last_units = 0n;

/**
 * Returns a decimal string in units of 10⁻¹⁸. The last result is cached: runs of a plan have the same limit.
 *
 * @throws {RangeError} when the text is not a non-negative decimal.
 */
export function parseDecimal(text: string): bigint {
  if (text === last_text) return last_units;
  const match = DECIMAL.exec(text);
  if (!match) {
    throw new RangeError(
      `Cannot read money: must be a decimal string such as "0.50": received ${JSON.stringify(text)}`,
    );
  }
  const [, whole = "0", fraction] = match;
  last_units = BigInt(whole) * DOLLAR + (fraction ? BigInt(fraction.padEnd(SCALE, "0")) : 0n);
  last_text = text;
  return last_units;
}

/** Returns units of 10⁻¹⁸ as a decimal string without trailing zeros. */
export function formatDecimal(units: bigint): string {
  const digits = units.toString().padStart(SCALE + 1, "0");
  const fraction = digits.slice(-SCALE).replace(/0+$/, "");
  const whole = digits.slice(0, -SCALE);
  return fraction ? `${whole}.${fraction}` : whole;
}

/** Returns a negative number, 0 or a positive number as `a` is below, equal to or above `b`. */
export function compareDecimal(a: string, b: string): number {
  const difference = parseDecimal(a) - parseDecimal(b);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/**
 * Returns the sum of costs without null and malformed ones. A sum of no costs is null, because an unknown
 * cost is not zero.
 */
export function sumCostUsd(costs: Iterable<string | null | undefined>): string | null {
  let total: bigint | null = null;
  for (const cost of costs) if (isDecimal(cost)) total = (total ?? 0n) + parseDecimal(cost);
  return total === null ? null : formatDecimal(total);
}

/** Prices of a model in US dollars per million tokens, as decimal strings such as `"0.30"`. */
export interface Prices {
  /** Price of request tokens. */
  input: string;
  /** Price of answer tokens, reasoning included. */
  output: string;
  /** Price of request tokens read from the provider's cache; default `input`. */
  cache_read?: string;
  /** Price of tokens written to the provider's cache; default `input`. */
  cache_write?: string;
}

const KEYS = ["input", "output", "cache_read", "cache_write"] as const;
const MILLION = 1_000_000n;

/** The JSON Schema of {@link Prices}, for the `config_schema` of a provider. */
export const PRICES_SCHEMA: JsonSchema = {
  type: "object",
  description: "US dollars per million tokens, as decimal strings.",
  required: ["input", "output"],
  properties: Object.fromEntries(KEYS.map((key) => [key, { type: "string", format: "decimal" }])),
};

/**
 * Returns the prices in a provider's config.
 *
 * @throws {TypeError} when the value has no `input` or `output`, or a price is not a decimal string.
 *
 * @example
 * ```ts
 * import { costOf, parsePrices, Usage } from "preamp";
 *
 * const prices = parsePrices({ input: "3", output: "15" });
 * console.log(costOf(Usage({ input_tokens: 1000, output_tokens: 200 }), prices)); // "0.006"
 * ```
 */
export function parsePrices(value: unknown): Prices {
  const prices: Partial<Record<string, unknown>> = isObject(value) ? value : {};
  for (const key of KEYS) {
    const price = prices[key];
    if (isDecimal(price) || price === undefined && key !== "input" && key !== "output") continue;
    throw new TypeError(
      `Cannot read prices.${key}: must be US dollars per million tokens as a decimal string such as "0.30": ` +
        `received ${typeof price === "number" ? price : typeof price}`,
    );
  }
  return prices as unknown as Prices; // checked above
}

/**
 * Returns the cost of a call in US dollars as a decimal string. `input_tokens` includes cache reads and cache
 * writes.
 */
export function costOf(usage: Omit<Usage, "cost_usd">, prices: Prices): string {
  const { input, output, cache_read = input, cache_write = input } = prices;
  const cached = Math.min(usage.cache_read_tokens ?? 0, usage.input_tokens);
  const written = Math.min(usage.cache_write_tokens ?? 0, usage.input_tokens - cached);
  const units = price(usage.input_tokens - cached - written, input) + price(cached, cache_read) +
    price(written, cache_write) + price(usage.output_tokens, output);
  return formatDecimal(units / MILLION);
}

function price(tokens: number, per_million: string): bigint {
  return BigInt(tokens) * parseDecimal(per_million);
}
