/**
 * Method names in camelCase and in Amplifier's snake_case: reads modules that use either spelling, and offers
 * both on our own objects.
 */
import { isObject, type JsonObject } from "./json.ts";
import { bind } from "./primordials.ts";

/** Maps camelCase to snake_case for every method that a module may have or call. */
export const SNAKE_CASE: Readonly<Record<string, string>> = {
  addMessage: "add_message",
  collectContributions: "collect_contributions",
  emitAndCollect: "emit_and_collect",
  getCapability: "get_capability",
  getEvents: "get_events",
  getInfo: "get_info",
  getMessages: "get_messages",
  getMessagesForRequest: "get_messages_for_request",
  getModelInfo: "get_model_info",
  getSchema: "get_schema",
  listHandlers: "list_handlers",
  listModels: "list_models",
  newId: "new_id",
  onCancel: "on_cancel",
  onSessionReady: "on_session_ready",
  parseToolCalls: "parse_tool_calls",
  processHookResult: "process_hook_result",
  registerCapability: "register_capability",
  registerChild: "register_child",
  registerCleanup: "register_cleanup",
  registerContributor: "register_contributor",
  registerToolComplete: "register_tool_complete",
  registerToolStart: "register_tool_start",
  requestApproval: "request_approval",
  requestCancel: "request_cancel",
  requestGraceful: "request_graceful",
  requestImmediate: "request_immediate",
  resetTurn: "reset_turn",
  sessionStatus: "session_status",
  setDefaultFields: "set_default_fields",
  setMessages: "set_messages",
  setSystemPromptFactory: "set_system_prompt_factory",
  toDict: "to_dict",
  triggerCallbacks: "trigger_callbacks",
  unregisterChild: "unregister_child",
};

/** Returns the method `name` of `object` in either spelling, bound to it, or undefined. */
export function methodOf(object: unknown, name: string): ((...args: unknown[]) => unknown) | undefined {
  const method = unboundMethodOf(object, name);
  return method && bind(method, object);
}

/** Returns the method `name` of `object` in either spelling, not bound to it, or undefined. */
export function unboundMethodOf(
  object: unknown,
  name: string,
): ((...args: unknown[]) => unknown) | undefined {
  if (typeof object !== "object" && typeof object !== "function" || object === null) return undefined;
  const methods = object as JsonObject;
  const method = methods[name] ?? methods[SNAKE_CASE[name] ?? name];
  return typeof method === "function" ? method as (...args: unknown[]) => unknown : undefined; // a function, just checked
}

/** Adds the snake_case spelling of every known camelCase method to a class, once. Returns the class. */
export function withSnakeCase<T extends { prototype: object }>(constructor: T): T {
  const prototype = constructor.prototype as JsonObject;
  for (const [camel, snake] of Object.entries(SNAKE_CASE)) {
    const method = Object.getOwnPropertyDescriptor(prototype, camel);
    if (method && !Object.hasOwn(prototype, snake)) {
      Object.defineProperty(prototype, snake, { ...method, enumerable: false });
    }
  }
  return constructor;
}

/** Adds the snake_case spelling of every known camelCase method to one object. Returns the object. */
export function addSnakeCase<T extends object>(object: T): T {
  for (const name of Object.keys(object)) {
    const snake = SNAKE_CASE[name];
    if (snake) {
      Object.defineProperty(object, snake, { value: (object as JsonObject)[name], enumerable: false });
    }
  }
  return object;
}

/**
 * Returns the input schema of a tool (`input_schema`, `inputSchema` or `getSchema()`); an empty or invalid
 * one becomes an empty object schema.
 */
export function inputSchemaOf(tool: unknown): JsonObject {
  const fields = tool as JsonObject;
  const schema = fields.input_schema ?? fields.inputSchema ?? methodOf(tool, "getSchema")?.();
  return isObject(schema) && Object.keys(schema).length > 0 ? schema : { type: "object", properties: {} };
}
