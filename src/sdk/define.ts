/** `defineTool` and its siblings: sugar that types what you write. Plain objects are equal citizens. */
import type { ContextManager, Orchestrator } from "./contracts.ts";
import type { HookHandler, HookOptions } from "./hooks.ts";
import { isObject, type JsonObject, type JsonSchema } from "./json.ts";
import type { Provider } from "./providers.ts";
import { issuesText, type SchemaOutput, type StandardSchema } from "./standard_schema.ts";
import { type RiskLevel, type Tool, type ToolCallContext, toolFailure } from "./tools.ts";

/** A tool with a schema that types its input. */
export interface ToolDefinition<Schema extends StandardSchema> {
  /** Short, snake_case, unique among the mounted tools. */
  name: string;
  /** What it does and expects, for the model. */
  description: string;
  /** A zod (or any Standard Schema) schema: the input is parsed with it before `execute`, and `input_schema` derived from it. */
  input: Schema;
  /** Overrides the derived JSON Schema. */
  input_schema?: JsonSchema;
  /** Declared risk; default `low`. */
  risk?: RiskLevel;
  /** Whether `hooks-approval` asks before each call. */
  requires_approval?: boolean;
  /** Whether a call may be repeated after a crash without a second effect. */
  idempotent?: boolean;
  /** Runs one call on parsed input; returns (a promise of) anything a tool may return. */
  execute(input: SchemaOutput<Schema>, call?: ToolCallContext): unknown;
}

/**
 * Returns a tool whose `input_schema` is derived from a schema and whose `execute` gets the parsed input. Input that does
 * not fit is answered with a `tool_input_invalid` result that names every finding, for the model to mend.
 *
 * @throws {TypeError} when the schema cannot be told as a JSON Schema of an object and no `input_schema` is given.
 *
 * @example A tool with typed input
 * ```ts
 * import { defineTool, z } from "preamp";
 *
 * const greet = defineTool({
 *   name: "greet",
 *   description: "Greets a person by name.",
 *   input: z.object({ name: z.string() }),
 *   execute: ({ name }) => `Hello, ${name}!`,
 * });
 * console.log(await greet.execute({ name: "Ada" })); // "Hello, Ada!"
 * ```
 */
export function defineTool<Schema extends StandardSchema>(definition: ToolDefinition<Schema>): Tool {
  const { input, execute, ...rest } = definition;
  return {
    ...rest,
    input_schema: definition.input_schema ?? jsonSchemaOf(definition.name, input),
    async execute(given: JsonObject, call?: ToolCallContext) {
      const parsed = await input["~standard"].validate(given);
      if (parsed.issues) return toolFailure(issuesText(parsed.issues), { type: "tool_input_invalid" });
      return await execute.call(definition, parsed.value, call);
    },
  };
}

function jsonSchemaOf(name: string, schema: StandardSchema): JsonSchema {
  const refuse = (fact: string, cause?: unknown) =>
    new TypeError(
      `Cannot derive input_schema of tool "${name}": ${fact}; state it as input_schema: received a ${
        schema["~standard"].vendor
      } schema`,
      cause === undefined ? undefined : { cause },
    );
  let json: unknown;
  try {
    json = schema["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
  } catch (cause) {
    throw refuse("JSON Schema cannot say it", cause);
  }
  if (!isObject(json)) throw refuse("it cannot be told as JSON Schema");
  const { $schema: _, ...rest } = json;
  if (rest.type === "object") return rest;
  // a union of objects says its types inside; providers want the word at the top
  if (rest.type === undefined && (rest.anyOf || rest.oneOf || rest.allOf)) return { type: "object", ...rest };
  throw refuse("a tool's input is an object");
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
  /** Events to handle: exact names, `prefix:*` or `*`. */
  events: string[];
  /** What is done with each of them. */
  handler: HookHandler;
}

/** Returns the hook; types what you write. A module's `mount` may return it, or register the handler itself. */
export function defineHook(hook: HookDefinition): HookDefinition {
  return hook;
}
