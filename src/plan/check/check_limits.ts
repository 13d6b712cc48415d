/** Checks the `limits:` block of a plan or a request: the limits of one run. */
import type { RunLimits } from "../../sdk/contracts.ts";
import { integer, money, number, object } from "./field_checks.ts";
import { checkKeys, type Findings } from "../../sdk/findings.ts";
import type { Path } from "../../sdk/value_path.ts";

/** Names of the limits, in display order. */
export const LIMIT_NAMES: readonly (keyof RunLimits)[] = [
  "max_iterations",
  "max_tool_calls",
  "max_total_tokens",
  "max_cost_usd",
  "max_duration_s",
];

const KEYS: ReadonlySet<string> = new Set(LIMIT_NAMES);

/** Smallest duration that a plan, a request or the policy may set, in seconds. */
export const MIN_DURATION_S = 0.001;

/**
 * Returns the limits that are set. `max_tool_calls: 0` means that no tool runs. The other counts are at
 * least 1, a duration at least {@link MIN_DURATION_S}.
 */
export function checkLimits(value: unknown, path: Path, findings: Findings): Partial<RunLimits> {
  const limits: Partial<RunLimits> = {};
  const fields = object(value, path, findings, 'write limits: {max_tool_calls: 40, max_cost_usd: "0.50"}');
  if (!fields) return limits;
  checkKeys(fields, KEYS, path, findings, "error");
  for (const key of ["max_iterations", "max_tool_calls", "max_total_tokens"] as const) {
    if (!Object.hasOwn(fields, key)) continue;
    const found = integer(fields[key], [...path, key], findings, key === "max_tool_calls" ? 0 : 1);
    if (found !== undefined) limits[key] = found;
  }
  if (Object.hasOwn(fields, "max_duration_s")) {
    const found = number(fields.max_duration_s, [...path, "max_duration_s"], findings, MIN_DURATION_S);
    if (found !== undefined) limits.max_duration_s = found;
  }
  if (Object.hasOwn(fields, "max_cost_usd")) {
    const found = money(fields.max_cost_usd, [...path, "max_cost_usd"], findings);
    if (found !== undefined) limits.max_cost_usd = found;
  }
  return limits;
}
