/**
 * Warns of rules of `hooks-approval` that allow a program with any words, although some of them write files
 * or run programs.
 */
import { Findings } from "../sdk/findings.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { Path } from "../sdk/value_path.ts";

/** The last glob of an `argv` that matches any further words. */
const REST = "**";

/** Resolves to a warning for each such rule of a plan and of its agents, `approval_rule_wide`. */
export async function warnOfWideRules(plan: JsonObject): Promise<Findings> {
  const findings = new Findings();
  const rules = [
    ...rulesIn(plan, []),
    ...Object.entries(isObject(plan.agents) ? plan.agents : {})
      .flatMap(([name, agent]) => isObject(agent) ? rulesIn(agent, ["agents", name]) : []),
  ];
  if (rules.length === 0) return findings;
  const { wideEffects } = await import("../../modules/hooks-approval/effects.ts");
  for (const { words, at } of rules) {
    const effect = wideEffects(words);
    if (effect === null) continue;
    const shown = [...words, REST].join(" ");
    const message = `The rule allows ${shown}, that is any further words, and ${effect}`;
    findings.warn(at, "approval_rule_wide", message, `write the words that are needed in place of ${REST}`);
  }
  return findings;
}

interface WideRule {
  /** The words before `**`. */
  readonly words: readonly string[];
  readonly at: Path;
}

function rulesIn({ hooks }: JsonObject, path: Path): WideRule[] {
  if (!Array.isArray(hooks)) return [];
  return hooks.flatMap((hook, index) => {
    const rules = isObject(hook) && hook.module === "hooks-approval" && isObject(hook.config) &&
      hook.config.rules;
    if (!Array.isArray(rules)) return [];
    return rules.flatMap((rule, number) => {
      if (!isObject(rule) || rule.action !== "allow" || !Array.isArray(rule.argv)) return [];
      const words = rule.argv.filter((glob) => typeof glob === "string");
      if (words.at(-1) !== REST) return [];
      return [{
        words: words.slice(0, -1),
        at: [...path, "hooks", index, "config", "rules", number, "argv"],
      }];
    });
  });
}
