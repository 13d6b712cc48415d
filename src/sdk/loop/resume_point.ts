/** Finds where to resume an interrupted turn, from its history. */
import { isObject } from "../json.ts";
import { type Message, textOf } from "../messages.ts";
import { parseToolCall, type ToolCall } from "../tools.ts";

/** Point at which a turn resumes. */
export interface Standing {
  /** Unanswered calls of the last assistant message, in call order. */
  open_calls: ToolCall[];
  /** Text of the last message if it is an answer without calls; null when the model must be called. */
  answer: string | null;
}

/** Returns the resume point of the last turn in a history. */
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
