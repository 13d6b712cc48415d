/**
 * Combines the limits of a run: the smallest of plan, request and policy. Values above the policy's are
 * refused.
 */
import type { ErrorDetail } from "../sdk/errors.ts";
import { compareDecimal } from "../sdk/money.ts";
import type { RunLimits } from "../sdk/contracts.ts";
import { smallerDecimal } from "../sdk/money.ts";

/** Limits that plan and request ask for. */
export interface AskedLimits {
  plan?: Partial<RunLimits>;
  request?: Partial<RunLimits>;
}

/** The effective limits, and reasons for those above the policy's. */
export interface CombinedLimits {
  limits: RunLimits;
  /**
   * Source of the dollar limit. An unpriced call ends the run under `asked`, and is a warning under
   * `policy`.
   */
  cost_limit: "asked" | "policy";
  reasons: ErrorDetail[];
}

const COUNTS = ["max_iterations", "max_tool_calls", "max_total_tokens", "max_duration_s"] as const;

/** Returns the smallest of each limit. Values above the policy's are reasons to refuse. */
export function combineLimits(policy: RunLimits, asked: AskedLimits): CombinedLimits {
  const limits = onlyRunLimits(policy);
  const reasons: ErrorDetail[] = [];
  for (const [source, requested] of [["plan", asked.plan], ["request", asked.request]] as const) {
    const path = (name: string) => source === "plan" ? `limits.${name}` : `request.limits.${name}`;
    for (const name of COUNTS) {
      const value = requested?.[name];
      if (value === undefined) continue;
      if (value > policy[name]) reasons.push(above(path(name), name, String(value), String(policy[name])));
      else limits[name] = Math.min(limits[name], value);
    }
    const cost = requested?.max_cost_usd;
    if (cost === undefined) continue;
    if (compareDecimal(cost, policy.max_cost_usd) > 0) {
      reasons.push(above(path("max_cost_usd"), "max_cost_usd", `"${cost}"`, `"${policy.max_cost_usd}"`));
    } else limits.max_cost_usd = smallerDecimal(limits.max_cost_usd, cost);
  }
  const asksCost = asked.plan?.max_cost_usd !== undefined || asked.request?.max_cost_usd !== undefined;
  return { limits, cost_limit: asksCost ? "asked" : "policy", reasons };
}

function above(path: string, name: string, asked: string, most: string): ErrorDetail {
  return {
    path,
    message: `Cannot raise ${name}: the policy's limit is ${most}: received ${asked}`,
    hint: `write at most ${most}, or leave it out`,
  };
}

function onlyRunLimits(policy: RunLimits): RunLimits {
  const { max_iterations, max_tool_calls, max_total_tokens, max_cost_usd, max_duration_s } = policy;
  return { max_iterations, max_tool_calls, max_total_tokens, max_cost_usd, max_duration_s };
}
