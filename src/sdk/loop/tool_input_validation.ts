/**
 * Validates tool input against the tool's JSON Schema with an interpreter: schemas of modules are never
 * compiled to code.
 */
import type { Schema, Validator } from "@cfworker/json-schema";
import { errorMessage } from "../errors.ts";
import { isObject, type JsonObject, type JsonSchema, toPlain } from "../json.ts";
import { inputSchemaOf } from "../snake_case_aliases.ts";
import { type Tool, toolErrorType } from "../tools.ts";
import { isValidBySimpleSchema } from "./simple_schema.ts";
import { readToolInput } from "./tool_input_reading.ts";

const MAX_PROBLEMS = 5;

/**
 * Maximum steps of one validation: schemas that apply to a value, and each 50 characters of choices and
 * required names in them. References and alternatives inside each other would take exponential time.
 */
const MAX_STEPS = 100_000;
/**
 * Maximum milliseconds of one validation, of processor time where the host reveals it: a busy machine is not
 * the schema's fault. The steps of usual schemas take less than 500; a step takes longer the more properties
 * the schema and the value have.
 */
const MAX_MS = 2_000;
let steps = 0;
let started_ms = 0;
let started_work_ms = 0;

/** Returns the processor time of this thread in milliseconds; the time of the clock where it is unknown. */
function workMs(): number {
  const { process } = globalThis as {
    process?: { threadCpuUsage?: () => { user: number; system: number } };
  };
  const used = process?.threadCpuUsage?.();
  return used ? (used.user + used.system) / 1_000 : performance.now();
}

/** Steps of a schema. */
const COST = Symbol("cost");

/** Prototype of the schemas of a validator, which reads this keyword of older drafts once in each step. */
const COUNTED = {
  get $recursiveRef(): undefined {
    steps += (this as { [COST]?: number })[COST] ?? 1;
    if (steps > MAX_STEPS) throw new RangeError(`it takes more than ${MAX_STEPS} steps`);
    // perf: the clock is read a hundred times as fast as the processor time
    if (performance.now() - started_ms > MAX_MS && workMs() - started_work_ms > MAX_MS) {
      throw new RangeError(`it takes more than ${MAX_MS} ms`);
    }
    return undefined;
  },
};

/** Keys of the validator's own, such as a resolved reference. */
const RESERVED = /^\$recursiveRef$|^__absolute_|^__proto__$/;

/** Keywords that some programs write with null in place of leaving them out. */
const STATED_AS_NULL: ReadonlySet<string> = new Set(["type", "enum", "required"]);

/** Returns a copy of a schema whose steps are counted; the validator also writes into it. */
function countedCopy(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(countedCopy);
  if (!isObject(schema)) return schema;
  const copy: JsonObject & { [COST]?: number } = Object.create(COUNTED);
  for (const key of Object.keys(schema)) {
    if (RESERVED.test(key) || schema[key] === null && STATED_AS_NULL.has(key)) continue;
    copy[key] = key === "const" || key === "enum" ? schema[key] : countedCopy(schema[key]); // these are data
  }
  const { enum: choices, const: choice, required, type } = schema;
  copy[COST] = 1 + JSON.stringify([choices, choice, required, type]).length / 50;
  return copy;
}

let library: typeof import("@cfworker/json-schema") | null = null;
const validators = new WeakMap<object, Validator>();

/** Resolves to what is wrong with an input, in words for the model; to an empty list when it is valid. */
export async function inputProblems(
  tool: Pick<Tool, "input_schema" | "checkInput">,
  input: JsonObject,
): Promise<readonly string[]> {
  const schema = inputSchemaOf(tool);
  if (tool.checkInput && isTrivial(schema)) return [];
  const read = readToolInput(schema, input); // as the tool gets it
  const found = tool.checkInput
    ? tool.checkInput(read)
    : schemaProblems(schema, read, "input", "the tool's input_schema");
  return [...await found];
}

/** Why a call does not run: the `error` of `tool:error`. */
export interface Refusal {
  type: string;
  msg: string;
}

/** Resolves to why a tool cannot be called with an input, or to null. */
export async function refusalOfInput(
  tool: Pick<Tool, "name" | "input_schema" | "checkInput">,
  input: JsonObject,
): Promise<Refusal | null> {
  try {
    const problems = await inputProblems(tool, input);
    if (problems.length === 0) return null;
    const msg = `Invalid arguments for tool '${tool.name}': ${problems.join("; ")}`;
    return { type: "tool_input_invalid", msg };
  } catch (error) { // a sandboxed tool checks itself, and may hang, be gone, or return no list
    const msg = `Cannot check the arguments of tool '${tool.name}': ${errorMessage(error)}`;
    return { type: toolErrorType(error), msg };
  }
}

/**
 * Resolves to what is wrong with a value by its JSON Schema (2020-12), which must not change.
 *
 * @param label Name of the whole value in messages.
 */
export async function schemaProblems(
  schema: JsonSchema,
  value: unknown,
  label: string,
  schema_name = "the schema",
): Promise<string[]> {
  if (isValidBySimpleSchema(schema, value)) return [];
  const { Validator } = library ??= await import("@cfworker/json-schema");
  let result;
  try {
    steps = 0;
    started_ms = performance.now();
    started_work_ms = workMs();
    let validator = validators.get(schema);
    if (!validator) {
      validator = new Validator(countedCopy(toPlain(schema)) as Schema, "2020-12", false);
      validators.set(schema, validator);
    }
    steps = 0;
    result = validator.validate(value);
  } catch (error) {
    return [`${schema_name} cannot be used: ${error instanceof Error ? error.message : String(error)}`];
  }
  if (result.valid) return [];
  const leaves = result.errors.filter((error) => !WRAPPERS.has(error.keyword));
  const problems = (leaves.length > 0 ? leaves : result.errors).map(({ keyword, instanceLocation, error }) =>
    `${place(instanceLocation, label)}: ${keyword === "false" ? NOT_KNOWN : error}`
  );
  return [...new Set(problems)].slice(0, MAX_PROBLEMS);
}

/** What is wrong with a property that the schema does not have. */
const NOT_KNOWN = "is not known";

/** Keywords whose error only repeats the error of a part. */
const WRAPPERS: ReadonlySet<string> = new Set([
  "properties",
  "additionalProperties",
  "items",
  "prefixItems",
  "allOf",
  "$ref",
  "additionalItems",
  "contains",
]);

function isTrivial(schema: JsonObject): boolean {
  const { properties } = schema;
  return schema.type === "object" && typeof properties === "object" && properties !== null &&
    Object.keys(properties).length === 0 && Object.keys(schema).length === 2;
}

function place(location: string, label: string): string {
  const path = location.replace(/^#\/?/, "").replaceAll("/", ".");
  return path === "" ? label : path;
}
