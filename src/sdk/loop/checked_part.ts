/**
 * The part of a JSON Schema that can be checked in limited time. A plan in a request may have any schema, and
 * a regular expression can block the whole process.
 */
import type { JsonSchema } from "../json.ts";

/**
 * Keywords that may take unlimited time: those of regular expressions, one that compares all pairs, and one
 * of older drafts, a map that the validator also reads as a schema.
 */
const SLOW: ReadonlySet<string> = new Set([
  "pattern",
  "patternProperties",
  "format",
  "uniqueItems",
  "dependencies",
]);

/** Keywords whose value maps names to schemas. */
const MAPS: ReadonlySet<string> = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);

/** Keywords whose value is data. The validator takes another value of `examples` than a list as a schema. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "dependentRequired"]);

/** References to places that {@link partOf} keeps. It leaves out other references. */
const KEPT =
  /^#(?:\/(?:\$defs|definitions|properties)\/[^/~%\s\p{C}]+|\/(?:allOf|anyOf|prefixItems)\/\d+|\/items)*$/u;

/** Ids that are anchors. */
const HAS_FRAGMENT = /#(?!$)/;

const checked_parts = new WeakMap<JsonSchema, JsonSchema>();

/**
 * Returns a schema without slow keywords that accepts whatever the schema accepts: the schema itself if it
 * has none.
 */
export function checkedPart(schema: JsonSchema): JsonSchema {
  let part = checked_parts.get(schema);
  if (part === undefined) {
    const { is_slow, has_ids, wider } = inspect(schema);
    part = !is_slow ? schema : has_ids ? {} : partOf(schema, wider) as JsonSchema;
    checked_parts.set(schema, part);
  }
  return part;
}

interface Inspected {
  /** Whether the schema has a slow keyword anywhere. */
  is_slow: boolean;
  /** Whether a schema in it has an anchor or its own id, which change where references lead. */
  has_ids: boolean;
  /** Schemas in it, and lists and maps of schemas, that may accept less than what {@link partOf} keeps. */
  wider: Set<unknown>;
}

function inspect(root: JsonSchema): Inspected {
  const found: Inspected = { is_slow: false, has_ids: false, wider: new Set() };
  const { wider } = found;
  /** What contains or refers to an object of the schema. */
  const users = new Map<unknown, unknown[]>();
  const visit = (part: unknown, is_map = false): void => {
    if (typeof part !== "object" || part === null) return;
    const is_schema = !is_map && !Array.isArray(part);
    for (const [key, value] of Object.entries(part)) {
      let used = value;
      if (is_schema) {
        if (DATA.has(key) || (key === "examples" && Array.isArray(value))) continue;
        if (SLOW.has(key)) found.is_slow = true;
        if (key === "$anchor") found.has_ids = true;
        if ((key === "$id" || key === "id") && (part !== root || HAS_FRAGMENT.test(String(value)))) {
          found.has_ids = true;
        }
        // the validator takes what is unevaluated from the schemas around, too
        if (SLOW.has(key) || key.startsWith("unevaluated")) wider.add(part);
        if (key === "$ref") {
          if (!KEPT.test(String(value))) wider.add(part);
          used = targetOf(value, root);
        }
      }
      if (!users.get(used)?.push(part)) users.set(used, [part]);
      visit(value, is_schema && MAPS.has(key));
    }
  };
  visit(root);
  for (const part of wider) users.get(part)?.forEach((user) => wider.add(user)); // reaches those added here
  return found;
}

/** Returns what a reference leads to if it is {@link KEPT}. */
function targetOf(reference: unknown, root: JsonSchema): unknown {
  const names = String(reference).split("/").slice(1);
  return names.reduce<unknown>((place, name) => (place as JsonSchema | undefined)?.[name], root);
}

function partOf(schema: unknown, wider: ReadonlySet<unknown>, is_map = false): unknown {
  if (!wider.has(schema)) return schema;
  if (Array.isArray(schema)) return schema.map((item) => partOf(item, wider));
  const part: JsonSchema = Object.fromEntries(
    Object.entries(schema as JsonSchema).map(([key, value]) => [
      key,
      partOf(value, wider, !is_map && MAPS.has(key)),
    ]),
  );
  if (is_map) return part;
  const { not, contains, oneOf, if: condition, $ref, patternProperties } = schema as JsonSchema;
  for (const key of SLOW) delete part[key];
  if (wider.has(not)) delete part.not;
  if (wider.has(contains)) delete part.maxContains;
  if (wider.has(oneOf)) { // more than one of them may accept the value
    part.allOf = [part.allOf ?? [], { anyOf: part.oneOf }].flat();
    delete part.oneOf;
  }
  if (patternProperties !== undefined) part.additionalProperties = true;
  const refers_elsewhere = $ref !== undefined && !KEPT.test(String($ref));
  if (!refers_elsewhere && !wider.has(condition)) return part;
  if (refers_elsewhere) delete part.$ref;
  if (wider.has(condition)) delete part.if;
  // anything could be evaluated by what is left out
  return { additionalProperties: true, items: true, additionalItems: true, ...part };
}
