/**
 * JSON Schemas in the form that the API takes. It documents references to `$defs`, without other keywords
 * beside them, but refuses some of those, too.
 */
import { isObject, type JsonObject } from "preamp/base";

/** Maximum objects in the place of references: those within each other may multiply. */
const MAX_OBJECTS = 10_000;
/** Maximum references within each other. */
const MAX_DEPTH = 100;
/** Maximum characters of the properties that alternatives get from the objects around them. */
const MAX_COPIED_CHARS = 10_000;

/**
 * Returns a schema with the content of local references in their place. A reference within its own content
 * and one to an unknown place stay, and so do all references of a schema that would be too large. Names in
 * `required` without a property are left out, because the API refuses them; the alternatives of an object may
 * require its properties, as far as their copies are small, and it may require theirs.
 */
export function withoutReferences(schema: JsonObject): JsonObject {
  let objects = 0;
  let hasReferences = false;
  let copied_chars = 0;
  /** Returns a schema with those properties of the object around it that it requires without having them. */
  const withRequiredOf = (around: JsonObject, part: JsonObject): JsonObject => {
    const properties = propertiesOf(part);
    const missing = namesIn(part).filter((name) =>
      Object.hasOwn(around, name) && !Object.hasOwn(properties, name)
    );
    if (missing.length === 0 || copied_chars > MAX_COPIED_CHARS) return part;
    const added = Object.fromEntries(missing.map((name) => [name, around[name]]));
    copied_chars += JSON.stringify(added).length;
    return copied_chars > MAX_COPIED_CHARS ? part : { ...part, properties: { ...properties, ...added } };
  };
  const inline = (value: JsonObject, open: readonly string[], around: JsonObject): JsonObject => {
    if (objects > MAX_OBJECTS) return value;
    if (open.length > 0) objects += open.length > MAX_DEPTH ? MAX_OBJECTS : 1;
    const { $ref, ...rest } = value;
    if (typeof $ref !== "string") {
      const isAlternative = (keyword: string) => ALTERNATIVES.has(keyword);
      const own = withRequiredOf(
        around,
        mapSchemas(value, (item, keyword) => isAlternative(keyword) ? item : inline(item, open, {})),
      );
      const known = { ...around, ...propertiesOf(own) };
      return withKnownRequired(
        mapSchemas(own, (item, keyword) => isAlternative(keyword) ? inline(item, open, known) : item),
      );
    }
    const target = open.includes($ref) ? undefined : targetOf(schema, $ref);
    if (target !== undefined) return inline({ ...target, ...rest }, [...open, $ref], around);
    hasReferences = true;
    return { $ref };
  };
  const { $schema: _, $defs, definitions, ...own } = schema;
  const inlined = inline(own, [], {});
  if (objects > MAX_OBJECTS) return mapSchemas(schema, withBareReferences);
  if (!hasReferences) return inlined;
  const targets = { ...($defs === undefined ? {} : { $defs }), ...(definitions ? { definitions } : {}) };
  return { ...inlined, ...withBareReferences(targets) };
}

/**
 * Returns a schema without `maxItems`: the API refuses a request with a large sum of them, without a reason
 * (googleapis/python-genai#2170, vercel/ai#21192).
 */
export function withoutMaxItems({ maxItems: _, ...schema }: JsonObject): JsonObject {
  return mapSchemas(schema, withoutMaxItems);
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

/** Keywords with schemas of the same value. */
const ALTERNATIVES: ReadonlySet<string> = new Set(["allOf", "anyOf", "oneOf"]);

/**
 * Returns a schema whose `required` has names of its properties only. A name of a property in an alternative
 * is required there. Only objects may have `required`.
 */
function withKnownRequired(schema: JsonObject): JsonObject {
  const { required, ...rest } = schema;
  if (!Array.isArray(required)) return schema;
  const names = namesIn(schema);
  const known = names.filter((name) => Object.hasOwn(propertiesOf(schema), name));
  const alternatives = Object.entries(rest).filter(([keyword]) => ALTERNATIVES.has(keyword));
  return {
    ...(known.length > 0 ? { type: "object" } : {}),
    ...rest,
    ...mapValues(
      Object.fromEntries(alternatives),
      (parts) => Array.isArray(parts) ? parts.map((part) => withNames(part, names)) : parts,
    ),
    ...(known.length > 0 ? { required: known } : {}),
  };
}

/** Returns an alternative that also requires these names, as far as it has properties with them. */
function withNames(part: unknown, names: readonly string[]): unknown {
  return isObject(part)
    ? withKnownRequired({ ...part, required: [...new Set([...namesIn(part), ...names])] })
    : part;
}

function propertiesOf({ properties }: JsonObject): JsonObject {
  return isObject(properties) ? properties : {};
}

function namesIn({ required }: JsonObject): string[] {
  return Array.isArray(required) ? required.map(String) : [];
}

/** Keywords whose values are data. */
const DATA: ReadonlySet<string> = new Set(["const", "default", "enum", "example", "examples"]);
/** Keywords whose values are objects of schemas by name. */
const NAMED: ReadonlySet<string> = new Set(
  ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"],
);

/** Returns a schema with each schema directly in it changed; `change` also receives its keyword. */
function mapSchemas(
  schema: JsonObject,
  change: (schema: JsonObject, keyword: string) => JsonObject,
): JsonObject {
  return mapValues(schema, (value, keyword) => {
    const changed = (item: unknown): unknown =>
      Array.isArray(item) ? item.map(changed) : isObject(item) ? change(item, keyword) : item;
    if (DATA.has(keyword)) return value;
    return NAMED.has(keyword) && isObject(value) ? mapValues(value, changed) : changed(value);
  });
}

function mapValues(object: JsonObject, change: (value: unknown, key: string) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));
}
