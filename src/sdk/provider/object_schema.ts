/** Schemas of tools' inputs for APIs that take one object only, without alternatives at the top. */
import { isObject, jsonEqual, type JsonObject, type JsonSchema } from "../json.ts";

/** Maximum alternatives and references within each other. */
const MAX_DEPTH = 5;

/** Keywords that some APIs refuse at the top. */
const NOT_AT_TOP: ReadonlySet<string> = new Set(
  ["anyOf", "oneOf", "allOf", "$ref", "not", "enum", "$schema", "properties", "required"],
);

/**
 * Returns the schema of a tool's input as one object: the properties of all alternatives at the top are
 * offered together, one that differs among them as its alternatives, and those are required that each
 * alternative requires. The runtime checks the input against the tool's own schema.
 */
export function objectSchema(schema: JsonSchema): JsonObject {
  const { properties, required } = membersOf(schema, schema, 0);
  const known = [...required].filter((name) => Object.hasOwn(properties, name));
  return {
    ...Object.fromEntries(Object.entries(schema).filter(([keyword]) => !NOT_AT_TOP.has(keyword))),
    type: "object",
    ...(isObject(schema.properties) || Object.keys(properties).length > 0 ? { properties } : {}),
    ...(known.length > 0 ? { required: known } : {}),
  };
}

/** What a schema says about an object. */
interface Members {
  readonly properties: JsonObject;
  readonly required: ReadonlySet<string>;
}

function membersOf(schema: unknown, root: JsonSchema, depth: number): Members {
  if (!isObject(schema) || depth > MAX_DEPTH) return { properties: {}, required: new Set() };
  const inEach = (parts: unknown) =>
    Array.isArray(parts) ? parts.map((part) => membersOf(part, root, depth + 1)) : [];
  const all = inEach([schema.allOf ?? [], targetOf(schema.$ref, root) ?? []].flat());
  const alternatives = [inEach(schema.anyOf), inEach(schema.oneOf)];
  const own = isObject(schema.properties) ? schema.properties : {};
  const names: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  return {
    properties: { ...joined([...all, ...alternatives.flat()]), ...own },
    required: new Set([
      ...names.filter((name) => typeof name === "string"),
      ...all.flatMap(({ required }) => [...required]),
      ...alternatives.flatMap(([first, ...others]) =>
        [...first?.required ?? []].filter((name) => others.every(({ required }) => required.has(name)))
      ),
    ]),
  };
}

function joined(members: readonly Members[]): JsonObject {
  const forms = new Map<string, unknown[]>();
  for (const [name, schema] of members.flatMap(({ properties }) => Object.entries(properties))) {
    const known = forms.get(name) ?? [];
    if (!known.some((other) => jsonEqual(other, schema))) forms.set(name, [...known, schema]);
  }
  return Object.fromEntries(
    [...forms].map(([name, schemas]) => [name, schemas.length > 1 ? { anyOf: schemas } : schemas[0]]),
  );
}

/** Returns what a reference to a definition of the root refers to; undefined for other references. */
function targetOf(reference: unknown, { $defs, definitions }: JsonSchema): unknown {
  const [, place, name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(reference)) ?? [];
  const schemas = place === "$defs" ? $defs : definitions;
  return isObject(schemas) && Object.hasOwn(schemas, name) ? schemas[name] : undefined;
}
