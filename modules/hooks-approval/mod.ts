/** `hooks-approval`: allows tool calls, denies them or asks a person, by rules. */
import {
  type Coordinator,
  errorMessage,
  type HookHandler,
  type HookResult,
  isObject,
  type JsonObject,
  type ModuleInfo,
  type MountReturn,
  type Tool,
} from "preamp/base";
import { couldRun, type Invocation, invocationsOf, surelyRuns } from "./command_match.ts";
import { CONFIG_SCHEMA, readRules, type Rule } from "./rules.ts";

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
 * Registers the gate on `tool:pre`, before handlers of default priority. A hook that fails to mount is skipped, and its tools
 * would run without a question. So with an invalid config the gate is mounted and denies every call with the reason.
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
  return (_event, data) => decide(coordinator, rules, data);
}

/** Returns the decision about one call; null allows it. */
function decide(coordinator: Coordinator, rules: readonly Rule[], data: JsonObject): HookResult | null {
  const name = typeof data.tool_name === "string" && data.tool_name ? data.tool_name : "unknown tool";
  const tool = toolOf(coordinator, name);
  const input = data.tool_input;
  // Some loops emit no input, so there are no words to match.
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

/** Returns the tool that is mounted under a name or has this name; if there are several, a risky one. */
function toolOf(coordinator: Coordinator, name: string): Tool | undefined {
  const found = Object.entries(coordinator.tools).filter(([key, tool]) => key === name || tool.name === name);
  const tools = found.map(([, tool]) => tool);
  return tools.find(isRisky) ?? tools[0];
}

function isRisky(tool: Tool): boolean {
  return tool.requires_approval === true || tool.risk === "high" || tool.risk === "critical";
}

/** Returns whether a rule's `argv` matches. To allow or ask, every invocation must match; to deny, one possible match is enough. */
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
