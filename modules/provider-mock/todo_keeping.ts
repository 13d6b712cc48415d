/**
 * The task of a todo prompt. Adding takes two calls of `todo`, because its `create` and `update` replace the whole list:
 * read what is there, then write it with the new entries. Showing takes one.
 */
import { isObject, type JsonObject } from "preamp";
import type { Step, Task } from "./task.ts";
import type { TodoRequest } from "./todo_request.ts";
import { denialReason, firstParagraph } from "./tool_result.ts";
import type { TurnCall } from "./turn.ts";

/** Returns the task of keeping or showing the list. */
export function todoKeeping(request: TodoRequest): Task {
  return {
    tool: "todo",
    wish: request.kind === "list" ? "read your todo list" : `note ${request.items.join(", ")}`,
    next: (calls) => nextStep(request, calls),
  };
}

function nextStep(request: TodoRequest, [reading, writing]: readonly TurnCall[]): Step {
  if (!reading) return { call: { name: "todo", arguments: { action: "list" } } };
  const trouble = troubleOf(reading.result);
  if (trouble !== null) return { say: `I could not read your todo list: ${trouble}` };
  const saved = savedTodos(reading.result ?? "");
  if (saved === null) return { say: `The tool todo says: ${firstParagraph(reading.result ?? "")}` };
  if (request.kind === "list") return { say: listing("Your todo list", saved) };
  const todos = [...saved, ...request.items.map((content) => ({ content, status: "pending" }))];
  if (!writing) {
    const action = saved.length > 0 ? "update" : "create";
    return { call: { name: "todo", arguments: { action, todos } } };
  }
  const failure = troubleOf(writing.result) ?? (isJsonObject(writing.result ?? "") ? null : writing.result);
  return {
    say: failure === null ? listing("Noted. Your todo list", todos) : `I could not note it: ${failure}`,
  };
}

/** Returns why a call came to nothing, or null when it has a result. */
function troubleOf(result: string | null): string | null {
  if (result === null) return "the tool gave no result.";
  const denied = denialReason(result);
  return denied === null ? null : `the call was denied (${denied}).`;
}

/** Returns the entries of a `list` result, or null when it is none. */
function savedTodos(result: string): JsonObject[] | null {
  const todos = parseJson(firstParagraph(result))?.todos;
  return Array.isArray(todos) ? todos.filter(isObject) : null;
}

function isJsonObject(result: string): boolean {
  return parseJson(firstParagraph(result)) !== null;
}

function parseJson(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null; // a tool may answer in words; they are shown as they are
  }
}

function listing(title: string, todos: readonly JsonObject[]): string {
  if (todos.length === 0) return `${title} is empty.`;
  const lines = todos.map(({ content, status }) => `- ${content}${status === "completed" ? " (done)" : ""}`);
  return `${title} has ${todos.length} ${todos.length === 1 ? "entry" : "entries"}:\n${lines.join("\n")}`;
}
