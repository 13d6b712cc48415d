/** `hooks-approval`: allows tool calls, denies them or asks a person, by rules. */
import {
  type Coordinator,
  errorMessage,
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
import {
  type CommandReader,
  compileMatcher,
  judge,
  type Judgement,
  type Matcher,
  PATH_FIELDS,
  REST,
  type RuleAction,
  type WrittenRule as WrittenMatcher,
} from "./rules.ts";

/** A rule as it is written in a config, with the question that it asks. */
interface WrittenRule extends WrittenMatcher {
  prompt?: string;
  timeout_s?: number;
  default?: "allow" | "deny";
  remember?: "session" | "pattern";
}

interface Rule extends Matcher, Omit<WrittenRule, keyof WrittenMatcher> {
  /** The rule's globs as written. */
  readonly text: string;
}

type Preset = "read-only" | "ask-writes" | "ask-all";

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
  input: {
    type: "object",
    description: 'Globs for fields of the input, such as { path: "docs/*" }',
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
    label: { type: "string", minLength: 1, maxLength: 100, description: "What denials call these rules" },
    preset: {
      enum: ["read-only", "ask-writes", "ask-all"],
      default: "ask-writes",
      description: "What happens to calls that no rule matches",
    },
    rules: {
      type: "array",
      maxItems: MAX_RULES,
      description: "The first matching rule decides",
      items: { type: "object", required: ["tool", "action"], properties: RULE_PROPERTIES },
      default: [],
    },
  },
};

function checkRules({ rules }: { rules: WrittenRule[] }, refuse: RefuseConfig): void {
  for (const [index, rule] of rules.entries()) {
    for (const key of ["prompt", "timeout_s", "default", "remember"] as const) {
      if (rule[key] === undefined || rule.action === "ask") continue;
      refuse(["rules", index, key], 'is only valid with action "ask"');
    }
    if (rule.prompt?.trim() === "") refuse(["rules", index, "prompt"], "must not be blank");
    const globs = Object.values(rule.input ?? {});
    if (rule.input && globs.length === 0) refuse(["rules", index, "input"], "must name a field");
    if (!globs.every((glob) => typeof glob === "string" && glob.length <= MAX_GLOB_CHARS)) {
      refuse(["rules", index, "input"], `must have texts of at most ${MAX_GLOB_CHARS} characters`);
    }
    if (rule.argv?.[0] === REST && rule.argv.length === 1) {
      refuse(["rules", index, "argv"], `must name a program before "${REST}"`);
    }
    for (const [at, glob] of (rule.argv ?? []).slice(0, -1).entries()) {
      if (glob === REST) refuse(["rules", index, "argv", at], `may be "${REST}" only at the end`);
    }
  }
  const globs = rules.flatMap(({ tool, argv = [], input = {} }) => [
    tool,
    ...argv,
    ...Object.values(input),
  ]);
  if (globs.length > MAX_GLOBS) refuse(["rules"], `must have at most ${MAX_GLOBS} globs`);
  if (globs.reduce((sum, glob) => sum + glob.length, 0) > MAX_ALL_GLOB_CHARS) {
    refuse(["rules"], `must have at most ${MAX_ALL_GLOB_CHARS} characters in all globs`);
  }
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

/**
 * Names of tools that change files or run programs. The gate asks about them even if they declare no risk:
 * ours, and those of Amplifier's modules.
 */
const CHANGING: ReadonlySet<string> = new Set([
  ...["write", "edit", "apply_patch", "bash", "job"],
  ...["write_file", "edit_file"],
]);

/**
 * Registers the gate on `tool:pre`, before handlers of default priority. A hook that fails to mount is
 * skipped, and its tools would run without a question. So with an invalid config the gate is mounted and
 * denies every call with the reason.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  coordinator.hooks.register("tool:pre", await gateOf(coordinator, config), {
    priority: -10,
    name: module.id,
    fail_closed: true,
  });
}

async function gateOf(coordinator: Coordinator, config: JsonObject): Promise<HookHandler> {
  let rules: readonly Rule[];
  let preset: Preset;
  let label: string | undefined;
  try {
    const read = readConfig<{ rules: WrittenRule[]; preset: Preset; label?: string }>(
      CONFIG_SCHEMA,
      config,
      checkRules,
    );
    rules = read.rules.map(compileRule);
    preset = read.preset;
    label = read.label;
  } catch (error) {
    const reason = `all tool calls are denied: ${errorMessage(error)}`;
    return () => ({ action: "deny", reason });
  }
  // the parser of shell texts is loaded for rules that need it
  const commandsOf: CommandReader = rules.some(({ argv }) => argv !== null)
    ? (await import("./commands.ts")).commandsOf
    : () => null;
  return async (_event, data) => {
    const name = typeof data.tool_name === "string" && data.tool_name ? data.tool_name : "unknown tool";
    const tool = toolOf(coordinator, name);
    const input = isObject(data.tool_input) ? data.tool_input : null;
    const otherwise = name === data.tool_name ? presetAction(preset, name, tool, input) : "ask";
    const needs_paths = rules.some(({ action, tool, input: fields }) =>
      action === "allow" && tool(name) && fields.some(([field]) => PATH_FIELDS.includes(field))
    );
    const facts = {
      declares: (field: string) => declaresField(tool?.input_schema, field),
      real_paths: needs_paths && input !== null ? await realPathsOf(coordinator, input) : null,
    };
    return resultOf(judge(rules, name, input, otherwise, commandsOf, facts), {
      name,
      tool,
      rules,
      preset,
      label,
    });
  };
}

function compileRule({ tool, argv, input, action, ...rule }: WrittenRule): Rule {
  // a key of another runtime may narrow the rule, so the rule asks instead of allowing
  const narrowed = Object.keys(rule).some((key) => !Object.hasOwn(RULE_PROPERTIES, key));
  const written = {
    tool,
    ...(argv ? { argv } : {}),
    ...(input ? { input } : {}),
    action: action === "allow" && narrowed ? "ask" as const : action,
  };
  const fields = Object.entries(input ?? {}).map(([field, glob]) => `${field}=${glob}`);
  return { ...rule, ...compileMatcher(written), text: [tool, ...argv ?? [], ...fields].join(" ") };
}

/** Resolves to the names of the files that the paths of an input lead to; null where no module knows them. */
async function realPathsOf(coordinator: Coordinator, input: JsonObject): Promise<string[][] | null> {
  const realPath = coordinator.getCapability("tool-filesystem.real_path");
  if (typeof realPath !== "function") return null;
  const paths = PATH_FIELDS.map((field) => input[field]).filter((path) => typeof path === "string");
  return await Promise.all(paths.map(async (path) => {
    try {
      const names: unknown = await realPath(path);
      return Array.isArray(names) ? names.map(String) : [];
    } catch {
      return []; // it cannot be reached, so that nothing allows it
    }
  }));
}

/** Returns whether a tool's schema, or one of its alternatives, has a property. */
function declaresField(schema: unknown, field: string): boolean {
  if (!isObject(schema)) return false;
  const { properties, allOf = [], anyOf = [], oneOf = [] } = schema;
  return isObject(properties) && Object.hasOwn(properties, field) ||
    [allOf, anyOf, oneOf].flat().some((part) => isObject(part) && declaresField(part, field));
}

/** Returns the decision about a call that no rule matches. */
function presetAction(
  preset: Preset,
  name: string,
  tool: Tool | undefined,
  input: JsonObject | null,
): RuleAction {
  if (preset === "ask-all") return "ask";
  const changes = CHANGING.has(name) && !(name === "job" && input?.action === "poll");
  if (preset === "ask-writes") return changes || tool && isRisky(tool) ? "ask" : "allow";
  return changes || tool && (isRisky(tool) || tool.risk === "medium") ? "deny" : "allow";
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

interface JudgedCall {
  readonly name: string;
  readonly tool: Tool | undefined;
  readonly rules: readonly Rule[];
  readonly preset: Preset;
  readonly label: string | undefined;
}

/** Returns the strictest of the decisions about a call; null allows it. */
function resultOf(judgements: readonly Judgement<Rule>[], call: JudgedCall): HookResult | null {
  const denied = judgements.find(({ action }) => action === "deny");
  if (denied) return { action: "deny", reason: denialReason(denied, call) };
  const asked = judgements.filter(({ action }) => action === "ask");
  const [only, ...others] = new Set(asked.map(({ rule }) => rule));
  if (only === undefined) return null;
  if (others.length > 0) return ask(call, null, `Allow all commands of this call of ${call.name}?`);
  // what only may be the command that a rule is about was not meant by an answer to that rule
  return asked.every(({ certain }) => certain) ? ask(call, only) : ask(call, null);
}

function ask({ name, tool }: JudgedCall, rule: Rule | null, prompt?: string): HookResult {
  return {
    action: "ask_user",
    approval_prompt: prompt ?? rule?.prompt ?? `Allow ${name}?`,
    approval_options: rule?.remember
      ? ["Allow", { label: FOR_THE_SESSION, effect: "allow", remember: rule.remember }, "Deny"]
      : ["Allow", "Deny"],
    ...(rule?.remember === "pattern" ? { approval_pattern: rule.text } : {}),
    risk_level: tool?.risk ?? "low",
    ...(rule?.timeout_s === undefined ? {} : { approval_timeout: rule.timeout_s }),
    ...(rule?.default === undefined ? {} : { approval_default: rule.default }),
  };
}

function denialReason({ rule }: Judgement<Rule>, { name, rules, preset, label }: JudgedCall): string {
  if (rule === null) return `${name} may change something, and the preset ${preset} denies that`;
  const at = `${label ?? `rule ${rules.indexOf(rule) + 1}`} denies`;
  return rule.argv ? `${at} this command, or a command that it may run, for ${name}` : `${at} ${name}`;
}
