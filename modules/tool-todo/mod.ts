/** `tool-todo`: a todo list for the model that is saved with the session. */
import type { Coordinator, JsonObject, ModuleInfo, MountReturn, Tool } from "preamp/base";
import { MAX_TEXT_CHARS, MAX_TODOS, parseTodos, STATUSES, type Todo } from "./todos.ts";

/** Describes the module. */
export const module: ModuleInfo = {
  id: "tool-todo",
  type: "tool",
  version: "1.0.0",
  description: "Lets the model keep a todo list that is saved with the session.",
  config_schema: { type: "object", properties: {} },
};

const ACTIONS = ["create", "update", "list"] as const;

/** Mounts the tool `todo`. Its list is saved in `session_state["tool-todo"]` as `{todos: […]}`. It has no config. */
export async function mount(coordinator: Coordinator, _config: JsonObject = {}): Promise<MountReturn> {
  const tool = todoTool(coordinator.session_state);
  await coordinator.mount("tools", tool, tool.name);
  return { name: module.id, version: module.version, provides: [tool.name] };
}

function todoTool(state: JsonObject): Tool {
  return {
    name: "todo",
    description: "Keep a todo list for work of several steps. create: start a list (replaces the old one). " +
      "update: replace the list, with changed statuses; send every entry. list: read it. Keep one entry in_progress.",
    input_schema: {
      type: "object",
      properties: {
        action: { type: "string", enum: [...ACTIONS] },
        todos: {
          type: "array",
          description: "The complete list; required by create and update",
          maxItems: MAX_TODOS,
          items: {
            type: "object",
            properties: {
              content: {
                type: "string",
                description: 'What to do, such as "Run the tests"',
                maxLength: MAX_TEXT_CHARS,
              },
              status: { type: "string", enum: [...STATUSES] },
              activeForm: {
                type: "string",
                description: 'The same while it is done, such as "Running the tests"',
                maxLength: MAX_TEXT_CHARS,
              },
            },
            required: ["content", "status"],
          },
        },
      },
      required: ["action"],
    },
    risk: "low",
    idempotent: true, // every action replaces or returns the whole list
    execute({ action, todos }) {
      switch (action) {
        case "create":
        case "update":
          return save(state, action, todos);
        case "list": {
          const saved = readSaved(state);
          return { success: true, output: { status: "listed", ...counts(saved), todos: saved } };
        }
        default:
          return failure(`action must be one of ${ACTIONS.join(", ")}`);
      }
    },
  };
}

function save(state: JsonObject, action: "create" | "update", input: unknown): JsonObject {
  const todos = parseTodos(input);
  if (typeof todos === "string") return failure(todos);
  state[module.id] = { todos }; // a new object: only top-level assignments are saved
  return action === "create"
    ? { success: true, output: { status: "created", ...counts(todos), todos } }
    : { success: true, output: { status: "updated", ...counts(todos) } };
}

/** Returns the saved list; state of an unknown form, such as that of an older version, is treated as an empty list. */
function readSaved(state: JsonObject): Todo[] {
  const saved = state[module.id];
  const todos = parseTodos(typeof saved === "object" && saved !== null ? (saved as JsonObject).todos : []);
  return typeof todos === "string" ? [] : todos;
}

function counts(todos: readonly Todo[]): JsonObject {
  const by = (status: string) => todos.filter((todo) => todo.status === status).length;
  return {
    count: todos.length,
    pending: by("pending"),
    in_progress: by("in_progress"),
    completed: by("completed"),
  };
}

function failure(fact: string): JsonObject {
  return {
    success: false,
    error: { type: "tool_input_invalid", message: `Cannot keep the todo list: ${fact}` },
  };
}
