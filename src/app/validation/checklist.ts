/**
 * The result of validating a module, and the checklist of `preamp module validate`, filled in from the
 * checks. Its middle items depend on the module's type.
 */
import type { Check } from "../../kernel/module_checks.ts";
import type { ModuleType } from "../../sdk/types.ts";

export interface ChecklistItem {
  /** The requirement. */
  item: string;
  state: "ok" | "warning" | "error" | "unknown";
  /** Findings against it; empty if it holds or could not be checked. */
  findings: string[];
}

/** A requirement and the checks that it consists of. */
type Item = readonly [item: string, checks: readonly string[]];

const MEMBERS: Readonly<Record<ModuleType, readonly Item[]>> = {
  tool: [
    ['mount() calls coordinator.mount("tools", tool, tool.name)', ["protocol_compliance"]],
    ["the tool has a name", ["tool_name"]],
    ["the tool has a description", ["tool_description"]],
    ["the tool has an input_schema", ["tool_input_schema"]],
    ["the tool has a callable execute()", ["tool_execute"]],
  ],
  provider: [
    ['mount() calls coordinator.mount("providers", provider, provider.name)', ["protocol_compliance"]],
    ["the provider has a name", ["provider_name"]],
    ["the provider describes itself in getInfo()", ["provider_get_info"]],
    ["the provider lists its models in listModels()", ["provider_list_models"]],
    ["the provider has complete() and parseToolCalls()", [
      "provider_complete",
      "provider_parse_tool_calls",
    ]],
  ],
  hook: [["mount() calls coordinator.hooks.register(event, handler)", ["protocol_compliance"]]],
  orchestrator: [
    ['mount() calls coordinator.mount("orchestrator", loop)', ["protocol_compliance"]],
    ["the loop has execute() with its five parameters", ["orchestrator_execute"]],
  ],
  context: [
    ['mount() calls coordinator.mount("context", memory)', ["protocol_compliance"]],
    ["the context has addMessage(), getMessages(), setMessages() and clear()", [
      "context_add_message",
      "context_get_messages",
      "context_set_messages",
      "context_clear",
    ]],
    ["the context has getMessagesForRequest()", ["context_get_messages_for_request"]],
  ],
};

const COMMON: readonly Item[] = [
  ["mount() returns metadata, a cleanup or what it mounted", ["mount_return"]],
  ["the module describes itself: export const module = {id, type, version}", ["module_info"]],
  ["tests verify that mount() mounts it", ["module_tests"]],
];

/** Returns the checklist of a type. The state is unknown if none of an item's checks could be made. */
export function checklistOf(type: ModuleType, checks: readonly Check[]): ChecklistItem[] {
  return [...MEMBERS[type], ...COMMON].map(([item, names]) => {
    const made = checks.filter(({ name }) => names.includes(name));
    const wrong = made.filter(({ passed }) => !passed);
    const state = made.length === 0
      ? "unknown"
      : wrong.length === 0
      ? "ok"
      : wrong.some(({ severity }) => severity === "error")
      ? "error"
      : "warning";
    return { item, state, findings: wrong.map(({ name, message }) => `${name}: ${message}`) };
  });
}

/** Returns the checks that belong to no item. */
export function beyondChecklist(type: ModuleType, checks: readonly Check[]): Check[] {
  const listed = new Set([...MEMBERS[type], ...COMMON].flatMap(([, names]) => names));
  return checks.filter(({ name }) => !listed.has(name));
}

/** Checks of one module. */
export interface Validation {
  /** Id that the module exports; null if none. */
  id: string | null;
  type: ModuleType;
  /** Names that it mounted of its type; for a hook, its events. */
  provides: string[];
  /** Checks of its structure: exports, mount, mounted instances. */
  checks: Check[];
  /** Cases of its type's contract suite. Empty if the suite did not run. */
  suite: Check[];
}

/** Counts errors and warnings. `strict`: warnings count as errors. */
export function countFindings(
  checks: readonly Check[],
  strict: boolean,
): { errors: number; warnings: number } {
  const of = (severity: Check["severity"]) =>
    checks.filter((check) => !check.passed && check.severity === severity).length;
  return strict
    ? { errors: of("error") + of("warning"), warnings: 0 }
    : { errors: of("error"), warnings: of("warning") };
}
