/**
 * Answers without a script: arithmetic goes to the tool `calculator`, todos to the tool `todo`, the rest is said back. It
 * reads the prompt and the results since; it keeps nothing, calls nothing that is not offered, and says what it is.
 */
import type { ChatRequest } from "preamp";
import { findExpression } from "./arithmetic.ts";
import { calculation } from "./calculation.ts";
import { tokenize } from "./lexer.ts";
import { endOfPhrase } from "./phrases.ts";
import type { ScriptedCall, ScriptEntry } from "./script.ts";
import type { Task } from "./task.ts";
import { todoKeeping } from "./todo_keeping.ts";
import { readTodoRequest } from "./todo_request.ts";
import { readTurn } from "./turn.ts";

const IDENTITY_QUESTIONS = [
  ["who", "are", "you"],
  ["what", "are", "you"],
  ["what", "model"],
  ["which", "model"],
  ["your", "name"],
  ["are", "you", "real"],
  ["are", "you", "an", "ai"],
  ["real", "model"],
  ["real", "provider"],
] as const;

const IDENTITY =
  "I am provider-mock, a scripted demo provider; there is no model behind me. I send arithmetic to the tool calculator and " +
  "todos to the tool todo, and say the rest back. For a real model change the provider line of the plan: name a provider module, " +
  "and where it comes from with source.";

/** Code units of a prompt that are looked at; a demo's limit that keeps any prompt cheap. */
const MAX_READ_CHARS = 2_000;

/** Code points of a prompt that are said back. */
const MAX_ECHO_CHARS = 200;

/** Returns what the rule book answers to a request: tool calls while there is something to do, then text. */
export function answerByRules(request: ChatRequest): ScriptEntry {
  const turn = readTurn(request.messages);
  const offered = offeredTools(request);
  const tasks = tasksOf(turn.prompt);
  if (tasks.length === 0) return { text: withoutTask(turn.prompt, offered) };
  const calls: ScriptedCall[] = [];
  const sentences: string[] = [];
  for (const task of tasks) {
    const step = task.next(turn.calls.filter((call) => call.name === task.tool));
    if ("say" in step) sentences.push(step.say);
    else if (offered.has(task.tool)) calls.push(step.call);
    else sentences.push(`I cannot ${task.wish}: no tool named "${task.tool}" is offered with this request.`);
  }
  return calls.length > 0 ? { tool_calls: calls } : { text: sentences.join("\n") };
}

/** Returns the names of the tools that may be called. */
function offeredTools(request: ChatRequest): ReadonlySet<string> {
  const choice = request.tool_choice;
  const none = choice === "none" || (typeof choice === "object" && choice.type === "none");
  return new Set(none ? [] : request.tools?.map((tool) => tool.name));
}

function tasksOf(prompt: string): Task[] {
  const read = prompt.slice(0, MAX_READ_CHARS);
  const tokens = tokenize(read);
  const expression = findExpression(read, tokens);
  const todo = readTodoRequest(read, tokens);
  return [...(expression ? [calculation(expression)] : []), ...(todo ? [todoKeeping(todo)] : [])];
}

function withoutTask(prompt: string, offered: ReadonlySet<string>): string {
  if (endOfPhrase(tokenize(prompt.slice(0, MAX_READ_CHARS)), IDENTITY_QUESTIONS) >= 0) return IDENTITY;
  const ideas = [
    ...(offered.has("calculator") ? ['"What is 6 × 7?"'] : []),
    ...(offered.has("todo") ? ['"Remind me to water the plants"'] : []),
  ];
  const said = prompt.trim() === ""
    ? "You said nothing I can read."
    : `You said: "${shortened(prompt.trim())}".`;
  const hint = ideas.length > 0 ? ` Try ${ideas.join(" or ")}.` : "";
  return `${said} I am the scripted demo provider, so that is all I make of it.${hint}`;
}

function shortened(text: string): string {
  const start = [...text.slice(0, 2 * MAX_ECHO_CHARS + 2)];
  return start.length > MAX_ECHO_CHARS ? `${start.slice(0, MAX_ECHO_CHARS).join("")}…` : text;
}
