/**
 * Validates tool input against the tool's JSON Schema with an interpreter: schemas of modules are never
 * compiled to code.
 */
import type { Schema, Validator } from "@cfworker/json-schema";
import { isObject, type JsonObject, type JsonSchema, toPlain } from "../json.ts";
import { inputSchemaOf } from "../snake_case_aliases.ts";
import type { Tool } from "../tools.ts";

const MAX_PROBLEMS = 5;

/**
 * Maximum steps of one validation: schemas that apply to a value, and each 50 characters of choices and
 * required names in them. References and alternatives inside each other would take exponential time.
 */
const MAX_STEPS = 100_000;
/**
 * Maximum milliseconds of one validation. The steps of usual schemas take less than 500; a step takes longer
 * the more properties the schema and the value have.
 */
const MAX_MS = 2_000;
let steps = 0;
let started_ms = 0;

/** Steps of a schema. */
const COST = Symbol("cost");

/** Prototype of the schemas of a validator, which reads this keyword of older drafts once in each step. */
const COUNTED = {
  get $recursiveRef(): undefined {
    steps += (this as { [COST]?: number })[COST] ?? 1;
    if (steps > MAX_STEPS) throw new RangeError(`it takes more than ${MAX_STEPS} steps`);
    if (performance.now() - started_ms > MAX_MS) throw new RangeError(`it takes more than ${MAX_MS} ms`);
    return undefined;
  },
};

/** Keys of the validator's own, such as a resolved reference. */
const RESERVED = /^\$recursiveRef$|^__absolute_|^__proto__$/;

/** Returns a copy of a schema whose steps are counted; the validator also writes into it. */
function countedCopy(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(countedCopy);
  if (!isObject(schema)) return schema;
  const copy: JsonObject & { [COST]?: number } = Object.create(COUNTED);
  for (const key of Object.keys(schema)) {
    if (!RESERVED.test(key)) copy[key] = countedCopy(schema[key]);
  }
  const { enum: choices, const: choice, required } = schema;
  copy[COST] = 1 + JSON.stringify([choices, choice, required]).length / 50;
  return copy;
}

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
 * Returns what is wrong with a value by its JSON Schema (2020-12), which must not change. A promise only
 * while the validator is loaded, once.
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
  let result;
  try {
    steps = 0;
    started_ms = performance.now();
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

/** A schema with no other keywords than those below and {@link ANNOTATIONS}. */
interface SimpleSchema {
  readonly types: readonly unknown[] | null;
  /** Values of `enum`: no lists and objects. */
  readonly choices: readonly unknown[] | null;
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, SimpleSchema>>;
  /** Whether `additionalProperties` is false. */
  readonly is_closed: boolean;
  readonly items: SimpleSchema | null;
}

/** Keywords that do not affect whether a value is valid. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  "$comment",
  "$schema",
  "default",
  "deprecated",
  "description",
  "examples",
  "title",
]);

const MAX_DEPTH = 64;

const known = new WeakMap<JsonSchema, SimpleSchema | "not simple">();

/**
 * Returns true when the schema uses only the most common keywords and the value is valid; false when the
 * validator, which takes 20 times as long, must decide.
 *
 * @param schema Must not change: what is known of it is kept.
 */
export function isValidBySimpleSchema(schema: JsonSchema, value: unknown): boolean {
  let simple = known.get(schema);
  if (simple === undefined) known.set(schema, simple = simpleSchema(schema) ?? "not simple");
  return simple !== "not simple" && isValid(simple, value);
}

function simpleSchema(schema: unknown, depth = 0): SimpleSchema | null {
  if (!isObject(schema) || depth > MAX_DEPTH) return null;
  const { type = null, enum: choices = null, required = [], additionalProperties = true } = schema;
  for (const key in schema) if (!KEYWORDS.has(key) && !ANNOTATIONS.has(key)) return null;
  if (typeof additionalProperties !== "boolean") return null;
  if (!Array.isArray(required) || !required.every((name) => typeof name === "string")) return null;
  if (choices !== null && (!Array.isArray(choices) || choices.some(isCompound))) return null;
  const items = schema.items === undefined ? null : simpleSchema(schema.items, depth + 1);
  if (schema.items !== undefined && items === null) return null;
  if (schema.properties !== undefined && !isObject(schema.properties)) return null;
  const properties: Record<string, SimpleSchema> = {};
  for (const [name, part] of Object.entries(schema.properties ?? {})) {
    const simple = simpleSchema(part, depth + 1);
    if (simple === null || name === "__proto__") return null;
    properties[name] = simple;
  }
  const types = type === null || Array.isArray(type) ? type : [type];
  return { types, choices, required, properties, is_closed: !additionalProperties, items };
}

const KEYWORDS: ReadonlySet<string> = new Set([
  "additionalProperties",
  "enum",
  "items",
  "properties",
  "required",
  "type",
]);

const ANY = ["string", "object", "array", "number", "boolean", "null"];

function isCompound(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function isValid(schema: SimpleSchema, value: unknown): boolean {
  const { types, choices } = schema;
  if (!(types ?? ANY).some((type) => hasType(value, type))) return false;
  if (choices !== null && !choices.includes(value)) return false;
  if (Array.isArray(value)) {
    return schema.items === null || value.every((item) => isValid(schema.items!, item));
  }
  return !isObject(value) || hasValidFields(schema, value);
}

function hasValidFields({ required, properties, is_closed }: SimpleSchema, value: object): boolean {
  const fields = value as Record<string, unknown>;
  for (const name of required) if (!Object.hasOwn(fields, name)) return false;
  for (const name in fields) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (schema === undefined ? is_closed : !isValid(schema, fields[name])) return false;
  }
  return true;
}

function hasType(value: unknown, type: unknown): boolean {
  switch (type) {
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "null":
      return value === null;
    case "integer":
      return Number.isInteger(value);
    case "number":
      return Number.isFinite(value);
    default:
      return typeof value === type && (type === "string" || type === "boolean");
  }
}
