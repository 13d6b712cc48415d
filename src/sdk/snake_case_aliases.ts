/**
 * Alternative spellings. Method names in camelCase and in Amplifier's snake_case: reads modules that use
 * either spelling, and offers both on our own objects. Names of mount points.
 */
import { isObject, type JsonObject } from "./json.ts";
import { bind } from "./primordials.ts";

/** Methods that a module may have or call. */
const METHODS = `
  addMessage callTool collectContributions emitAndCollect getCapability getEvents getInfo getMessages
  getMessagesForRequest getModelInfo getSchema listHandlers listModels newId onCancel onSessionReady
  parseToolCalls processHookResult registerCapability registerChild registerCleanup
  registerContributor registerToolComplete registerToolStart requestApproval requestCancel
  requestGraceful requestImmediate resetTurn sessionStatus setDefaultFields setMessages
  setSystemPromptFactory toDict triggerCallbacks unregisterChild`;

/** Maps camelCase to snake_case for these methods. */
export const SNAKE_CASE: Readonly<Record<string, string>> = Object.fromEntries(
  METHODS.trim().split(/\s+/).map((name) => [name, name.replace(/[A-Z]/g, "_$&").toLowerCase()]),
);

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

/** Mount point of a module, by its type. */
export const POINT = {
  orchestrator: "orchestrator",
  context: "context",
  provider: "providers",
  tool: "tools",
  hook: "hooks",
} as const;

/** A mount point for one module. */
export type SingleSlot = "orchestrator" | "context";

/** A mount point for modules by name. */
export type ManySlot = "providers" | "tools";

/** A resolved mount point. */
type Slot = { single: SingleSlot; many?: never } | { single?: never; many: ManySlot };

const SLOTS: Readonly<Record<string, Slot>> = {
  orchestrator: { single: "orchestrator" },
  orchestrators: { single: "orchestrator" },
  context: { single: "context" },
  contexts: { single: "context" },
  providers: { many: "providers" },
  provider: { many: "providers" },
  tools: { many: "tools" },
  tool: { many: "tools" },
};

/**
 * Returns the canonical mount point; `session` with the name of a single slot means that slot.
 *
 * @throws {TypeError} `Unknown mount point …`.
 */
export function resolvePoint(point: string, name?: string): Slot {
  const key = point === "session" ? name ?? "" : point;
  const slot = Object.hasOwn(SLOTS, key) ? SLOTS[key] : undefined;
  if (slot && (slot.single || point !== "session")) return slot;
  const must = point === "session"
    ? `name must be "orchestrator" or "context": received "${key}"`
    : "must be orchestrator, context, providers or tools";
  throw new TypeError(`Unknown mount point "${point}": ${must}`);
}
