/** The rules of a plan's config, checked and compiled. A rule that says less than its author meant is refused. */
import type { JsonObject } from "preamp";
import type { ArgvPattern } from "./command_match.ts";
import { compileGlob, type Glob, MAX_GLOB_CHARS } from "./glob.ts";

/** What a rule does with a call. */
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
  /** What else the person may let an answer hold for. */
  remember?: "session" | "pattern";
  /** The rule's globs as they were written. */
  text: string;
}

/** The words of an `argv` that mean "and any further words". */
const REST = "**";

/** Rules, and globs in all of them, that a config may have; our choice: they bound the work for one call. */
export const MAX_RULES = 500;
const MAX_GLOBS = 1_000;

const KEYS = ["tool", "argv", "action", "prompt", "timeout_s", "default", "remember"];

/**
 * Resolves to the rules of a config, in its order; none when there are none. A rule with a key that means nothing here asks
 * where it says "allow".
 *
 * @throws {PreampError} `module_invalid`, naming the place.
 */
export async function readRules(config: JsonObject): Promise<Rule[]> {
  const given = config.rules ?? [];
  if (!Array.isArray(given)) throw await invalid("rules", "must be a list", given);
  if (given.length > MAX_RULES) {
    throw await invalid("rules", `must have at most ${MAX_RULES} entries`, given.length);
  }
  const rules: Rule[] = [];
  let globs = 0;
  for (const [index, item] of given.entries()) {
    const rule = await readRule(item, `rules[${index}]`);
    globs += 1 + (rule.argv?.globs.length ?? 0);
    if (globs > MAX_GLOBS) throw await invalid("rules", `must have at most ${MAX_GLOBS} globs`, "more");
    rules.push(rule);
  }
  return rules;
}

async function readRule(item: unknown, path: string): Promise<Rule> {
  if (typeof item !== "object" || item === null || Array.isArray(item)) {
    throw await invalid(path, "must be an object", item);
  }
  const given = item as JsonObject;
  const { action: written } = given;
  // a key of another runtime may narrow the rule: what it allows there is a question here
  const narrowed = Object.keys(given).some((key) => !KEYS.includes(key));
  const action = written === "allow" && narrowed ? "ask" : written;
  if (action !== "allow" && action !== "ask" && action !== "deny") {
    throw await invalid(`${path}.action`, 'must be "allow", "ask" or "deny"', action);
  }
  const rule: Rule = {
    tool: await readGlob(given.tool, `${path}.tool`),
    argv: given.argv === undefined ? null : await readArgv(given.argv, `${path}.argv`),
    action,
    text: [given.tool, ...Array.isArray(given.argv) ? given.argv : []].join(" "),
  };
  for (const key of ["prompt", "timeout_s", "default", "remember"] as const) {
    if (given[key] !== undefined && written !== "ask") {
      throw await invalid(`${path}.${key}`, 'goes with action "ask" only', given[key]);
    }
  }
  if (given.prompt !== undefined) {
    if (typeof given.prompt !== "string" || given.prompt.trim() === "") {
      throw await invalid(`${path}.prompt`, "must be text", given.prompt);
    }
    rule.prompt = given.prompt;
  }
  if (given.timeout_s !== undefined) {
    if (typeof given.timeout_s !== "number" || !(given.timeout_s > 0) || !Number.isFinite(given.timeout_s)) {
      throw await invalid(`${path}.timeout_s`, "must be a number of seconds above 0", given.timeout_s);
    }
    rule.timeout_s = given.timeout_s;
  }
  if (given.default !== undefined) {
    if (given.default !== "allow" && given.default !== "deny") {
      throw await invalid(`${path}.default`, 'must be "allow" or "deny"', given.default);
    }
    rule.default = given.default;
  }
  if (given.remember !== undefined) {
    if (given.remember !== "session" && given.remember !== "pattern") {
      throw await invalid(`${path}.remember`, 'must be "session" or "pattern"', given.remember);
    }
    rule.remember = given.remember;
  }
  return rule;
}

async function readArgv(given: unknown, path: string): Promise<ArgvPattern> {
  if (!Array.isArray(given) || given.length === 0) {
    throw await invalid(path, "must be a list of globs, the first for the program", given);
  }
  const rest = given.at(-1) === REST;
  const words = rest ? given.slice(0, -1) : given;
  if (words.length === 0) throw await invalid(path, `must name a program before "${REST}"`, given);
  const globs: Glob[] = [];
  for (const [index, word] of words.entries()) {
    if (word === REST) throw await invalid(`${path}[${index}]`, `may be "${REST}" only at the end`, word);
    globs.push(await readGlob(word, `${path}[${index}]`));
  }
  return { globs, rest };
}

async function readGlob(given: unknown, path: string): Promise<Glob> {
  if (typeof given !== "string" || given === "" || given.length > MAX_GLOB_CHARS) {
    throw await invalid(path, `must be a glob of 1 to ${MAX_GLOB_CHARS} characters`, given);
  }
  return compileGlob(given);
}

/** The SDK's values bring a schema library with them: loaded only when there is something to say. */
async function invalid(path: string, fact: string, received: unknown): Promise<Error> {
  const { PreampError } = await import("preamp");
  const shown = typeof received === "string" || typeof received === "number" || typeof received === "boolean"
    ? JSON.stringify(received).slice(0, 80)
    : Array.isArray(received)
    ? `a list of ${received.length}`
    : received === null
    ? "null"
    : typeof received;
  return new PreampError(
    "module_invalid",
    `Cannot mount module "hooks-approval": config.${path} ${fact}: received ${shown}`,
  );
}
