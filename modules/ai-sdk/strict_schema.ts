/** JSON Schemas in the subset that OpenAI's strict outputs enforce. */
import { isObject, type JsonObject } from "preamp/base";

/** Keywords that OpenAI enforces or ignores in a strict schema. */
const KEPT: ReadonlySet<string> = new Set(
  ("type title description enum const $ref pattern format multipleOf minimum maximum " +
    "exclusiveMinimum exclusiveMaximum minItems maxItems").split(" "),
);

/** Keywords without which the schema would mean something else. */
const NEEDED: ReadonlySet<string> = new Set(
  ("allOf oneOf not if then else patternProperties dependentRequired dependentSchemas dependencies " +
    "propertyNames prefixItems contains unevaluatedProperties unevaluatedItems $dynamicRef " +
    "$recursiveRef").split(" "),
);

/**
 * Returns a schema in that subset, or the reason against it. Every answer that matches it matches the given
 * schema, except for keywords such as `minLength`, which the runtime checks.
 */
export function strictSchema(schema: JsonObject): { schema: JsonObject } | { problem: string } {
  try {
    return { schema: strict(schema, "the schema") };
  } catch (error) {
    if (error instanceof NotStrict) return { problem: `strict output ${error.message}` };
    throw error;
  }
}

class NotStrict extends Error {}

function strict(schema: unknown, path: string): JsonObject {
  if (!isObject(schema)) throw new NotStrict(`needs a schema object at ${path}`);
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (NEEDED.has(key)) throw new NotStrict(`does not support ${key} at ${path}`);
    if (KEPT.has(key)) result[key] = value;
    else if (key === "items") result.items = strict(value, `${path}.items`);
    else if (key === "anyOf" && Array.isArray(value)) {
      result.anyOf = value.map((item, index) => strict(item, `${path}.anyOf[${index}]`));
    } else if ((key === "$defs" || key === "definitions") && isObject(value)) {
      result[key] = mapValues(value, (item, name) => strict(item, `${path}.${key}.${name}`));
    }
  }
  const { type, properties } = schema;
  const is_object = [type].flat().includes("object") || isObject(properties);
  return is_object ? { ...result, ...objectKeywords(schema, path) } : result;
}

function objectKeywords(schema: JsonObject, path: string): JsonObject {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const { additionalProperties = !isObject(schema.properties) } = schema;
  if (additionalProperties !== false) throw new NotStrict(`does not allow additionalProperties at ${path}`);
  const names = Object.keys(properties);
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const optional = names.find((name) => !required.includes(name));
  if (optional !== undefined) {
    throw new NotStrict(`needs every property in required: ${path} has the optional "${optional}"`);
  }
  return {
    properties: mapValues(properties, (value, name) => strict(value, `${path}.${name}`)),
    required: names,
    additionalProperties: false,
  };
}

function mapValues(fields: JsonObject, change: (value: unknown, key: string) => JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, change(value, key)]));
}
