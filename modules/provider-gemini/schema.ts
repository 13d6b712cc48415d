/**
 * JSON Schemas in the form that the API takes. It documents references to `$defs`, without other keywords
 * beside them, but refuses some of those, too.
 */
import { isObject, type JsonObject } from "preamp/base";

/** Maximum objects of a schema without references: those within each other may multiply. */
const MAX_OBJECTS = 10_000;

/**
 * Returns a schema with the content of local references in their place. A reference within its own content
 * stays, and so do all references of a schema that would be too large. Names in `required` without a property
 * are left out, because the API refuses them.
 */
export function withoutReferences(schema: JsonObject): JsonObject {
  let objects = 0;
  let hasCycle = false;
  const inline = (value: unknown, open: readonly string[]): unknown => {
    if (Array.isArray(value)) return value.map((item) => inline(item, open));
    if (!isObject(value) || objects > MAX_OBJECTS) return value;
    objects++;
    const { $ref, ...rest } = value;
    const target = typeof $ref === "string" ? targetOf(schema, $ref) : undefined;
    if (target === undefined) return withKnownRequired(mapValues(value, (item) => inline(item, open)));
    if (!open.includes($ref as string)) return inline({ ...target, ...rest }, [...open, $ref as string]);
    hasCycle = true;
    return { $ref };
  };
  const { $schema: _, $defs, definitions, ...own } = schema;
  const inlined = inline(own, []) as JsonObject; // an object becomes an object
  if (objects > MAX_OBJECTS) return withBareReferences(schema) as JsonObject;
  if (!hasCycle) return inlined;
  const targets = { ...($defs === undefined ? {} : { $defs }), ...(definitions ? { definitions } : {}) };
  return { ...inlined, ...withBareReferences(targets) as JsonObject };
}

/** Returns a schema without the keywords beside references. */
function withBareReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withBareReferences);
  if (!isObject(value)) return value;
  return typeof value.$ref === "string" ? { $ref: value.$ref } : mapValues(value, withBareReferences);
}

/** Returns what a pointer such as `#/$defs/key` refers to; undefined when it is no object. */
function targetOf(schema: JsonObject, reference: string): JsonObject | undefined {
  if (!reference.startsWith("#/")) return undefined;
  let value: unknown = schema;
  for (const part of reference.slice(2).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  return isObject(value) ? value : undefined;
}

function withKnownRequired(schema: JsonObject): JsonObject {
  const { required, ...rest } = schema;
  if (!Array.isArray(required)) return schema;
  const properties = isObject(rest.properties) ? rest.properties : {};
  const known = required.filter((name) => Object.hasOwn(properties, String(name)));
  return known.length > 0 ? { ...rest, required: known } : rest;
}

function mapValues(object: JsonObject, change: (value: unknown) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}
