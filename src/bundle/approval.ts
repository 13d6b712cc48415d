/** Translates the rules of Amplifier's `hooks-approval` into ours. A denial is never lost. */
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describe } from "../sdk/value_path.ts";
import type { Report } from "./report.ts";

/**
 * Returns the config of `hooks-approval`.
 *
 * @throws {PreampError} `plan_invalid` for a rule that denies and cannot be translated.
 */
export function approvalConfig(config: JsonObject, report: Report, where: string): JsonObject {
  const { rules, default_action, policy_driven_only: _, preset, ...rest } = config;
  const written: readonly unknown[] = Array.isArray(rules) ? rules : [];
  const own = written.filter((rule) => isObject(rule) && rule.tool !== undefined);
  const translated = written.filter((rule) => !own.includes(rule)).flatMap((rule) =>
    translatedRule(rule, report, where)
  );
  if (typeof default_action === "string" && /^(continue|allow|approve|auto_approve)$/.test(default_action)) {
    report.note(
      `default_action: ${default_action} of ${where} would allow every call: here a person is asked about calls that write or run commands`,
    );
  }
  const denies = typeof default_action === "string" && /deny|block/.test(default_action);
  return {
    ...rest,
    preset: preset ?? (denies ? "read-only" : "ask-writes"),
    ...(own.length + translated.length === 0 ? {} : { rules: [...translated, ...own] }),
  };
}

/** Returns rules that deny the commands of a pattern such as `rm *`; null if words cannot say it. */
export function denialOf(pattern: unknown): JsonObject[] | null {
  if (typeof pattern !== "string" || pattern.trim() === "" || /[\^$|()[\]{}+\\]/.test(pattern)) return null;
  const words = pattern.trim().split(/\s+/);
  const argv = [...words.at(-1) === "*" ? words.slice(0, -1) : words, "**"];
  return argv.length > 1 ? [{ tool: "bash", argv, action: "deny" }] : null;
}

function translatedRule(rule: unknown, report: Report, where: string): JsonObject[] {
  const { pattern, action } = isObject(rule) ? rule : {};
  if (action === "auto_approve") {
    report.warn(`The rule of ${where} that allows ${describe(pattern)} is left out: a person is asked`);
    return [];
  }
  if (action !== "auto_deny" && action !== "deny") {
    throw refused(where, `its action ${describe(action)} is not known`);
  }
  const command = denialOf(pattern);
  if (pattern === "*") return [{ tool: "*", action: "deny" }];
  if (command === null) {
    throw refused(where, `its pattern ${describe(pattern)} cannot be written as words with *`);
  }
  const word = String(pattern).trim();
  return /\s/.test(word) ? command : [{ tool: word, action: "deny" }, ...command]; // a tool, or a program
}

function refused(where: string, fact: string): PreampError {
  return new PreampError(
    "plan_invalid",
    `Cannot import a rule of hooks-approval of ${where}: ${fact}: write { tool, argv, action: deny } (preamp docs hooks-approval)`,
  );
}
