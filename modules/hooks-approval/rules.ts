/** The rules of a config: their JSON Schema, their checks, and their compiled form. */
import {
  compileGlob,
  type Glob,
  type JsonObject,
  type JsonSchema,
  readConfig,
  type RefuseConfig,
} from "preamp/base";
import type { ArgvPattern } from "./command_match.ts";

export type RuleAction = "allow" | "ask" | "deny";

interface WrittenRule {
  tool: string;
  argv?: string[];
  action: RuleAction;
  prompt?: string;
  timeout_s?: number;
  default?: "allow" | "deny";
  remember?: "session" | "pattern";
}

export interface Rule extends Omit<WrittenRule, "tool" | "argv"> {
  tool: Glob;
  argv: ArgvPattern | null;
  /** The rule's globs as written. */
  text: string;
}

/** The last glob of an `argv` that matches any further words. */
const REST = "**";

/** Maximum rules, globs in all rules, characters of one glob and of all globs. They limit the time for one call. */
const MAX_RULES = 500;
const MAX_GLOBS = 1_000;
const MAX_GLOB_CHARS = 256;
const MAX_ALL_GLOB_CHARS = 16_384;

const GLOB: JsonSchema = { type: "string", minLength: 1, maxLength: MAX_GLOB_CHARS };

const RULE_PROPERTIES: JsonSchema = {
  tool: { ...GLOB, description: "Glob for the tool's name" },
  argv: {
    type: "array",
    minItems: 1,
    items: GLOB,
    description: "Globs for the words of a shell command; a last ** matches any further words",
  },
  action: { enum: ["allow", "ask", "deny"] },
  prompt: { type: "string", minLength: 1 },
  timeout_s: { type: "number", exclusiveMinimum: 0 },
  default: { enum: ["allow", "deny"], description: "Decision at the timeout" },
  remember: {
    enum: ["session", "pattern"],
    description:
      "Offers an answer for the whole session: for the same tool and prompt, or for all calls of this rule",
  },
};

export const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    rules: {
      type: "array",
      maxItems: MAX_RULES,
      description: "The first matching rule decides",
      items: { type: "object", required: ["tool", "action"], properties: RULE_PROPERTIES },
      default: [],
    },
  },
};

/**
 * Returns the rules of a config in order. A rule with an unknown key asks instead of allowing.
 *
 * @throws {PreampError} `module_invalid` with all problems and their paths.
 */
export function readRules(config: JsonObject): Rule[] {
  return readConfig<{ rules: WrittenRule[] }>(CONFIG_SCHEMA, config, checkRules).rules.map(compileRule);
}

function checkRules({ rules }: { rules: WrittenRule[] }, refuse: RefuseConfig): void {
  for (const [index, rule] of rules.entries()) {
    for (const key of ["prompt", "timeout_s", "default", "remember"] as const) {
      if (rule[key] === undefined || rule.action === "ask") continue;
      refuse(["rules", index, key], 'is only valid with action "ask"');
    }
    if (rule.prompt?.trim() === "") refuse(["rules", index, "prompt"], "must not be blank");
    if (rule.argv?.[0] === REST && rule.argv.length === 1) {
      refuse(["rules", index, "argv"], `must name a program before "${REST}"`);
    }
    for (const [at, glob] of (rule.argv ?? []).slice(0, -1).entries()) {
      if (glob === REST) refuse(["rules", index, "argv", at], `may be "${REST}" only at the end`);
    }
  }
  const globs = rules.flatMap(({ tool, argv = [] }) => [tool, ...argv]);
  if (globs.length > MAX_GLOBS) refuse(["rules"], `must have at most ${MAX_GLOBS} globs`);
  if (globs.reduce((sum, glob) => sum + glob.length, 0) > MAX_ALL_GLOB_CHARS) {
    refuse(["rules"], `must have at most ${MAX_ALL_GLOB_CHARS} characters in all globs`);
  }
}

function compileRule({ tool, argv, ...rule }: WrittenRule): Rule {
  // a key of another runtime may narrow the rule, so the rule asks instead of allowing
  const narrowed = Object.keys(rule).some((key) => !Object.hasOwn(RULE_PROPERTIES, key));
  return {
    ...rule,
    action: rule.action === "allow" && narrowed ? "ask" : rule.action,
    tool: compileGlob(tool),
    argv: argv ? compileArgv(argv) : null,
    text: [tool, ...argv ?? []].join(" "),
  };
}

function compileArgv(argv: readonly string[]): ArgvPattern {
  const rest = argv.at(-1) === REST;
  return { globs: (rest ? argv.slice(0, -1) : argv).map(compileGlob), rest };
}
