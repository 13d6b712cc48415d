/**
 * `defineTool`, `defineProvider` and the others: typed and checked definitions. Plain objects work as well.
 */
import type { ContextManager, Orchestrator } from "./contracts.ts";
import { fieldError, requireText, requireTexts } from "./checks.ts";
import type { HookHandler, HookOptions } from "./hooks.ts";
import { isObject, type JsonObject, type JsonSchema } from "./json.ts";
import { schemaProblems } from "./loop/tool_input_validation.ts";
import type { Provider } from "./providers.ts";
import { methodOf } from "./snake_case_aliases.ts";
import { type RiskLevel, type Tool, type ToolCallContext, toolFailure } from "./tools.ts";

/** An issue of a value. */
export interface StandardIssue {
  /** Description of the issue. */
  readonly message: string;
  /** Path to the value, outermost key first. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Result of a validation: a value, or issues. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/**
 * A schema of any library that implements Standard Schema (standardschema.dev, version 1) with its JSON
 * Schema extension: zod, Valibot, ArkType and others. So the SDK depends on none of them for the type of a
 * tool's input.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** Implementation of Standard Schema. */
  readonly "~standard": {
    /** Version of the protocol. */
    readonly version: 1;
    /** Name of the library. */
    readonly vendor: string;
    /** Static types; absent at run time. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Validates and converts. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** Converts the schema to JSON Schema, if the library can. */
    readonly jsonSchema?: {
      /** Returns the schema of the input. */
      readonly input: (options: { readonly target: "draft-2020-12" }) => JsonObject;
    };
  };
}

/** Input type of a schema. */
export type SchemaInput<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["input"];

/** Output type of a schema. */
export type SchemaOutput<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["output"];

/** Schema of a tool's input: zod (or any Standard Schema), or a JSON Schema of an object. */
export type InputSchema = StandardSchema | JsonSchema;

/** Input of `execute`: the output of a Standard Schema, or an object for a JSON Schema. */
export type InputOf<Schema extends InputSchema> = Schema extends StandardSchema ? SchemaOutput<Schema>
  // deno-lint-ignore no-explicit-any -- a JSON Schema has no static types
  : Record<string, any>;

/** Definition of a tool with a schema of its input. */
export interface ToolDefinition<Schema extends InputSchema> {
  /** Short, snake_case, unique among the mounted tools. */
  name: string;
  /** Description for the model: what the tool does and expects. */
  description: string;
  /**
   * A zod schema (or any Standard Schema): it parses the input before `execute`, and `input_schema` is
   * derived from it. Or a JSON Schema of an object: it validates the input and is the `input_schema`.
   */
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
  execute(input: InputOf<Schema>, call?: ToolCallContext): unknown;
}

/**
 * Returns a tool whose `input_schema` is derived from a schema and whose `execute` receives the parsed input.
 * Input that does not fit gets a `tool_input_invalid` result that lists every problem, so that the model can
 * correct it.
 *
 * @throws {TypeError} when the definition lacks a name, an `input` or `execute`, or `input` does not describe
 * an object.
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
 *
 * @example The same with a JSON Schema
 * ```ts
 * import { defineTool } from "preamp";
 *
 * const greet = defineTool({
 *   name: "greet",
 *   description: "Greets a person by name.",
 *   input: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
 *   execute: ({ name }) => `Hello, ${name}!`,
 * });
 * console.log(await greet.execute({ name: "Ada" })); // "Hello, Ada!"
 * ```
 */
export function defineTool<const Schema extends InputSchema>(definition: ToolDefinition<Schema>): Tool {
  requireText("tool", "name", definition.name);
  const { input: _, execute, ...rest } = definition;
  requireMethods("tool", definition, ["execute"]);
  const check = checkOf(definition);
  return {
    ...rest,
    input_schema: check.input_schema,
    async execute(input: JsonObject, call?: ToolCallContext) {
      const parsed = await check.parse(input);
      if ("problem" in parsed) return toolFailure(parsed.problem, { type: "tool_input_invalid" });
      return await execute.call(definition, parsed.value as InputOf<Schema>, call); // the schema's output
    },
  };
}

/** Describes and parses the input of a tool. */
interface InputCheck {
  readonly input_schema: JsonSchema;
  parse(input: JsonObject): Promise<{ value: unknown } | { problem: string }>;
}

function checkOf({ name, input, input_schema }: ToolDefinition<InputSchema>): InputCheck {
  if (isStandardSchema(input)) {
    return {
      input_schema: input_schema ?? jsonSchemaOf(name, input),
      async parse(value) {
        const result = await input["~standard"].validate(value) as {
          value?: unknown;
          issues?: readonly StandardIssue[];
        };
        return result.issues ? { problem: issuesText(result.issues) } : { value: result.value };
      },
    };
  }
  const schema = input_schema ?? objectSchema(name, input);
  return {
    input_schema: schema,
    async parse(value) {
      const problems = await schemaProblems(schema, value, "input");
      return problems.length > 0 ? { problem: problems.join("; ") } : { value };
    },
  };
}

/** Returns the issues as one line: `path: message; path: message`. */
export function issuesText(issues: readonly StandardIssue[]): string {
  return issues.map((issue) => {
    const keys = (issue.path ?? []).map((part) => typeof part === "object" ? part.key : part);
    return `${keys.map(String).join(".") || "input"}: ${issue.message}`;
  }).join("; ");
}

/** Accepts functions too: schemas of ArkType are functions. */
function isStandardSchema(value: unknown): value is StandardSchema {
  return (isObject(value) || typeof value === "function") && "~standard" in value;
}

/** @throws {TypeError} when a value is not a JSON Schema of an object. */
function objectSchema(name: string, value: unknown): JsonSchema {
  const refuse = (fact: string) =>
    new TypeError(
      `Cannot make tool "${name}": input must be a zod schema such as z.object({…}), or a JSON Schema of an object: ${fact}`,
    );
  if (!isObject(value)) throw refuse(`received ${value === null ? "null" : typeof value}`);
  const field = Object.keys(value).find((key) => isStandardSchema(value[key]));
  if (field !== undefined) {
    throw refuse(`received an object of schemas: wrap it in z.object({ ${field}: … })`);
  }
  if (value.type === "object") return value;
  const keywords = ["properties", "required", "anyOf", "oneOf", "allOf", "$ref", "additionalProperties"];
  if (value.type === undefined && keywords.some((keyword) => value[keyword] !== undefined)) {
    return { type: "object", ...value };
  }
  if (value.type === undefined) throw refuse('received an object without type: write type: "object"');
  throw refuse(`received a schema of type ${JSON.stringify(value.type)}`);
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
    throw refuse("it has no JSON Schema form", cause);
  }
  if (!isObject(json)) throw refuse("it has no JSON Schema form");
  const { $schema: _, ...rest } = json;
  if (rest.type === "object") return rest;
  // a union of objects has its types inside; providers require `type` at the top
  if (rest.type === undefined && (rest.anyOf || rest.oneOf || rest.allOf)) return { type: "object", ...rest };
  throw refuse("a tool's input is an object");
}

/**
 * Returns the provider after checking its shape.
 *
 * @throws {TypeError} when its name or a method is missing.
 */
export function defineProvider(provider: Provider): Provider {
  requireText("provider", "name", provider.name);
  return requireMethods("provider", provider, ["getInfo", "listModels", "complete", "parseToolCalls"]);
}

/**
 * Returns the orchestrator after checking its shape.
 *
 * @throws {TypeError} when `execute` is missing.
 */
export function defineOrchestrator(orchestrator: Orchestrator): Orchestrator {
  return requireMethods("loop", orchestrator, ["execute"]);
}

/**
 * Returns the context manager after checking its shape.
 *
 * @throws {TypeError} when a method is missing.
 */
export function defineContext(context: ContextManager): ContextManager {
  const methods = ["addMessage", "getMessagesForRequest", "getMessages", "setMessages", "clear"];
  return requireMethods("context", context, methods);
}

/**
 * Returns the object when every method exists, in camelCase or snake_case.
 *
 * @throws {TypeError} naming the first missing method.
 */
function requireMethods<Part extends object>(model: string, part: Part, methods: readonly string[]): Part {
  for (const name of methods) {
    if (methodOf(part, name)) continue;
    throw fieldError(model, name, "must be a function", (part as Record<string, unknown>)[name]);
  }
  return part;
}

/** Definition of a hook: its events and its handler. */
export interface HookDefinition extends HookOptions {
  /** Events to handle: exact names, `prefix:*` or `*`. */
  events: string[];
  /** Called for each of these events. */
  handler: HookHandler;
}

/**
 * Returns the hook after checking its shape. A module's `mount` may return it, or register the handler
 * itself.
 *
 * @throws {TypeError} when `events` is not a list of names, or the handler is missing.
 */
export function defineHook(hook: HookDefinition): HookDefinition {
  requireTexts("hook", "events", hook.events);
  return requireMethods("hook", hook, ["handler"]);
}
