/** What the rule book sees of a request: the last thing a person said, and the calls and results since then. */
import { type Message, parseToolCall, textOf } from "preamp";

/** A call made since the prompt. */
export interface TurnCall {
  name: string;
  /** Text of its result; null while there is none. */
  result: string | null;
}

/** The turn so far. */
export interface Turn {
  prompt: string;
  calls: TurnCall[];
}

/** Returns the text of the last message of a person, empty without one. */
export function promptOf(messages: readonly Message[]): string {
  const message = messages[promptIndex(messages)];
  return message ? textOf(message.content) : "";
}

/** Reads the turn. Looks no further back than the prompt, so a long history costs nothing. */
export function readTurn(messages: readonly Message[]): Turn {
  const start = promptIndex(messages);
  const results = new Map<string, string>();
  const calls: (TurnCall & { id: string })[] = [];
  for (const message of messages.slice(start + 1)) {
    if (message.role === "tool" && message.tool_call_id !== undefined) {
      results.set(message.tool_call_id, textOf(message.content));
    } else if (message.role === "assistant") {
      for (const { id, name } of callsOf(message)) calls.push({ id, name, result: null });
    }
  }
  for (const call of calls) call.result = results.get(call.id) ?? null;
  return { prompt: promptOf(messages), calls };
}

function callsOf(message: Message) {
  const blocks = Array.isArray(message.content) ? message.content : [];
  const calls = message.tool_calls ?? blocks.filter((block) => block.type === "tool_call");
  return calls.map(parseToolCall);
}

/** Returns the index of the last user message that a person wrote, -1 without one. */
function promptIndex(messages: readonly Message[]): number {
  return messages.findLastIndex((message) => message.role === "user" && !isReminder(message));
}

/** Hooks and loops speak as the user too: a hook's message says so in its metadata, a loop's in its tag (behaviour.md §4.6, §7.3). */
function isReminder(message: Message): boolean {
  return message.metadata?.source === "hook" ||
    textOf(message.content).trimStart().startsWith("<system-reminder");
}
