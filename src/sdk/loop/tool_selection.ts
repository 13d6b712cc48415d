/**
 * `tool:selecting`: hooks choose what becomes of a call before its gate (behaviour.md §7.8). Each handler may answer with
 * `data`: `{deny: true, reason?}`, another `tool_name`, another `tool_input`. The first denial wins, else the first choice.
 */
import type { HookRegistry } from "../hooks.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { ToolCall } from "../tools.ts";

/** What was decided about a call. */
export type Selection = { call: ToolCall } | { denied: string };

/** What a call is selected with. */
export interface SelectingParts {
  /** Where the events are emitted. */
  hooks: HookRegistry;
  /** Names that may be chosen. */
  tools: readonly string[];
  /** Told with both events, as with the call's others. */
  parallel_group_id: string;
  /** Seconds each handler may take; default of `emitAndCollect`. */
  timeout_s?: number;
}

/** Asks the hooks about a call; emits `tool:selecting`, then `tool:selected` with what was decided and by what. */
export async function selectTool(call: ToolCall, parts: SelectingParts): Promise<Selection> {
  const { hooks, tools, parallel_group_id, timeout_s } = parts;
  const asked = {
    tool_name: call.name,
    tool_call_id: call.id,
    tool_input: call.arguments,
    parallel_group_id,
  };
  const decisions =
    (await hooks.emitAndCollect("tool:selecting", { ...asked, available_tools: tools }, timeout_s))
      .filter(isObject);
  const denial = decisions.find((decision) => decision.deny === true || decision.action === "deny");
  const selection: Selection = denial
    ? { denied: typeof denial.reason === "string" ? denial.reason : "not selected" }
    : { call: chosen(call, decisions) };
  await hooks.emit("tool:selected", {
    ...asked,
    ...("call" in selection
      ? { tool_name: selection.call.name, tool_input: selection.call.arguments }
      : { denied: true, reason: selection.denied }),
    decisions,
  });
  return selection;
}

function chosen(call: ToolCall, decisions: readonly JsonObject[]): ToolCall {
  const named = decisions.find(({ tool_name }) => typeof tool_name === "string" && tool_name !== "");
  const given = decisions.find(({ tool_input }) => isObject(tool_input));
  if (!named && !given) return call;
  const name = named ? String(named.tool_name) : call.name;
  const input = given ? given.tool_input as JsonObject : call.arguments; // an object: it was looked at
  const changed: ToolCall = { id: call.id, name, tool: name, arguments: input, input };
  return given || call.invalid_arguments === undefined
    ? changed
    : { ...changed, invalid_arguments: call.invalid_arguments };
}
