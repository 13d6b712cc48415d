/**
 * Rules that allow calls, as texts: `TOOL`, `TOOL:COMMAND` such as `bash:git *`, or `TOOL:FIELD=GLOB` such as
 * `write:path=src/*`.
 */
import type { JsonObject } from "preamp/base";
import { commandsOf } from "./commands.ts";
import { compileMatcher, judge, type WrittenRule } from "./rules.ts";

/**
 * Returns a function that returns the rules that allow a call, or undefined: each of its commands must match
 * one of them.
 *
 * @throws {RangeError} for a rule that names no tool, or has an empty command.
 */
export function readAllowRules(
  texts: readonly string[],
): (tool_name: string, input: JsonObject) => string | undefined {
  const rules = texts.map((text) => ({ ...compileMatcher(readRule(text)), text }));
  return (tool_name, input) => {
    const used = judge(rules, tool_name, input, "ask", commandsOf).map(({ rule }) => rule?.text);
    return used.includes(undefined) ? undefined : [...new Set(used)].join(", ");
  };
}

function readRule(text: string): WrittenRule {
  const [, tool = "", rest] = /^([^:]*)(?::(.*))?$/s.exec(text.trim()) ?? [];
  const words = rest?.split(/\s+/).filter((word) => word !== "");
  if (tool === "" || words?.length === 0) {
    throw new RangeError(`must be a tool, or a tool and a command, such as "bash:git *", not "${text}"`);
  }
  if (!words) return { tool, action: "allow" };
  const [, field, glob] = /^([A-Za-z]\w*)=(.*)$/s.exec(rest!.trim()) ?? [];
  if (field !== undefined) return { tool, input: { [field]: glob! }, action: "allow" };
  const argv = words.length > 1 && words.at(-1) === "*" ? [...words.slice(0, -1), "**"] : words;
  return { tool, argv: argv.length === 1 && /^\*\*?$/.test(argv[0]!) ? ["*", "**"] : argv, action: "allow" };
}
