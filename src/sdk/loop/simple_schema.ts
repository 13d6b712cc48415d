/** Validates by JSON Schemas of the most common keywords, without the validator. */
import { IS_OF_TYPE } from "../config.ts";
import { isObject, type JsonObject } from "../json.ts";

/** Keywords of simple schemas, and those that do not affect whether a value is valid. */
const SIMPLE_KEYWORDS: ReadonlySet<string> = new Set([
  ...["additionalProperties", "enum", "items", "properties", "required", "type"],
  ...["$comment", "$schema", "default", "deprecated", "description", "examples", "title"],
]);

const ANY = [...IS_OF_TYPE.keys()];

const MAX_DEPTH = 64;

/**
 * Returns true when the value is valid and the schemas that apply to it use only the most common keywords;
 * false when the validator, which takes 20 times as long, must decide.
 */
export function isValidBySimpleSchema(schema: unknown, value: unknown, depth = 0): boolean {
  if (!isObject(schema) || depth > MAX_DEPTH) return false;
  for (const key in schema) if (!SIMPLE_KEYWORDS.has(key)) return false;
  const { items } = schema;
  const type = schema.type ?? ANY;
  const types = isShortList(type) ? type : [type];
  if (!types.some((name) => IS_OF_TYPE.get(name)?.(value))) return false;
  const choices = schema.enum ?? null;
  if (choices !== null) return isShortList(choices) && !isCompound(value) && choices.includes(value);
  if (isObject(value)) return hasValidFields(schema, value, depth);
  return !Array.isArray(value) || items === undefined ||
    value.every((item) => isValidBySimpleSchema(items, item, depth + 1));
}

/** Most items of a list in a simple schema: the validator counts the steps that longer ones take. */
const MAX_LISTED = 256;

function isShortList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length <= MAX_LISTED;
}

function isCompound(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function hasValidFields(schema: JsonObject, value: JsonObject, depth: number): boolean {
  const { properties = {}, additionalProperties = true } = schema;
  const required = schema.required ?? [];
  if (!isObject(properties) || !isShortList(required)) return false;
  if (!required.every((name) => Object.hasOwn(value, name as string))) return false;
  for (const name in value) {
    const is_valid = Object.hasOwn(properties, name)
      ? isValidBySimpleSchema(properties[name], value[name], depth + 1)
      : additionalProperties === true;
    if (!is_valid) return false;
  }
  return true;
}
