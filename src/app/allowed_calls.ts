/** Answers approvals by rules: those of `preamp run --allow`, which have the syntax of `hooks-approval`. */
import { readAllowRules } from "../../modules/hooks-approval/rule_text.ts";
import type { Approval } from "../runs/types.ts";

/**
 * Returns a function that returns the rules that allow what an approval asks, or undefined. They allow tool
 * calls only.
 *
 * @throws {RangeError} for an invalid rule.
 */
export function readAllowedCalls(
  rules: readonly string[],
): (approval: Pick<Approval, "tool_name" | "tool_input">) => string | undefined {
  const allowedBy = readAllowRules(rules);
  return ({ tool_name, tool_input }) =>
    tool_name === null ? undefined : allowedBy(tool_name, tool_input ?? {});
}
