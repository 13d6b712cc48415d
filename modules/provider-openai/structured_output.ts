/** Response formats: JSON Schemas in the subset that OpenAI enforces, and instructions where it enforces none. */
import { isObject, type JsonObject, type ResponseFormat } from "preamp/base";
import type { CallSettings, Degradations } from "preamp/provider";
import type { RequestOptions } from "./request_options.ts";

/** A response format that the API accepts, and an instruction for the model where the format needs one. */
export interface FormatRequest {
  /** The format; absent: text. */
  readonly format?:
    | { readonly type: "json_object" }
    | {
      readonly type: "json_schema";
      readonly name: string;
      readonly schema: JsonObject;
      readonly strict: boolean;
    };
  /** Text to add to the system prompt. */
  readonly instruction?: string;
}

/** Returns the response format of a call; reports what the API does not enforce. */
export function formatOf(
  call: CallSettings,
  options: RequestOptions,
  degradations: Degradations,
): FormatRequest {
  const wanted = call.response_format;
  if (wanted === undefined || wanted.type === "text") return {};
  if (options.refused.has("response_format")) {
    degradations.add(`response_format ${wanted.type}`, "the server refused it for this model", "instruction");
    return { instruction: instructionOf(wanted) };
  }
  if (wanted.type === "json") {
    // OpenAI refuses JSON mode when no message contains the word
    return mentionsJson(call)
      ? { format: { type: "json_object" } }
      : { format: { type: "json_object" }, instruction: instructionOf(wanted) };
  }
  const schema = wanted.schema as JsonObject;
  if (schema.type !== "object") {
    degradations.add("response_format json_schema", "the schema must be that of an object", "instruction");
    return { instruction: instructionOf(wanted) };
  }
  const name = nameOf(schema);
  if (wanted.strict === false) return { format: { type: "json_schema", name, schema, strict: false } };
  const strict = strictSchema(schema);
  if ("schema" in strict) {
    return { format: { type: "json_schema", name, schema: strict.schema, strict: true } };
  }
  degradations.add("response_format json_schema, strict", strict.problem, "not strict");
  return { format: { type: "json_schema", name, schema, strict: false } };
}

function instructionOf(format: ResponseFormat): string {
  const text = "Answer with JSON alone: no other text, no code fence.";
  return format.type === "json_schema"
    ? `${text} It must match this JSON Schema:\n${JSON.stringify(format.schema)}`
    : text;
}

function mentionsJson({ conversation: { system, turns } }: CallSettings): boolean {
  const parts = [...system, ...turns.flatMap(({ parts }) => parts as readonly { type: string }[])];
  return parts.some((part) => "text" in part && /json/i.test(String(part.text)));
}

function nameOf({ title }: JsonObject): string {
  const name = typeof title === "string" ? title.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) : "";
  return name || "answer";
}

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
 * Returns a schema in the subset that OpenAI enforces, or the reason against it. Every answer that matches it
 * matches the given schema, except for keywords such as `minLength`, which the runtime checks.
 */
export function strictSchema(schema: JsonObject): { schema: JsonObject } | { problem: string } {
  try {
    return { schema: strict(schema, "the schema") };
  } catch (error) {
    if (error instanceof NotStrict) return { problem: error.message };
    throw error;
  }
}

class NotStrict extends Error {}

function strict(schema: unknown, path: string): JsonObject {
  if (!isObject(schema)) throw new NotStrict(`strict output needs a schema object at ${path}`);
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (NEEDED.has(key)) throw new NotStrict(`strict output does not support ${key} at ${path}`);
    if (KEPT.has(key)) result[key] = value;
    else if (key === "items") result.items = strict(value, `${path}.items`);
    else if (key === "anyOf" && Array.isArray(value)) {
      result.anyOf = value.map((item, index) => strict(item, `${path}.anyOf[${index}]`));
    } else if ((key === "$defs" || key === "definitions") && isObject(value)) {
      result[key] = mapValues(value, (item, name) => strict(item, `${path}.${key}.${name}`));
    }
  }
  if (isObjectSchema(schema)) Object.assign(result, objectKeywords(schema, path));
  return result;
}

function isObjectSchema({ type, properties }: JsonObject): boolean {
  return type === "object" || Array.isArray(type) && type.includes("object") || isObject(properties);
}

function objectKeywords(schema: JsonObject, path: string): JsonObject {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const { additionalProperties = !isObject(schema.properties) } = schema;
  if (additionalProperties !== false) {
    throw new NotStrict(`strict output does not allow additionalProperties at ${path}`);
  }
  const names = Object.keys(properties);
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const optional = names.find((name) => !required.includes(name));
  if (optional !== undefined) {
    throw new NotStrict(
      `strict output needs every property in required: ${path} has the optional "${optional}"`,
    );
  }
  return {
    properties: mapValues(properties, (value, name) => strict(value, `${path}.${name}`)),
    required: names,
    additionalProperties: false,
  };
}

function mapValues(
  fields: JsonObject,
  change: (value: unknown, key: string) => JsonObject,
): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, change(value, key)]));
}
