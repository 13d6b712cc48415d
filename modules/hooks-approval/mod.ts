/** `hooks-approval`: allows tool calls, denies them or asks a person, by rules. */
import {
  compileGlob,
  type Coordinator,
  errorMessage,
  type Glob,
  type HookHandler,
  type HookResult,
  isObject,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  type MountReturn,
  readConfig,
  type RefuseConfig,
  type Tool,
} from "preamp/base";
import { type ArgvPattern, couldRun, type Invocation, invocationsOf, surelyRuns } from "./command_match.ts";

type RuleAction = "allow" | "ask" | "deny";

interface WrittenRule {
  tool: string;
  argv?: string[];
  action: RuleAction;
  prompt?: string;
  timeout_s?: number;
  default?: "allow" | "deny";
  remember?: "session" | "pattern";
}

interface Rule extends Omit<WrittenRule, "tool" | "argv"> {
  tool: Glob;
  argv: ArgvPattern | null;
  /** The rule's globs as written. */
  text: string;
}

/** The last glob of an `argv` that matches any further words. */
const REST = "**";

/**
 * Maximum rules, globs in all rules, characters of one glob and of all globs. They limit the time for one
 * call.
 */
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
function readRules(config: JsonObject): Rule[] {
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

export const module: ModuleInfo = {
  id: "hooks-approval",
  type: "hook",
  version: "1.0.0",
  description:
    "Allows tool calls, denies them or asks a person, by rules; asks about risky calls without a rule.",
  gates: true,
  config_schema: CONFIG_SCHEMA,
};

/** The third choice of a rule with `remember`. */
const FOR_THE_SESSION = "Allow for this session";

/** Usual names of tools that change the machine. The gate asks about them even if they declare no risk. */
const CHANGING: ReadonlySet<string> = new Set(["write_file", "edit_file", "apply_patch", "bash"]);

/**
 * Registers the gate on `tool:pre`, before handlers of default priority. A hook that fails to mount is
 * skipped, and its tools would run without a question. So with an invalid config the gate is mounted and
 * denies every call with the reason.
 */
// deno-lint-ignore require-await -- the contract: mount returns a promise
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  coordinator.hooks.register("tool:pre", gateOf(coordinator, config), {
    priority: -10,
    name: module.id,
    fail_closed: true,
  });
}

function gateOf(coordinator: Coordinator, config: JsonObject): HookHandler {
  let rules: readonly Rule[];
  try {
    rules = readRules(config);
  } catch (error) {
    const reason = `all tool calls are denied: ${errorMessage(error)}`;
    return () => ({ action: "deny", reason });
  }
  const globs = rules.reduce((sum, { argv }) => sum + (argv?.globs.length ?? 0), 0);
  return (_event, data) => decide(coordinator, rules, globs, data);
}

/** Returns the decision about one call; null allows it. `globs`: number of globs in all `argv`. */
function decide(
  coordinator: Coordinator,
  rules: readonly Rule[],
  globs: number,
  data: JsonObject,
): HookResult | null {
  const name = typeof data.tool_name === "string" && data.tool_name ? data.tool_name : "unknown tool";
  const tool = toolOf(coordinator, name);
  const input = data.tool_input;
  // Some loops emit no input, so there are no words to match.
  const invocations = isObject(input) ? invocationsOf(input, globs) : null;
  for (const [index, rule] of rules.entries()) {
    if (!rule.tool(name)) continue;
    if (rule.argv && invocations === null) return ask(name, tool);
    if (rule.argv && !matches(rule, invocations ?? [])) continue;
    if (rule.action === "allow") return null;
    if (rule.action === "ask") return ask(name, tool, rule);
    return { action: "deny", reason: denialReason(name, index, rule) };
  }
  const risky = tool !== undefined && isRisky(tool);
  return risky || CHANGING.has(name) || typeof data.tool_name !== "string" ? ask(name, tool) : null;
}

/** Returns the tool that is mounted under a name or has this name; if there are several, a risky one. */
function toolOf(coordinator: Coordinator, name: string): Tool | undefined {
  const found = Object.entries(coordinator.tools).filter(([key, tool]) => key === name || tool.name === name);
  const tools = found.map(([, tool]) => tool);
  return tools.find(isRisky) ?? tools[0];
}

function isRisky(tool: Tool): boolean {
  return tool.requires_approval === true || tool.risk === "high" || tool.risk === "critical";
}

/**
 * Returns whether a rule's `argv` matches. To allow or ask, every invocation must match; to deny, one
 * possible match is enough.
 */
function matches(rule: Rule, invocations: readonly Invocation[]): boolean {
  const pattern = rule.argv;
  if (!pattern) return true;
  return rule.action === "deny"
    ? invocations.some((invocation) => couldRun(pattern, invocation))
    : invocations.length > 0 && invocations.every((invocation) => surelyRuns(pattern, invocation));
}

function ask(name: string, tool: Tool | undefined, rule?: Rule): HookResult {
  return {
    action: "ask_user",
    approval_prompt: rule?.prompt ?? `Allow ${name}?`,
    approval_options: rule?.remember
      ? ["Allow", { label: FOR_THE_SESSION, effect: "allow", remember: rule.remember }, "Deny"]
      : ["Allow", "Deny"],
    ...(rule?.remember === "pattern" ? { approval_pattern: rule.text } : {}),
    risk_level: tool?.risk ?? "low",
    ...(rule?.timeout_s === undefined ? {} : { approval_timeout: rule.timeout_s }),
    ...(rule?.default === undefined ? {} : { approval_default: rule.default }),
  };
}

function denialReason(name: string, index: number, rule: Rule): string {
  return rule.argv
    ? `rule ${index + 1} denies this command, or a command that it may run, for ${name}`
    : `rule ${index + 1} denies ${name}`;
}
