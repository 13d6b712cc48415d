/**
 * Answers approvals by rules with the syntax of `hooks-approval`: those of `preamp run --allow`, and those
 * that a person accepts in a conversation.
 */
import { readAllowRules } from "../../modules/hooks-approval/rule_text.ts";
import { readShell } from "../../modules/shell/commands.ts";
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

/** Commands that read only, as long as `hooks-approval` finds nothing that their options write or run. */
const READING: ReadonlySet<string> = new Set(
  ("cat cut date df diff du echo file find git-blame git-describe git-diff git-grep git-log git-ls-files " +
    "git-rev-parse git-shortlog git-show git-status grep head jq ls nl pwd realpath rg sort stat tail tr tree " +
    "uname uniq wc which").split(" "),
);
/** Words of a rule that would be read as something else. */
const NO_WORD = /[\s*?\\]|^$/;
const MAX_RULE_CHARS = 120;

/**
 * Returns a rule that allows calls like this one: the tool; of a command that only reads, its program with
 * any words, such as `bash:git log *`; of another one exactly this command. Null: no rule can say it.
 */
export function proposeRule(
  { tool_name, tool_input }: Pick<Approval, "tool_name" | "tool_input">,
): string | null {
  if (tool_name === null || /[:*?\\\s]/.test(tool_name)) return null;
  if (tool_input === null || !("command" in tool_input)) return tool_name;
  const { command } = tool_input;
  const words = typeof command === "string" ? readShell(command).plain : null;
  if (words === null || words.some((word) => NO_WORD.test(word))) return null;
  const [program = "", sub = ""] = words;
  const head = READING.has(program) ? [program] : READING.has(`${program}-${sub}`) ? [program, sub] : null;
  const rule = `${tool_name}:${(head ? [...head, "*"] : words).join(" ")}`;
  // such as a command that looks like `field=value`, or one whose options write
  return rule.length <= MAX_RULE_CHARS && readAllowRules([rule])(tool_name, tool_input) === rule
    ? rule
    : null;
}
