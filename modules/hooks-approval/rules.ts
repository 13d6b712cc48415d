/** Checks and compiles the rules of a config. */
import { compileGlob, type Glob, isObject, type JsonObject, PreampError } from "preamp";
import type { ArgvPattern } from "./command_match.ts";

/** The action of a rule. */
export type RuleAction = "allow" | "ask" | "deny";

/** One rule. */
export interface Rule {
  tool: Glob;
  argv: ArgvPattern | null;
  action: RuleAction;
  prompt?: string;
  /** Seconds. */
  timeout_s?: number;
  default?: "allow" | "deny";
  /** Offers an answer for the same tool and prompt (`session`) or for all calls of this rule (`pattern`). */
  remember?: "session" | "pattern";
  /** The rule's globs as written. */
  text: string;
}

/** The last glob of an `argv` that matches any further words. */
const REST = "**";

/** Maximum rules, globs in all rules, characters of one glob and of all globs. They limit the time for one call. */
export const MAX_RULES = 500;
const MAX_GLOBS = 1_000;
export const MAX_GLOB_CHARS = 256;
const MAX_ALL_GLOB_CHARS = 16_384;

const KEYS = ["tool", "argv", "action", "prompt", "timeout_s", "default", "remember"];

/**
 * Returns the rules of a config in order. A rule with an unknown key asks instead of allowing.
 *
 * @throws {PreampError} `module_invalid` with the path of the wrong value.
 */
export function readRules(config: JsonObject): Rule[] {
  const items = config.rules ?? [];
  if (!Array.isArray(items)) throw invalid("rules", "must be a list", items);
  if (items.length > MAX_RULES) {
    throw invalid("rules", `must have at most ${MAX_RULES} entries`, items.length);
  }
  const rules: Rule[] = [];
  let [globs, chars] = [0, 0];
  for (const [index, item] of items.entries()) {
    const rule = readRule(item, `rules[${index}]`);
    globs += 1 + (rule.argv?.globs.length ?? 0);
    chars += rule.text.length;
    if (globs > MAX_GLOBS) throw invalid("rules", `must have at most ${MAX_GLOBS} globs`, "more");
    if (chars > MAX_ALL_GLOB_CHARS) {
      throw invalid("rules", `must have at most ${MAX_ALL_GLOB_CHARS} characters in all globs`, "more");
    }
    rules.push(rule);
  }
  return rules;
}

function readRule(input: unknown, path: string): Rule {
  if (!isObject(input)) throw invalid(path, "must be an object", input);
  const { action: written } = input;
  // a key of another runtime may narrow the rule, so the rule asks instead of allowing
  const narrowed = Object.keys(input).some((key) => !KEYS.includes(key));
  const action = written === "allow" && narrowed ? "ask" : written;
  if (action !== "allow" && action !== "ask" && action !== "deny") {
    throw invalid(`${path}.action`, 'must be "allow", "ask" or "deny"', action);
  }
  const rule: Rule = {
    tool: readGlob(input.tool, `${path}.tool`),
    argv: input.argv === undefined ? null : readArgv(input.argv, `${path}.argv`),
    action,
    text: [input.tool, ...Array.isArray(input.argv) ? input.argv : []].join(" "),
  };
  for (const key of ["prompt", "timeout_s", "default", "remember"] as const) {
    if (input[key] !== undefined && written !== "ask") {
      throw invalid(`${path}.${key}`, 'is only valid with action "ask"', input[key]);
    }
  }
  if (input.prompt !== undefined) {
    if (typeof input.prompt !== "string" || input.prompt.trim() === "") {
      throw invalid(`${path}.prompt`, "must be text", input.prompt);
    }
    rule.prompt = input.prompt;
  }
  if (input.timeout_s !== undefined) {
    if (typeof input.timeout_s !== "number" || !(input.timeout_s > 0) || !Number.isFinite(input.timeout_s)) {
      throw invalid(`${path}.timeout_s`, "must be a number of seconds above 0", input.timeout_s);
    }
    rule.timeout_s = input.timeout_s;
  }
  if (input.default !== undefined) {
    if (input.default !== "allow" && input.default !== "deny") {
      throw invalid(`${path}.default`, 'must be "allow" or "deny"', input.default);
    }
    rule.default = input.default;
  }
  if (input.remember !== undefined) {
    if (input.remember !== "session" && input.remember !== "pattern") {
      throw invalid(`${path}.remember`, 'must be "session" or "pattern"', input.remember);
    }
    rule.remember = input.remember;
  }
  return rule;
}

function readArgv(input: unknown, path: string): ArgvPattern {
  if (!Array.isArray(input) || input.length === 0) {
    throw invalid(path, "must be a list of globs, the first for the program", input);
  }
  const rest = input.at(-1) === REST;
  const words = rest ? input.slice(0, -1) : input;
  if (words.length === 0) throw invalid(path, `must name a program before "${REST}"`, input);
  const globs: Glob[] = [];
  for (const [index, word] of words.entries()) {
    if (word === REST) throw invalid(`${path}[${index}]`, `may be "${REST}" only at the end`, word);
    globs.push(readGlob(word, `${path}[${index}]`));
  }
  return { globs, rest };
}

function readGlob(input: unknown, path: string): Glob {
  if (typeof input !== "string" || input === "" || input.length > MAX_GLOB_CHARS) {
    throw invalid(path, `must be a glob of 1 to ${MAX_GLOB_CHARS} characters`, input);
  }
  return compileGlob(input);
}

function invalid(path: string, fact: string, received: unknown): PreampError {
  const value = typeof received === "string" || typeof received === "number" || typeof received === "boolean"
    ? JSON.stringify(received).slice(0, 80)
    : Array.isArray(received)
    ? `a list of ${received.length}`
    : received === null
    ? "null"
    : typeof received;
  return new PreampError(
    "module_invalid",
    `Cannot mount module "hooks-approval": config.${path} ${fact}: received ${value}`,
  );
}
