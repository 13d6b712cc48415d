/**
 * Makes an input that fits a JSON Schema, for tests of tools without an example. The same schema gives the
 * same input.
 */
import { isObject, jsonEqual, type JsonObject, type JsonSchema } from "../sdk/json.ts";
import { schemaProblems } from "../sdk/loop/tool_input_validation.ts";
import { textMatching } from "./pattern_text.ts";

/** An input, or the reason why none could be made. */
export type ExampleInput = { input: JsonObject } | { problem: string };

/** Options of {@link exampleInput}. */
export interface ExampleInputOptions {
  /** Whether optional properties are included; default false. */
  full?: boolean;
}

/** Maximum nesting depth; deeper optional values are left out. */
const MAX_DEPTH = 12;
const MAX_ITEMS = 1000;

const FORMATS: Readonly<Record<string, string>> = {
  "date": "2026-01-01",
  "date-time": "2026-01-01T00:00:00Z",
  "time": "00:00:00Z",
  "duration": "PT1H",
  "email": "ada@example.com",
  "hostname": "example.com",
  "ipv4": "192.0.2.1",
  "ipv6": "2001:db8::1",
  "json-pointer": "/a",
  "regex": "a",
  "uri": "https://example.com/",
  "uri-reference": "https://example.com/",
  "uuid": "123e4567-e89b-42d3-a456-426614174000",
};

/** Texts for properties without a format, by the end of their names. */
const BY_NAME: readonly [name: RegExp, text: string][] = [
  [/ur[il]$|link$|href$/i, "https://example.com/"],
  [/email$/i, "ada@example.com"],
  [/date$/i, "2026-01-01"],
  [/time_?zone$|^zone$|^tz$/i, "UTC"],
  [/json$/i, "{}"],
  [/expression$/i, "1 + 1"],
];

/** Thrown when no value can be made. */
class Impossible extends Error {}

/**
 * Resolves to an input that fits a tool's `input_schema`, validated as before a call.
 *
 * @example
 * ```ts
 * import { exampleInput } from "preamp/testing";
 *
 * const properties = { count: { type: "integer", minimum: 2 } };
 * const schema = { type: "object", properties, required: ["count"] };
 * console.log(await exampleInput(schema)); // { input: { count: 2 } }
 * ```
 */
export async function exampleInput(
  schema: JsonSchema,
  { full = false }: ExampleInputOptions = {},
): Promise<ExampleInput> {
  try {
    const input = new Maker(schema, full).value(schema, "", 0);
    if (!isObject(input)) return { problem: "its schema does not describe an object" };
    const [problem] = await schemaProblems(schema, input, "input");
    return problem === undefined ? { input } : { problem };
  } catch (error) {
    if (error instanceof Impossible) return { problem: error.message };
    throw error;
  }
}

/** Makes values for one schema and its references. */
class Maker {
  readonly #root: JsonSchema;
  readonly #full: boolean;

  constructor(root: JsonSchema, full: boolean) {
    this.#root = root;
    this.#full = full;
  }

  value(subschema: unknown, name: string, depth: number): unknown {
    if (subschema === undefined || subschema === true) return textFor(name);
    if (!isObject(subschema)) throw new Impossible(`${name || "input"} may have no value at all`);
    if (depth > MAX_DEPTH) throw new Impossible(`${name || "input"} is nested too deep`);
    const schema = this.#resolved(subschema, depth);
    if (Object.hasOwn(schema, "const")) return schema.const;
    if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0];
    if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0];
    if (schema.default !== undefined && schema.default !== null) return schema.default;
    const choices = [schema.oneOf, schema.anyOf].find(Array.isArray);
    return choices ? this.#choice(schema, choices, name, depth) : this.#ofType(schema, name, depth);
  }

  /** Returns a schema with its `$ref` and `allOf` merged into it. */
  #resolved(schema: JsonObject, depth: number): JsonObject {
    if (depth > MAX_DEPTH) throw new Impossible("its schema refers to itself");
    const { $ref, allOf, ...rest } = schema;
    let all = rest;
    if (typeof $ref === "string") all = merged(all, this.#resolved(this.#referred($ref), depth + 1));
    for (const part of Array.isArray(allOf) ? allOf : []) {
      if (isObject(part)) all = merged(all, this.#resolved(part, depth + 1));
    }
    return all;
  }

  #referred(reference: string): JsonObject {
    let found: unknown = this.#root;
    if (!reference.startsWith("#")) {
      throw new Impossible(`it refers to ${reference}, which is not in the schema`);
    }
    for (const step of decodeURIComponent(reference.slice(1)).split("/").slice(1)) {
      const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
      found = isObject(found) || Array.isArray(found) ? (found as JsonObject)[key] : undefined;
    }
    if (isObject(found)) return found;
    throw new Impossible(`it refers to ${reference}, which is not in the schema`);
  }

  #choice(schema: JsonObject, choices: readonly unknown[], name: string, depth: number): unknown {
    const { oneOf: _, anyOf: __, ...rest } = schema;
    let first: unknown;
    for (const choice of choices) {
      if (!isObject(choice) || choice.type === "null") continue;
      try {
        return this.value(merged(rest, this.#resolved(choice, depth + 1)), name, depth + 1);
      } catch (error) {
        if (!(error instanceof Impossible)) throw error;
        first ??= error;
      }
    }
    throw first ?? new Impossible(`${name || "input"} has no choice that can be made`);
  }

  #ofType(schema: JsonObject, name: string, depth: number): unknown {
    switch (typeOf(schema)) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return this.#array(schema, name, depth);
      case "integer":
      case "number":
        return numberFor(schema, name);
      case "boolean":
        return true;
      case "null":
        return null;
      default:
        return stringFor(schema, name);
    }
  }

  #object(schema: JsonObject, depth: number): JsonObject {
    const properties = isObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
    const made: JsonObject = {};
    for (const key of required) {
      const own = Object.hasOwn(properties, key) ? properties[key] : schema.additionalProperties;
      made[key] = this.value(own, key, depth + 1);
    }
    const least = typeof schema.minProperties === "number" ? schema.minProperties : 0;
    for (const key of Object.keys(properties)) {
      if (Object.hasOwn(made, key) || (!this.#full && Object.keys(made).length >= least)) continue;
      try {
        made[key] = this.value(properties[key], key, depth + 1);
      } catch (error) {
        if (!(error instanceof Impossible)) throw error; // optional: left out
      }
    }
    for (let index = 1; Object.keys(made).length < Math.min(least, MAX_ITEMS); index++) {
      made[`key_${index}`] = this.value(schema.additionalProperties, `key_${index}`, depth + 1);
    }
    return made;
  }

  #array(schema: JsonObject, name: string, depth: number): unknown[] {
    const { prefixItems, items, contains, minItems, uniqueItems } = schema;
    const first = Array.isArray(prefixItems) ? prefixItems : [];
    const least = typeof minItems === "number" ? minItems : 0;
    if (least > MAX_ITEMS) throw new Impossible(`${name} needs ${least} entries`);
    const made: unknown[] = first.slice(0, this.#full ? undefined : least)
      .map((item) => this.value(item, name, depth + 1));
    if (contains !== undefined) made.push(this.value(contains, name, depth + 1));
    const wanted = this.#full && items !== false && depth < MAX_DEPTH / 2 ? Math.max(least, 1) : least;
    while (made.length < wanted) {
      const entry = this.value(items, name, depth + 1);
      made.push(uniqueItems === true ? another(entry, made) : entry);
    }
    return made;
  }
}

/** Returns the merged schema of two, with the narrower keywords of both. */
function merged(a: JsonObject, b: JsonObject): JsonObject {
  const all: JsonObject = { ...a, ...b };
  if (isObject(a.properties) && isObject(b.properties)) all.properties = { ...a.properties, ...b.properties };
  if (Array.isArray(a.required) && Array.isArray(b.required)) {
    all.required = [...new Set([...a.required, ...b.required])];
  }
  const narrower = { minimum: Math.max, maximum: Math.min, minLength: Math.max };
  for (const [key, narrow] of Object.entries(narrower)) {
    if (typeof a[key] === "number" && typeof b[key] === "number") all[key] = narrow(a[key], b[key]);
  }
  return all;
}

function typeOf({ type, ...schema }: JsonObject): unknown {
  if (Array.isArray(type)) return type.find((item) => item !== "null") ?? "null";
  if (type !== undefined) return type;
  if (schema.properties !== undefined || schema.required !== undefined) return "object";
  if (schema.items !== undefined || schema.prefixItems !== undefined) return "array";
  return schema.minimum !== undefined || schema.maximum !== undefined ? "number" : "string";
}

/** Returns 1, or another number that fits the schema. */
function numberFor(schema: JsonObject, name: string): number {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const or = (value: unknown, other: number) => typeof value === "number" ? value : other;
  const low = Math.max(or(minimum, -Infinity), or(exclusiveMinimum, -Infinity));
  const high = Math.min(or(maximum, Infinity), or(exclusiveMaximum, Infinity));
  const step = or(multipleOf, typeOf(schema) === "integer" ? 1 : 0);
  const around = (value: number) => {
    if (!(step > 0)) return [value, value + 0.5, value - 0.5];
    const [up, down] = [Math.ceil(value / step) * step, Math.floor(value / step) * step];
    return [up, down, up + step, down - step];
  };
  const found = [1, low, high, (low + high) / 2, 0].flatMap(around).find((value) =>
    Number.isFinite(value) && value >= low && value <= high &&
    value !== exclusiveMinimum && value !== exclusiveMaximum &&
    (!(step > 0) || Number.isInteger(value / step))
  );
  if (found === undefined) throw new Impossible(`no number is made for ${name}`);
  return found;
}

function stringFor({ pattern, format, minLength, maxLength }: JsonObject, name: string): string {
  let text = typeof format === "string" ? FORMATS[format] ?? textFor(name) : textFor(name);
  if (typeof pattern === "string" && !matches(pattern, text)) {
    const found = textMatching(pattern);
    if (found === undefined) throw new Impossible(`no text is made for the pattern of ${name}: ${pattern}`);
    text = found;
  }
  if (typeof minLength === "number" && text.length < minLength) {
    text = text.padEnd(Math.min(minLength, 100_000), "a");
  }
  return typeof maxLength === "number" ? [...text].slice(0, maxLength).join("") : text;
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return false;
  }
}

function textFor(name: string): string {
  return BY_NAME.find(([ending]) => ending.test(name))?.[1] ?? "text";
}

/** Returns a variant of `entry` that is not in the list. */
function another(entry: unknown, made: readonly unknown[]): unknown {
  const variant = (index: number) =>
    typeof entry === "number"
      ? entry + index
      : typeof entry === "string" && index > 0
      ? `${entry}${index}`
      : entry;
  for (let index = 0; index <= made.length; index++) {
    if (!made.some((item) => jsonEqual(item, variant(index)))) return variant(index);
  }
  return entry; // the validation of the whole input reports the duplicate
}
