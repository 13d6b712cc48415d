/** Rules that allow calls, as one text: `TOOL`, or `TOOL:COMMAND` such as `bash:git *`. */
import { compileGlob, type JsonObject } from "preamp/base";
import { invocationsOf, surelyRuns } from "./command_match.ts";

/** Decides whether a rule allows a call. */
export type AllowsCall = (tool_name: string, input: JsonObject) => boolean;

/**
 * Reads a rule. `TOOL` is a glob for the tool's name. The words of `COMMAND` are globs for the words of a
 * shell command, as `argv` of a rule with `action: allow`; a last `*` matches any further words.
 *
 * @throws {RangeError} for a rule that names no tool, or has an empty command.
 */
export function readRuleText(text: string): AllowsCall {
  const [, name = "", command] = /^([^:]*)(?::(.*))?$/s.exec(text.trim()) ?? [];
  const words = command?.split(/\s+/).filter((word) => word !== "");
  const rest = /^\*\*?$/.test(words?.at(-1) ?? "");
  if (name === "" || words?.length === 0) {
    throw new RangeError(`must be a tool, or a tool and a command, such as "bash:git *", not "${text}"`);
  }
  const tool = compileGlob(name);
  if (!words) return (tool_name) => tool(tool_name);
  const globs = (rest && words.length > 1 ? words.slice(0, -1) : words).map(compileGlob);
  return (tool_name, input) => {
    if (!tool(tool_name)) return false;
    const invocations = invocationsOf(input, globs.length);
    return invocations.length > 0 && invocations.every((each) => surelyRuns({ globs, rest }, each));
  };
}
