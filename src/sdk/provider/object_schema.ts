/** Schemas of tools' inputs for APIs that take one object only, without alternatives at the top. */
import { isObject, jsonEqual, type JsonObject, type JsonSchema } from "../json.ts";

/** Maximum alternatives and references within each other. */
const MAX_DEPTH = 5;
/** Maximum parts of a schema, with their properties; what is in further ones is not offered. */
const MAX_READ = 5000;

/** Keywords that some APIs refuse at the top. */
const NOT_AT_TOP: ReadonlySet<string> = new Set(
  ["anyOf", "oneOf", "allOf", "$ref", "not", "enum", "$schema", "properties", "required"],
);

/**
 * Returns the schema of a tool's input as one object: the properties of all alternatives at the top are
 * offered together, one that differs among them as its alternatives, and those are required that each
 * alternative requires. A property that several parts of `allOf` have must fit each of them. The runtime
 * checks the input against the tool's own schema.
 */
export function objectSchema(schema: JsonSchema): JsonObject {
  const { properties, required } = new Reader(schema).membersOf(schema, []);
  const own = new Set(namesIn(schema));
  const known = [...required].filter((name) => own.has(name) || Object.hasOwn(properties, name));
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

/** Reads the parts of one schema. */
class Reader {
  readonly #root: JsonSchema;
  /** Parts and properties so far. */
  #read = 0;

  /** @param root The whole schema, to which references refer. */
  constructor(root: JsonSchema) {
    this.#root = root;
  }

  /** Returns the members of a schema; none within itself. @param open The schemas around it. */
  membersOf(schema: unknown, open: readonly JsonObject[]): Members {
    if (
      !isObject(schema) || open.includes(schema) || open.length > MAX_DEPTH || this.#read > MAX_READ
    ) return { properties: {}, required: new Set() };
    const own = isObject(schema.properties) ? schema.properties : {};
    this.#read += 1 + Object.keys(own).length;
    const inEach = (parts: unknown) =>
      Array.isArray(parts) ? parts.map((part) => this.membersOf(part, [...open, schema])) : [];
    const all = inEach([schema.allOf ?? [], targetOf(schema.$ref, this.#root) ?? []].flat());
    const alternatives = [inEach(schema.anyOf), inEach(schema.oneOf)];
    return {
      properties: { ...joined(alternatives.flat(), "anyOf"), ...joined(all, "allOf"), ...own },
      required: new Set([
        ...namesIn(schema),
        ...all.flatMap(({ required }) => [...required]),
        ...alternatives.flatMap(([first, ...others]) =>
          [...first?.required ?? []].filter((name) => others.every(({ required }) => required.has(name)))
        ),
      ]),
    };
  }
}

function namesIn({ required }: JsonObject): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
}

function joined(members: readonly Members[], keyword: "allOf" | "anyOf"): JsonObject {
  const forms = new Map<string, unknown[]>();
  for (const [name, schema] of members.flatMap(({ properties }) => Object.entries(properties))) {
    const known = forms.get(name) ?? [];
    if (!known.some((other) => jsonEqual(other, schema))) forms.set(name, [...known, schema]);
  }
  return Object.fromEntries(
    [...forms].map(([name, schemas]) => [name, schemas.length > 1 ? { [keyword]: schemas } : schemas[0]]),
  );
}

/** Returns what a reference to a definition of the root refers to; undefined for other references. */
function targetOf(reference: unknown, { $defs, definitions }: JsonSchema): unknown {
  const [, place, name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(reference)) ?? [];
  const schemas = place === "$defs" ? $defs : definitions;
  return isObject(schemas) && Object.hasOwn(schemas, name) ? schemas[name] : undefined;
}
