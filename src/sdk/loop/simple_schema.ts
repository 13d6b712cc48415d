/**
 * A quick check against schemas that use only the most common keywords: the inputs of most tools are valid by
 * such a schema, and the validator takes 20 times as long. The validator decides about all other schemas and
 * values, and writes all messages.
 */
import { isObject, type JsonSchema } from "../json.ts";

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
 * Returns true when the schema is simple and the value is valid; false when the validator must decide.
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
