/**
 * Validates tool input against the tool's JSON Schema with an interpreter: schemas of modules are never
 * compiled to code.
 */
import type { Schema, Validator } from "@cfworker/json-schema";
import { type JsonObject, type JsonSchema, toPlain } from "../json.ts";
import { inputSchemaOf } from "../snake_case_aliases.ts";
import type { Tool } from "../tools.ts";
import { isValidBySimpleSchema } from "./simple_schema.ts";

const MAX_PROBLEMS = 5;

type Validators = typeof import("@cfworker/json-schema");

let loaded: Validators | null = null;
const validators = new WeakMap<object, Validator>();

/**
 * Returns what is wrong with an input, in words for the model; an empty list when it is valid. A promise when
 * the check runs elsewhere.
 */
export function inputProblems(
  tool: Pick<Tool, "input_schema" | "checkInput">,
  input: JsonObject,
): Promise<readonly string[]> | readonly string[] {
  const schema = inputSchemaOf(tool);
  if (!tool.checkInput) return schemaProblems(schema, input, "input", "the tool's input_schema");
  return isTrivial(schema) ? [] : tool.checkInput(input);
}

/**
 * Returns what is wrong with a value by its JSON Schema (2020-12), which must not change. A promise only while
 * the validator is loaded, once.
 *
 * @param label Name of the whole value in messages.
 */
export function schemaProblems(
  schema: JsonSchema,
  value: unknown,
  label: string,
  schema_name = "the schema",
): Promise<string[]> | string[] {
  if (isValidBySimpleSchema(schema, value)) return [];
  if (loaded) return problemsOf(loaded, schema, value, label, schema_name);
  return import("@cfworker/json-schema").then((library) =>
    problemsOf(loaded = library, schema, value, label, schema_name)
  );
}

function problemsOf(
  { Validator }: Validators,
  schema: JsonSchema,
  value: unknown,
  label: string,
  schema_name: string,
): string[] {
  let validator = validators.get(schema);
  if (!validator) {
    // a copy, because the validator writes into the schema
    validator = new Validator(toPlain(schema) as Schema, "2020-12", false);
    validators.set(schema, validator);
  }
  let result;
  try {
    result = validator.validate(value);
  } catch (error) {
    return [`${schema_name} cannot be used: ${error instanceof Error ? error.message : String(error)}`];
  }
  if (result.valid) return [];
  const leaves = result.errors.filter((error) => !WRAPPERS.has(error.keyword));
  const problems = (leaves.length > 0 ? leaves : result.errors).map((error) =>
    `${place(error.instanceLocation, label)}: ${error.error}`
  );
  return [...new Set(problems)].slice(0, MAX_PROBLEMS);
}

/** Keywords whose error only repeats the error of a part. */
const WRAPPERS: ReadonlySet<string> = new Set([
  "properties",
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
