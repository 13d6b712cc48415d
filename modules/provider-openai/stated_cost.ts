/** The cost that OpenRouter states in the usage of an answer, with both APIs. */
import { isObject, type JsonObject } from "preamp/base";

/** Decimal places of a cost, fewer than those of a number's rounding error. */
const COST_DIGITS = 12;
/** Dollars; a larger number is not the cost of one answer. */
const MAX_COST = 1e6;

/**
 * Returns the cost of an answer in US dollars; undefined when the usage does not state it. With the user's
 * own key of the model's vendor, `cost` is OpenRouter's fee alone, and the vendor's price is stated apart.
 */
export function statedCost({ cost, is_byok, cost_details }: JsonObject): string | undefined {
  const vendor = isObject(cost_details) ? cost_details.upstream_inference_cost : undefined;
  const parts = is_byok === true ? [cost, vendor] : [cost];
  if (!parts.every((part) => typeof part === "number" && part >= 0)) return undefined;
  const sum = (parts as number[]).reduce((total, part) => total + part, 0);
  return sum < MAX_COST ? sum.toFixed(COST_DIGITS).replace(/\.?0+$/, "") : undefined;
}
