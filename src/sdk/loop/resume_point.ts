/** Where an interrupted turn stands, read from the history: for loops that go on with it (architecture.md, Resume). */
import { isObject } from "../json.ts";
import { type Message, textOf } from "../messages.ts";
import { parseToolCall, type ToolCall } from "../tools.ts";

/** Where a turn stands. */
export interface Standing {
  /** Calls of the last assistant message that nobody has answered, in call order. */
  open_calls: ToolCall[];
  /** Text of the last message when that is an answer without calls; null when the model must be asked. */
  answer: string | null;
}

/** Returns where the turn that a history ends with stands. */
export function standingOf(messages: readonly Message[]): Standing {
  const answered = new Set<string>();
  for (const message of messages.toReversed()) {
    if (message.role === "tool") answered.add(String(message.tool_call_id));
    if (message.role !== "assistant") {
      if (message.role === "user" && message.metadata?.source !== "hook") break;
      continue;
    }
    const open_calls = callsOf(message).filter((call) => !answered.has(call.id));
    const last = message === messages.at(-1) && callsOf(message).length === 0;
    return { open_calls, answer: last ? textOf(message.content) : null };
  }
  return { open_calls: [], answer: null };
}

function callsOf(message: Message): ToolCall[] {
  if (Array.isArray(message.tool_calls)) return message.tool_calls.filter(isObject).map(parseToolCall);
  if (!Array.isArray(message.content)) return [];
  return message.content.filter((block) => block.type === "tool_call" || block.type === "tool_use").map(
    parseToolCall,
  );
}
