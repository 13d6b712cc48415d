/**
 * Structured output: checks the form of an answer, even if the provider promises it, and asks the model for
 * corrections.
 */
import { isObject, type JsonObject, type JsonSchema } from "../json.ts";
import type { Message, ResponseFormat } from "../messages.ts";
import type { Provider } from "../providers.ts";
import { capabilitiesOf } from "./provider_errors.ts";
import { schemaProblems } from "./tool_input_validation.ts";

/** Maximum correction requests per turn; a model that fails twice seldom succeeds the third time. */
export const MAX_REPAIRS = 2;

/**
 * Returns the format of a config, or undefined for text. OpenAI's key `json_schema` is accepted as `schema`.
 *
 * @throws {TypeError} when the value is not a response format.
 */
export function parseResponseFormat(value: unknown): ResponseFormat | undefined {
  if (value === undefined || value === null) return undefined;
  if (isObject(value)) {
    const { type, strict } = value;
    if (type === "text") return undefined;
    if (type === "json") return { type };
    const schema = schemaOf(value);
    if (type === "json_schema" && isObject(schema)) {
      return { type, schema, ...(typeof strict === "boolean" ? { strict } : {}) };
    }
  }
  throw new TypeError('must be {type: "text"}, {type: "json"} or {type: "json_schema", schema: {…}}');
}

/** Returns the schema next to the type, or nested as in OpenAI's `json_schema: {name, schema}`. */
function schemaOf({ schema, json_schema }: JsonObject): unknown {
  if (schema !== undefined) return schema;
  return isObject(json_schema) && isObject(json_schema.schema) ? json_schema.schema : json_schema;
}

/**
 * Resolves to what is wrong with an answer; an empty list when it has the form. Does not check keywords that
 * may take unlimited time: see {@link checkedPart}.
 */
export async function formatProblems(format: ResponseFormat, text: string): Promise<string[]> {
  if (format.type === "text") return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return [`the answer is not JSON: ${error instanceof Error ? error.message : String(error)}`];
  }
  return format.type === "json" ? [] : await schemaProblems(checkedPart(format.schema), value, "answer");
}

/** Keywords that may take unlimited time: those of regular expressions, and one that compares all pairs. */
const SLOW: ReadonlySet<string> = new Set(["pattern", "patternProperties", "format", "uniqueItems"]);

/** Keywords that refuse a value because a part of the schema accepts it, or depend on what a part accepts. */
const INVERSE: ReadonlySet<string> = new Set([
  "not",
  "if",
  "then",
  "else",
  "maxContains",
  "unevaluatedItems",
  "unevaluatedProperties",
]);

/** Keywords whose value maps names to schemas. */
const MAPS: ReadonlySet<string> = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);
/** Keywords whose value is data. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);

const checked_parts = new WeakMap<JsonSchema, JsonSchema>();

/**
 * Returns the part of a schema that can be checked in limited time, which accepts whatever the schema
 * accepts: the schema itself if it has no slow keyword. A plan in a request may have any schema, and a
 * regular expression can block the whole process.
 */
function checkedPart(schema: JsonSchema): JsonSchema {
  let part = checked_parts.get(schema);
  if (part === undefined) {
    part = !isSlow(schema) ? schema : keepsReferences(schema) ? fastPart(schema) : {};
    checked_parts.set(schema, part);
  }
  return part;
}

/** References to places that {@link fastPart} keeps. */
const KEPT = /^#(?:\/(?:\$defs|definitions|properties)\/[^/]+)*$/;

/** Returns whether all references of a schema, which may name any place of it, lead to a kept one. */
function keepsReferences(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(keepsReferences);
  if (!isObject(schema)) return true;
  return Object.entries(schema).every(([key, value]) =>
    key === "$ref" && typeof value === "string" ? KEPT.test(value) : keepsReferences(value)
  );
}

function isSlow(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(isSlow);
  if (!isObject(schema)) return false;
  return Object.entries(schema).some(([key, value]) =>
    SLOW.has(key) || !DATA.has(key) && isSlow(MAPS.has(key) && isObject(value) ? Object.values(value) : value)
  );
}

function fastPart<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(fastPart) as T; // a list remains one
  if (!isObject(schema)) return schema;
  const fast: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (SLOW.has(key) || INVERSE.has(key)) continue;
    if (key === "additionalProperties" && Object.hasOwn(schema, "patternProperties")) continue;
    if (DATA.has(key)) fast[key] = value;
    else if (MAPS.has(key) && isObject(value)) {
      fast[key] = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, fastPart(part)]));
    } else if (key !== "oneOf") fast[key] = fastPart(value);
    else if (!Object.hasOwn(schema, "anyOf")) fast.anyOf = fastPart(value); // more than one part may accept it
  }
  return fast as T; // a schema remains one
}

/** Returns the instruction for a model whose provider has no structured output, or null. */
export function formatInstruction(format: ResponseFormat | undefined, provider: Provider): Message | null {
  if (!format || format.type === "text" || capabilitiesOf(provider).includes("structured_output")) {
    return null;
  }
  return reminder(
    "response-format",
    `When you give your final answer, answer with JSON alone: no other text, no code fence.${
      format.type === "json_schema"
        ? ` It must match this JSON Schema:\n${JSON.stringify(format.schema)}`
        : ""
    }`,
    { ephemeral: true },
  );
}

/** Returns the message that asks for a corrected answer. */
export function repairRequest(format: ResponseFormat, problems: readonly string[]): Message {
  const form = format.type === "json_schema"
    ? `JSON that matches this JSON Schema:\n${JSON.stringify(format.schema)}`
    : "JSON";
  const problem = `Your answer cannot be used: ${problems.join("; ")}`;
  return reminder("response-format", `${problem}.\nAnswer again, with nothing but ${form}`);
}

/** Returns a message of the loop to the model. `source`: what the reminder is about. */
export function reminder(source: string, text: string, metadata: JsonObject = {}): Message {
  return {
    role: "user",
    content: `<system-reminder source="orchestrator-${source}">\n${text}\n</system-reminder>`,
    metadata: { source: "orchestrator", ...metadata },
  };
}
