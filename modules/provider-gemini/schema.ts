/**
 * JSON Schemas in the form that the API takes. It documents references to `$defs`, without other keywords
 * beside them, but refuses some of those, too.
 */
import { isObject, type JsonObject } from "preamp/base";

/** Maximum objects of a schema without references: those within each other may multiply. */
const MAX_OBJECTS = 10_000;
/** Maximum references within each other. */
const MAX_DEPTH = 100;

/**
 * Returns a schema with the content of local references in their place. A reference within its own content
 * and one to an unknown place stay, and so do all references of a schema that would be too large. Names in
 * `required` without a property are left out, because the API refuses them.
 */
export function withoutReferences(schema: JsonObject): JsonObject {
  let objects = 0;
  let hasReferences = false;
  const inline = (value: JsonObject, open: readonly string[]): JsonObject => {
    if (objects > MAX_OBJECTS) return value;
    objects += open.length > MAX_DEPTH ? MAX_OBJECTS : 1;
    const { $ref, ...rest } = value;
    if (typeof $ref !== "string") return withKnownRequired(mapSchemas(value, (item) => inline(item, open)));
    const target = open.includes($ref) ? undefined : targetOf(schema, $ref);
    if (target !== undefined) return inline({ ...target, ...rest }, [...open, $ref]);
    hasReferences = true;
    return { $ref };
  };
  const { $schema: _, $defs, definitions, ...own } = schema;
  const inlined = inline(own, []);
  if (objects > MAX_OBJECTS) return mapSchemas(schema, withBareReferences);
  if (!hasReferences) return inlined;
  const targets = { ...($defs === undefined ? {} : { $defs }), ...(definitions ? { definitions } : {}) };
  return { ...inlined, ...withBareReferences(targets) };
}

/** Returns a schema without the keywords beside references. */
function withBareReferences(schema: JsonObject): JsonObject {
  return typeof schema.$ref === "string" ? { $ref: schema.$ref } : mapSchemas(schema, withBareReferences);
}

/** Returns what a pointer such as `#/$defs/key` refers to; undefined when it is no schema of an object. */
function targetOf(schema: JsonObject, reference: string): JsonObject | undefined {
  if (!reference.startsWith("#/")) return undefined;
  let value: unknown = schema;
  for (const part of reference.slice(2).split("/")) {
    const key = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
    const has = (isObject(value) || Array.isArray(value)) && Object.hasOwn(value, key);
    value = has ? (value as JsonObject)[key] : undefined;
  }
  return value === true ? {} : isObject(value) ? value : undefined;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a percent sign that encodes nothing
  }
}

/**
 * Returns a schema whose `required` has names of its properties only. A name of a property in `allOf` is
 * required there.
 */
function withKnownRequired(schema: JsonObject): JsonObject {
  const { required, ...rest } = schema;
  if (!Array.isArray(required)) return schema;
  const known = required.filter((name) => hasProperty(rest, name));
  return {
    ...rest,
    ...(Array.isArray(rest.allOf) ? { allOf: rest.allOf.map((part) => withRequired(part, required)) } : {}),
    ...(known.length > 0 ? { required: known } : {}),
  };
}

function withRequired(part: unknown, names: readonly unknown[]): unknown {
  if (!isObject(part)) return part;
  const known = names.filter((name) => hasProperty(part, name));
  const own: readonly unknown[] = Array.isArray(part.required) ? part.required : [];
  return known.length === 0 ? part : { ...part, required: [...new Set([...own, ...known])] };
}

function hasProperty({ properties }: JsonObject, name: unknown): boolean {
  return isObject(properties) && Object.hasOwn(properties, String(name));
}

/** Keywords whose values are data. */
const DATA: ReadonlySet<string> = new Set(["const", "default", "enum", "example", "examples"]);
/** Keywords whose values are objects of schemas by name. */
const NAMED: ReadonlySet<string> = new Set(
  ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"],
);

/** Returns a schema with each schema directly in it changed. */
function mapSchemas(schema: JsonObject, change: (schema: JsonObject) => JsonObject): JsonObject {
  const changed = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(changed) : isObject(value) ? change(value) : value;
  const inKeyword = (value: unknown, key: string): unknown =>
    DATA.has(key) ? value : NAMED.has(key) && isObject(value) ? mapValues(value, changed) : changed(value);
  return mapValues(schema, inKeyword);
}

function mapValues(object: JsonObject, change: (value: unknown, key: string) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));
}
