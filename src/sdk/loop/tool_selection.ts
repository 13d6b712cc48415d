/**
 * Lets hooks select a call before its gate, at `tool:selecting`. A handler may return as `data`: `{deny:
 * true, reason?}`, another `tool_name` or another `tool_input`. The first denial wins, otherwise the first
 * choice.
 */
import type { HookRegistry } from "../hooks.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { ToolCall } from "../tools.ts";

/** Decision about a call. */
export type Selection = { call: ToolCall } | { denied: string };

/** Dependencies of a selection. */
export interface SelectingParts {
  /** Where the events are emitted. */
  hooks: HookRegistry;
  /** Names of the available tools. */
  tools: readonly string[];
  /** Group id in both events. */
  parallel_group_id: string;
  /** Timeout of each handler in seconds; default: that of `emitAndCollect`. */
  timeout_s?: number;
}

/**
 * Asks the hooks about a call: emits `tool:selecting`, then `tool:selected` with the decision and the hooks'
 * data.
 */
export async function selectTool(call: ToolCall, parts: SelectingParts): Promise<Selection> {
  const { hooks, tools, parallel_group_id, timeout_s } = parts;
  const facts = {
    tool_name: call.name,
    tool_call_id: call.id,
    tool_input: call.arguments,
    parallel_group_id,
  };
  const decisions =
    (await hooks.emitAndCollect("tool:selecting", { ...facts, available_tools: tools }, timeout_s))
      .filter(isObject);
  const denial = decisions.find((decision) => decision.deny === true || decision.action === "deny");
  const selection: Selection = denial
    ? { denied: typeof denial.reason === "string" ? denial.reason : "not selected" }
    : { call: chosen(call, decisions) };
  await hooks.emit("tool:selected", {
    ...facts,
    ...("call" in selection
      ? { tool_name: selection.call.name, tool_input: selection.call.arguments }
      : { denied: true, reason: selection.denied }),
    decisions,
  });
  return selection;
}

function chosen(call: ToolCall, decisions: readonly JsonObject[]): ToolCall {
  const named = decisions.find(({ tool_name }) => typeof tool_name === "string" && tool_name !== "");
  const replaced = decisions.find(({ tool_input }) => isObject(tool_input));
  if (!named && !replaced) return call;
  const name = named ? String(named.tool_name) : call.name;
  const input = replaced ? replaced.tool_input as JsonObject : call.arguments; // an object, just checked
  const changed: ToolCall = { id: call.id, name, tool: name, arguments: input, input };
  return replaced || call.invalid_arguments === undefined
    ? changed
    : { ...changed, invalid_arguments: call.invalid_arguments };
}
