/** What an agent is told of the conversation that spawned it: what was said, in words; never calls, results or instructions. */
import { type Message, textOf } from "preamp";
import type { TaskInput } from "./input.ts";

/** Returns the prompt of an agent: its instruction, after as much of the conversation as was asked for. */
export function promptOf(task: TaskInput, history: readonly Message[]): string {
  const said = task.inherit_context === "none"
    ? []
    : spoken(task.inherit_context === "all" ? history : recent(history, task.inherit_context_turns));
  if (said.length === 0) return task.instruction;
  return `The conversation so far:\n\n${said.join("\n\n")}\n\nYour task:\n${task.instruction}`;
}

/** Returns the last turns: each begins with a message of the user's own. */
function recent(history: readonly Message[], turns: number): readonly Message[] {
  let left = turns;
  for (let index = history.length - 1; index >= 0; index--) {
    if (isUsers(history[index]!) && --left === 0) return history.slice(index);
  }
  return history;
}

/** A message that a person wrote: not a reminder of a hook's or a loop's (behaviour.md §9.8, turn boundary). */
function isUsers({ role, metadata }: Message): boolean {
  const source = metadata?.source;
  return role === "user" && source !== "hook" && source !== "orchestrator";
}

function spoken(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => {
    const who = isUsers(message) ? "User" : message.role === "assistant" ? "Assistant" : null;
    const text = who === null ? "" : textOf(message.content).trim();
    return text === "" ? [] : [`${who}: ${text}`];
  });
}
