/** `hooks-approval`: which tool calls run, which wait for a person, which never run (behaviour.md §9.2, modules.md). */
import type { Coordinator, HookHandler, HookResult, JsonObject, ModuleInfo, MountReturn, Tool } from "preamp";
import { couldRun, type Invocation, invocationsOf, surelyRuns } from "./command_match.ts";
import { MAX_GLOB_CHARS } from "./glob.ts";
import { MAX_RULES, readRules, type Rule } from "./rules.ts";

const GLOB = { type: "string", minLength: 1, maxLength: MAX_GLOB_CHARS };

/** What this module is. */
export const module: ModuleInfo = {
  id: "hooks-approval",
  type: "hook",
  version: "1.0.0",
  description: "Allows, asks about or denies tool calls by rules, and asks about risky ones without a rule.",
  gates: true,
  config_schema: {
    type: "object",
    properties: {
      rules: {
        type: "array",
        maxItems: MAX_RULES,
        description: "The first rule that matches decides",
        items: {
          type: "object",
          required: ["tool", "action"],
          properties: {
            tool: { ...GLOB, description: "Glob over the tool's name" },
            argv: {
              type: "array",
              minItems: 1,
              items: GLOB,
              description: "Globs over the words of a shell command; a last ** stands for any further words",
            },
            action: { enum: ["allow", "ask", "deny"] },
            prompt: { type: "string", minLength: 1 },
            timeout_s: { type: "number", exclusiveMinimum: 0 },
            default: { enum: ["allow", "deny"], description: "What a timeout means" },
            remember: {
              enum: ["session", "pattern"],
              description:
                "Offers to allow the like for the rest of the session: the tool, or what this rule matches",
            },
          },
        },
      },
    },
  },
};

/** The third choice of a rule that says `remember`. */
const FOR_THE_SESSION = "Allow for this session";

/** Tools that change the machine, by the names they go by; asked about whatever they declare of themselves. */
const CHANGING: ReadonlySet<string> = new Set(["write_file", "edit_file", "apply_patch", "bash"]);

/**
 * Registers the gate on `tool:pre`, before handlers of usual priority. A hook that fails to mount is skipped, and the tools it
 * was to guard would run unasked: with rules that cannot be read the gate denies every call and says why.
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
  try {
    rules = await readRules(config);
  } catch (error) {
    const reason = `no tool may run: ${error instanceof Error ? error.message : String(error)}`;
    return () => ({ action: "deny", reason });
  }
  return (_event, data) => decide(coordinator, rules, data);
}

/** Returns what is to happen to one call; null lets it run. */
function decide(coordinator: Coordinator, rules: readonly Rule[], data: JsonObject): HookResult | null {
  const name = typeof data.tool_name === "string" && data.tool_name ? data.tool_name : "unknown tool";
  const tool = toolOf(coordinator, name);
  const input = data.tool_input;
  // Loops that emit no input (R0's) leave nothing to match words with.
  const invocations = isObject(input) ? invocationsOf(input) : null;
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

/** Returns the tool of a name: of those mounted under it, or calling themselves so, the one that asks for most care. */
function toolOf(coordinator: Coordinator, name: string): Tool | undefined {
  const found = Object.entries(coordinator.tools).filter(([key, tool]) => key === name || tool.name === name);
  const tools = found.map(([, tool]) => tool);
  return tools.find(isRisky) ?? tools[0];
}

function isRisky(tool: Tool): boolean {
  return tool.requires_approval === true || tool.risk === "high" || tool.risk === "critical";
}

/** Allowing needs certainty about every way the call says what it runs; denying needs a doubt about one. */
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
    ? `rule ${index + 1} does not let ${name} run this command, or one that could turn into it`
    : `rule ${index + 1} does not let ${name} run`;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
