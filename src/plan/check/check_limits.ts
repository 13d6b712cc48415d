/** Checks the `limits:` block of a plan or a request: the limits of one run. */
import type { RunLimits } from "../../sdk/contracts.ts";
import type { Findings } from "../../sdk/findings.ts";
import type { JsonSchema } from "../../sdk/json.ts";
import { compareDecimal } from "../../sdk/money.ts";
import type { Path } from "../../sdk/value_path.ts";
import { fitting, object } from "./field_checks.ts";

/** Smallest duration that a plan, a request or the policy may set, in seconds. */
export const MIN_DURATION_S = 0.001;

const LIMITS: Readonly<Record<keyof RunLimits, JsonSchema>> = {
  max_iterations: { type: "integer", minimum: 1 },
  max_tool_calls: { type: "integer", minimum: 0 }, // 0: no tool runs
  max_total_tokens: { type: "integer", minimum: 1 },
  max_cost_usd: { type: "string", format: "decimal" },
  max_duration_s: { type: "number", minimum: MIN_DURATION_S },
};

/** Names of the limits, in display order. */
export const LIMIT_NAMES = Object.keys(LIMITS) as readonly (keyof RunLimits)[];

/** Returns a negative number, 0 or a positive number as one value of a limit is below, equal to or above another. */
export function compareLimit(a: string | number, b: string | number): number {
  return typeof a === "number" && typeof b === "number" ? a - b : compareDecimal(String(a), String(b));
}

/** Returns the limits that are set; none if one is wrong. */
export function checkLimits(value: unknown, path: Path, findings: Findings): Partial<RunLimits> {
  const fields = object(value, path, findings, 'write limits: {max_tool_calls: 40, max_cost_usd: "0.50"}');
  if (!fields) return {};
  const schema = { type: "object", properties: LIMITS, additionalProperties: false };
  return fitting<Partial<RunLimits>>(fields, schema, path, findings) ?? {};
}
