/** The todo list: its types, its limits, and its checks. */
import type { JsonObject } from "preamp/base";

/** The progress of a todo. */
export type TodoStatus = "pending" | "in_progress" | "completed";

/** One entry of the list. `activeForm` describes the work in progress ("Running tests"). */
export interface Todo {
  content: string;
  status: TodoStatus;
  activeForm?: string;
}

/** Maximum entries of a list. */
export const MAX_TODOS = 200;

/** Maximum characters of each text. */
export const MAX_TEXT_CHARS = 2_000;

/** Maximum bytes of the saved list: half of the 64 KiB that all modules of a session share. */
export const MAX_LIST_BYTES = 32_768;

/** All statuses, in the order of the work. */
export const STATUSES: readonly TodoStatus[] = ["pending", "in_progress", "completed"];

/** Returns the list with the known fields only, or a sentence that describes what is wrong with it. */
export function parseTodos(value: unknown): Todo[] | string {
  if (!Array.isArray(value)) return `todos must be a list: received ${typeName(value)}`;
  if (value.length > MAX_TODOS) {
    return `todos must have at most ${MAX_TODOS} entries: received ${value.length}`;
  }
  const todos: Todo[] = [];
  for (const [index, item] of value.entries()) {
    const todo = parseTodo(item, `todos[${index}]`);
    if (typeof todo === "string") return todo;
    todos.push(todo);
  }
  const bytes = new TextEncoder().encode(JSON.stringify(todos)).length;
  if (bytes > MAX_LIST_BYTES) return `todos must fit ${MAX_LIST_BYTES} bytes: received ${bytes}`;
  return todos;
}

function parseTodo(value: unknown, path: string): Todo | string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return `${path} must be an object: received ${typeName(value)}`;
  }
  const { content, status, activeForm } = value as JsonObject;
  const problem = findTextProblem(content, `${path}.content`);
  if (problem) return problem;
  if (!STATUSES.includes(status as TodoStatus)) {
    const received = typeof status === "string" ? JSON.stringify(status.slice(0, 40)) : typeName(status);
    return `${path}.status must be one of ${STATUSES.join(", ")}: received ${received}`;
  }
  const todo: Todo = { content: content as string, status: status as TodoStatus }; // both checked above
  if (activeForm === undefined || activeForm === null) return todo;
  return findTextProblem(activeForm, `${path}.activeForm`) ?? { ...todo, activeForm: activeForm as string };
}

function findTextProblem(value: unknown, path: string): string | undefined {
  if (typeof value !== "string") return `${path} must be text: received ${typeName(value)}`;
  if (value.trim() === "") return `${path} must not be empty: received ${JSON.stringify(value.slice(0, 40))}`;
  if (value.length > MAX_TEXT_CHARS) {
    return `${path} must have at most ${MAX_TEXT_CHARS} characters: received ${value.length}`;
  }
  return undefined;
}

function typeName(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "a list" : typeof value;
}
