/** Schemas of tools reduced to what every API takes. */
import { isObject, type JsonObject } from "preamp/base";
import { objectSchema } from "preamp/provider";

/** Maximum depth of objects and lists within each other. */
const MAX_DEPTH = 4;
const TYPES: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean", "array", "object"]);

/**
 * Returns the schema of a tool's input with names, types, descriptions and texts to choose from only: no
 * alternatives, references, patterns or formats. The runtime checks the input against the tool's own schema.
 */
export function simpleSchema(schema: JsonObject): JsonObject {
  return simple({ ...objectSchema(schema), type: "object" }, schema, 0);
}

function simple(value: unknown, root: JsonObject, depth: number): JsonObject {
  const schema = resolved(value, root);
  const type = typeOf(schema);
  const { description, enum: values, items, properties = {}, required } = schema;
  const common = { type, ...(typeof description === "string" ? { description } : {}) };
  const texts = Array.isArray(values) ? values.filter((one) => typeof one === "string" && one !== "") : [];
  if (type === "string") return { ...common, ...(texts.length > 0 ? { enum: texts } : {}) };
  if (type === "array") {
    return { ...common, items: depth < MAX_DEPTH ? simple(items, root, depth + 1) : { type: "string" } };
  }
  if (type !== "object" || depth >= MAX_DEPTH) return common;
  const names = Object.keys(isObject(properties) ? properties : {});
  const known = Array.isArray(required) ? names.filter((name) => required.includes(name)) : [];
  return {
    ...common,
    properties: Object.fromEntries(
      names.map((name) => [name, simple((properties as JsonObject)[name], root, depth + 1)]),
    ),
    ...(known.length > 0 ? { required: known } : {}),
  };
}

/** Returns a schema in the place of one that only refers to another, or to the first of several. */
function resolved(value: unknown, root: JsonObject): JsonObject {
  let schema: JsonObject = isObject(value) ? value : {};
  for (let count = 0; count < MAX_DEPTH && !hasType(schema); count++) {
    const { $ref, anyOf, oneOf, allOf, ...own } = schema;
    const [, place = "", name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String($ref)) ?? [];
    const defined = root[place];
    const target = isObject(defined) && Object.hasOwn(defined, name) ? defined[name] : undefined;
    const first = [target, anyOf, oneOf, allOf].flat().find((one) => isObject(one) && one.type !== "null");
    if (!isObject(first)) break;
    schema = { ...first, ...own };
  }
  return schema;
}

function hasType({ type, properties, items, enum: values }: JsonObject): boolean {
  return [type, properties, items, values].some((value) => value !== undefined);
}

function typeOf({ type, properties, items, enum: values }: JsonObject): string {
  const stated = [type].flat().find((one) => TYPES.has(one));
  if (typeof stated === "string") return stated;
  if (isObject(properties)) return "object";
  if (items !== undefined) return "array";
  const [first] = Array.isArray(values) ? values : [];
  return typeof first === "number" ? "number" : typeof first === "boolean" ? "boolean" : "string";
}
