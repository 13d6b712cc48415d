/** `tool-todo`: a todo list for the model that is saved with the session. */
import {
  type Coordinator,
  defineTool,
  isObject,
  type JsonObject,
  type ModuleInfo,
  type MountReturn,
  type Tool,
} from "preamp/base";

export const module: ModuleInfo = {
  id: "tool-todo",
  type: "tool",
  version: "1.0.0",
  description: "Lets the model keep a todo list that is saved with the session.",
  config_schema: { type: "object", properties: {} },
};

/** One entry of the list. `activeForm` describes the work in progress ("Running tests"). */
interface Todo {
  content: string;
  status: (typeof STATUSES)[number];
  activeForm?: string;
}

const ACTIONS = ["create", "update", "list"] as const;

/** All statuses, in the order of the work. */
const STATUSES = ["pending", "in_progress", "completed"] as const;

/** Maximum bytes of the saved list: half of the 64 KiB that all modules of a session share. */
const MAX_LIST_BYTES = 32_768;

/** Maximum characters of each text. */
const MAX_TEXT_CHARS = 2_000;

/**
 * Mounts the tool `todo`. Its list is saved in `session_state["tool-todo"]` as `{todos: […]}`. It has no
 * config.
 */
export async function mount(coordinator: Coordinator, _config: JsonObject = {}): Promise<MountReturn> {
  const tool = todoTool(coordinator.session_state);
  await coordinator.mount("tools", tool, tool.name);
  return { name: module.id, version: module.version, provides: [tool.name] };
}

function todoTool(state: JsonObject): Tool {
  return defineTool({
    name: "todo",
    description: "Keep a todo list for work of several steps. create: start a list (replaces the old one). " +
      "update: replace the list, with changed statuses; send every entry. list: read it. Keep one entry in_progress.",
    input: {
      type: "object",
      properties: {
        action: { type: "string", enum: [...ACTIONS] },
        todos: {
          type: "array",
          description: "The complete list; required by create and update",
          maxItems: 200,
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
      if (action !== "list") return save(state, action, todos);
      const saved = readSaved(state);
      return { success: true, output: { status: "listed", ...counts(saved), todos: saved } };
    },
  });
}

function save(state: JsonObject, action: "create" | "update", input: Todo[] | undefined): JsonObject {
  if (!input) return failure(`${action} needs todos`);
  const todos = input.map(({ content, status, activeForm }): Todo => ({
    content,
    status,
    ...(activeForm === undefined ? {} : { activeForm }),
  }));
  if (todos.some((todo) => todo.content.trim() === "" || todo.activeForm?.trim() === "")) {
    return failure("content and activeForm must not be blank");
  }
  const bytes = new TextEncoder().encode(JSON.stringify(todos)).length;
  if (bytes > MAX_LIST_BYTES) return failure(`todos must fit ${MAX_LIST_BYTES} bytes: received ${bytes}`);
  state[module.id] = { todos }; // a new object: only top-level assignments are saved
  return action === "create"
    ? { success: true, output: { status: "created", ...counts(todos), todos } }
    : { success: true, output: { status: "updated", ...counts(todos) } };
}

/**
 * Returns the saved list; state of an unknown form, such as that of an older version, is treated as an empty
 * list.
 */
function readSaved(state: JsonObject): Todo[] {
  const saved = state[module.id];
  const todos: unknown = isObject(saved) ? saved.todos : undefined;
  return Array.isArray(todos) && todos.every(isTodo) ? todos : [];
}

function isTodo(value: unknown): value is Todo {
  return isObject(value) && typeof value.content === "string" &&
    STATUSES.some((status) => status === value.status);
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
