/** `defineTool` and its siblings: sugar that types what you write. Plain objects are equal citizens. */
import type { ContextManager, Orchestrator } from "./contracts.ts";
import type { HookHandler, HookOptions } from "./hooks.ts";
import { isObject, type JsonObject, type JsonSchema } from "./json.ts";
import type { Provider } from "./providers.ts";
import type { RiskLevel, Tool, ToolCallContext } from "./tools.ts";
import { z } from "./zod.ts";

/** A tool with a schema that types its input. */
export interface ToolDefinition<Schema extends z.ZodType> {
  name: string;
  description: string;
  /** A zod schema: the input is parsed with it before `execute`, and `input_schema` is derived from it. */
  input: Schema;
  /** Overrides the derived JSON Schema. */
  input_schema?: JsonSchema;
  risk?: RiskLevel;
  requires_approval?: boolean;
  idempotent?: boolean;
  execute(input: z.output<Schema>, call?: ToolCallContext): unknown;
}

/**
 * Returns a tool whose `input_schema` is derived from a zod schema and whose `execute` gets the parsed input.
 *
 * @throws {TypeError} when the schema cannot be told as JSON Schema and no `input_schema` is given.
 */
export function defineTool<Schema extends z.ZodType>(definition: ToolDefinition<Schema>): Tool {
  const { input, execute, ...rest } = definition;
  return {
    ...rest,
    input_schema: definition.input_schema ?? jsonSchemaOf(definition.name, input),
    async execute(given: JsonObject, call?: ToolCallContext) {
      const parsed = input.safeParse(given);
      if (parsed.success) return await execute(parsed.data, call);
      const message = parsed.error.issues.map((issue) =>
        `${issue.path.join(".") || "input"}: ${issue.message}`
      ).join("; ");
      return { success: false, error: { type: "tool_input_invalid", message } };
    },
  };
}

function jsonSchemaOf(name: string, schema: z.ZodType): JsonSchema {
  try {
    const json = z.toJSONSchema(schema, { io: "input" });
    if (isObject(json)) {
      const { $schema: _, ...rest } = json;
      return rest;
    }
    throw new TypeError("not an object schema");
  } catch (cause) {
    throw new TypeError(
      `Cannot derive input_schema of tool "${name}": state it as input_schema: received a schema JSON Schema cannot say`,
      { cause },
    );
  }
}

/** Returns the provider; types what you write. */
export function defineProvider(provider: Provider): Provider {
  return provider;
}

/** Returns the orchestrator; types what you write. */
export function defineOrchestrator(orchestrator: Orchestrator): Orchestrator {
  return orchestrator;
}

/** Returns the context manager; types what you write. */
export function defineContext(context: ContextManager): ContextManager {
  return context;
}

/** A hook: the events it wants and what it does with them. */
export interface HookDefinition extends HookOptions {
  events: string[];
  handler: HookHandler;
}

/** Returns the hook; types what you write. A module's `mount` may return it, or register the handler itself. */
export function defineHook(hook: HookDefinition): HookDefinition {
  return hook;
}
