/** Lets hooks select a tool call before its gate, and replace its result. */
import type { Emission, HookRegistry } from "../hooks.ts";
import { isObject, jsonEqual, type JsonObject } from "../json.ts";
import { changedContent, imagesOf } from "../result_content.ts";
import { serializeOutput, shownResult, type ToolCall, ToolResult } from "../tools.ts";

/** Returns the result with which a hook replaced the tool's, or null; compared by value. */
export function changedResult(result: ToolResult, post: Emission): ToolResult | null {
  if (!post.modified) return null;
  const changed = post.data.result;
  const shown = shownResult(result);
  if (jsonEqual(changed, shown)) return null;
  const is_result = isObject(changed) &&
    ["success", "output", "error", "content"].some((field) => field in changed);
  if (!is_result) return ToolResult({ success: result.success, output: changed });
  const error = isObject(changed.error) ? changed.error : null;
  const replaced = ToolResult({ success: changed.success !== false, output: changed.output, error });
  const text = () => serializeOutput(replaced);
  const content = changedContent(changed, shown, imagesOf(result.content), text);
  return content === undefined ? replaced : ToolResult({ ...replaced, content });
}

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
 * Lets hooks select a call before its gate. A handler of `tool:selecting` may return as `data`: `{deny: true,
 * reason?}`, another `tool_name` or another `tool_input`. The first denial wins, otherwise the first choice.
 * Emits `tool:selecting`, then `tool:selected` with the decision and the hooks'
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
