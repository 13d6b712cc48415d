/** Builds a sub-agent's prompt: its instruction and the inherited text of the conversation, without calls, results and system messages. */
import { type Message, textOf } from "preamp";
import type { TaskInput } from "./input.ts";

/** Returns the prompt of an agent: the requested part of the conversation, then its instruction. */
export function promptOf(task: TaskInput, history: readonly Message[]): string {
  const texts = task.inherit_context === "none"
    ? []
    : textsOf(task.inherit_context === "all" ? history : recent(history, task.inherit_context_turns));
  if (texts.length === 0) return task.instruction;
  return `The conversation so far:\n\n${texts.join("\n\n")}\n\nYour task:\n${task.instruction}`;
}

/** Returns the last turns; each begins with a message that a person wrote. */
function recent(history: readonly Message[], turns: number): readonly Message[] {
  let left = turns;
  for (let index = history.length - 1; index >= 0; index--) {
    if (isFromPerson(history[index]!) && --left === 0) return history.slice(index);
  }
  return history;
}

/** Returns whether a person wrote a message; hooks and loops also add user messages. */
function isFromPerson({ role, metadata }: Message): boolean {
  const source = metadata?.source;
  return role === "user" && source !== "hook" && source !== "orchestrator";
}

function textsOf(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => {
    const speaker = isFromPerson(message) ? "User" : message.role === "assistant" ? "Assistant" : null;
    const text = speaker === null ? "" : textOf(message.content).trim();
    return text === "" ? [] : [`${speaker}: ${text}`];
  });
}
