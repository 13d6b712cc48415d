/** Which values a person may raise the limits of a run to. */
import { compareLimit } from "../../plan/check/field_checks.ts";
import { PreampError } from "../../sdk/errors.ts";
import { formatDecimal, parseDecimal } from "../../sdk/money.ts";
import type { LimitName, RaisableLimit, RunLimits } from "../../sdk/types.ts";
import type { RunProjection } from "./run_projection.ts";

/** The limits of a run as they are, and what it has used of them. */
export interface UsedOfLimits {
  readonly limits: RunLimits;
  used(name: RaisableLimit): number | string;
}

const USED = {
  max_iterations: "model_calls",
  max_tool_calls: "tool_calls",
  max_total_tokens: "tokens",
  max_cost_usd: "cost_usd",
} as const;

/** Returns the limits of a run as its log says. */
export function limitsIn({ run: { limits }, used }: Pick<RunProjection, "run" | "used">): UsedOfLimits {
  return { limits, used: (name) => used[USED[name]] ?? "0" };
}

/** New values of limits. */
export type RaisedLimits = Partial<Pick<RunLimits, RaisableLimit>>;

/**
 * Returns a limit raised by as much as the run began with, at most to the policy's; null when that is
 * reached.
 */
export function raisedLimit(
  name: RaisableLimit,
  first: number | string,
  now: number | string,
  most: number | string,
): number | string | null {
  if (compareLimit(now, most) >= 0) return null;
  const sum = name === "max_cost_usd"
    ? formatDecimal(parseDecimal(String(now)) + parseDecimal(String(first)))
    : Number(now) + Math.max(1, Number(first));
  return compareLimit(sum, most) > 0 ? most : sum;
}

/**
 * Checks that each value is above the limit, and above what the run has used of it.
 * @throws {PreampError} `request_invalid`, or `policy_refused` above the policy's limit.
 */
export function checkRaised(
  limits: RaisedLimits,
  guard: UsedOfLimits,
  policy: Pick<RunLimits, LimitName>,
): void {
  for (const [key, value] of Object.entries(limits)) {
    const name = key as RaisableLimit; // Object.entries loses the key type
    const received = `received ${JSON.stringify(value)}`;
    if (compareLimit(value, policy[name]) > 0) {
      throw new PreampError(
        "policy_refused",
        `Cannot raise ${name}: the policy's limit is ${JSON.stringify(policy[name])}: ${received}`,
      );
    }
    if (compareLimit(value, guard.limits[name]) <= 0) {
      throw new PreampError(
        "request_invalid",
        `Cannot raise ${name}: must be above ${JSON.stringify(guard.limits[name])}: ${received}`,
      );
    }
    if (compareLimit(value, guard.used(name)) <= 0) {
      throw new PreampError(
        "request_invalid",
        `Cannot raise ${name}: must be above ${guard.used(name)}, which the run has used: ${received}`,
      );
    }
  }
}
