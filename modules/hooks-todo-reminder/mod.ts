/** `hooks-todo-reminder`: shows the model its todo list at the end of each request. */
import {
  type Coordinator,
  isObject,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  type MountReturn,
  readConfig,
} from "preamp/base";

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    inject_role: {
      type: "string",
      enum: ["system", "user", "assistant"],
      default: "user",
      description: "Role of the message",
    },
    priority: { type: "integer", default: 10, description: "Order among hooks; lower runs first" },
  },
};

export const module: ModuleInfo = {
  id: "hooks-todo-reminder",
  type: "hook",
  version: "1.0.0",
  description: "Shows the model its todo list at the end of each request.",
  config_schema: CONFIG_SCHEMA,
};

/** Sign of each status of `tool-todo`. */
const SIGNS: Readonly<Record<string, string>> = { pending: "[ ]", in_progress: "[>]", completed: "[x]" };

/**
 * Registers a handler that adds the list of `tool-todo`, as long as an entry of it is open. The text is not
 * stored.
 *
 * @throws {PreampError} `module_invalid` when the config does not fit the schema.
 */
// deno-lint-ignore require-await -- the contract: mount returns a promise
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { inject_role, priority } = readConfig<{
    inject_role: "system" | "user" | "assistant";
    priority: number;
  }>(CONFIG_SCHEMA, config);
  coordinator.hooks.register("provider:request", () => {
    const lines = openList(coordinator.session_state["tool-todo"]);
    if (lines.length === 0) return null;
    const text =
      `<todo_list>\n${lines.join("\n")}\n</todo_list>\nContinue with the list; keep it current with ` +
      "the todo tool. Do not mention this reminder.";
    return {
      action: "inject_context",
      context_injection: text,
      context_injection_role: inject_role,
      ephemeral: true,
      append_to_last_tool_result: true,
    };
    // a list that cannot be shown must not deny the request
  }, { priority, name: module.id, fail_closed: false });
}

/** Returns a line for each entry of a saved list; no line when all entries are completed. */
function openList(saved: unknown): string[] {
  const todos: unknown = isObject(saved) ? saved.todos : undefined;
  const entries = Array.isArray(todos) ? todos.filter(isObject) : [];
  if (entries.every(({ status }) => status === "completed")) return [];
  return entries.map(({ status, content, activeForm }) =>
    `${SIGNS[String(status)] ?? "[ ]"} ${status === "in_progress" ? activeForm ?? content : content}`
  );
}
