/** Answers approvals by rules: those of `preamp run --allow`, which have the syntax of `hooks-approval`. */
import { readRuleText } from "../../modules/hooks-approval/rule_text.ts";
import type { Approval } from "../runs/types.ts";

/**
 * Returns a function that returns the first rule that allows what an approval asks, or undefined. A rule
 * allows tool calls only.
 *
 * @throws {RangeError} for an invalid rule.
 */
export function readAllowedCalls(
  rules: readonly string[],
): (approval: Pick<Approval, "tool_name" | "tool_input">) => string | undefined {
  const read = rules.map((text) => ({ text, allows: readRuleText(text) }));
  return ({ tool_name, tool_input }) =>
    tool_name === null ? undefined : read.find(({ allows }) => allows(tool_name, tool_input ?? {}))?.text;
}
