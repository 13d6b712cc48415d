/**
 * Reads a tool's input as models write it: a value as its JSON text, such as `"20"` or `"[{…}]"`, and null
 * for a property that is absent. Only where the tool's schema leaves one meaning; validation decides about
 * the rest.
 */
import { IS_OF_TYPE } from "../config.ts";
import { isObject, type JsonObject } from "../json.ts";
import { isValidBySimpleSchema } from "./simple_schema.ts";

/** Maximum schemas that are read for one input: references in each other would take exponential time. */
const MAX_STEPS = 20_000;
const MAX_DEPTH = 64;

/** Thrown when an input takes too many steps. */
class TooManySteps extends Error {}

/**
 * Returns a tool's input with the types that its schema declares; the same object if nothing changes. What
 * fits the schema is never changed.
 */
export function readToolInput(schema: unknown, input: JsonObject): JsonObject {
  if (isValidBySimpleSchema(schema, input)) return input;
  try {
    return new Reading(schema).read(schema, input, 0) as JsonObject; // an object stays one
  } catch (error) {
    if (error instanceof TooManySteps) return input;
    throw error;
  }
}

/** Names of types; null: any type. */
type Types = ReadonlySet<unknown> | null;

class Reading {
  readonly #root: unknown;
  #steps = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  /** Returns a value as a schema declares it. */
  read(schema: unknown, value: unknown, depth: number): unknown {
    const types = this.#typesOf(schema, depth);
    const meant = isOf(types, value) ? value : valueOfText(types, value);
    if (Array.isArray(meant)) return this.#readItems(schema, meant, depth);
    return isObject(meant) ? this.#readFields(schema, meant, depth) : meant;
  }

  #readItems(schema: unknown, items: unknown[], depth: number): unknown[] {
    let read = items;
    for (const { prefixItems, items: rule } of this.#partsFor(schema, items, depth)) {
      const first = Array.isArray(prefixItems) ? prefixItems : [];
      read = unchanged(
        read,
        read.map((item, at) => this.read(at < first.length ? first[at] : rule, item, depth + 1)),
      );
    }
    return read;
  }

  #readFields(schema: unknown, fields: JsonObject, depth: number): JsonObject {
    let read = fields;
    for (
      const { properties, additionalProperties: others, required } of this.#partsFor(schema, fields, depth)
    ) {
      const known = isObject(properties) ? properties : {};
      const isRequired = (name: string) => Array.isArray(required) && required.includes(name);
      for (const name of Object.keys(read)) {
        const isKnown = Object.hasOwn(known, name);
        const before = read[name];
        const after = this.read(isKnown ? known[name] : others, before, depth + 1);
        const isAbsent = after === null && isKnown && !isOf(this.#typesOf(known[name], depth + 1), null);
        if (isAbsent && !isRequired(name)) {
          read = Object.fromEntries(Object.entries(read).filter(([key]) => key !== name));
        } else if (after !== before) read = Object.fromEntries([...Object.entries(read), [name, after]]);
      }
    }
    return read;
  }

  /** Returns the schemas that apply to an object or a list; of alternatives the one that fits its type. */
  #partsFor(schema: unknown, value: unknown, depth: number): JsonObject[] {
    const own = this.#resolved(schema, depth);
    if (own === null) return [];
    const parts = [own];
    for (const one of listOf(own.allOf)) parts.push(...this.#partsFor(one, value, depth + 1));
    for (const choices of [listOf(own.anyOf), listOf(own.oneOf)]) {
      const fitting = choices.filter((choice) => isOf(this.#typesOf(choice, depth + 1), value));
      if (fitting.length === 1) parts.push(...this.#partsFor(fitting[0], value, depth + 1));
    }
    return parts;
  }

  /** Returns the types that a schema accepts, as far as its keywords say. */
  #typesOf(schema: unknown, depth: number): Types {
    const own = this.#resolved(schema, depth);
    if (own === null) return null;
    const { type, enum: choices } = own;
    let types: Types = typeof type === "string"
      ? new Set([type])
      : Array.isArray(type)
      ? new Set(type)
      : null;
    if (Array.isArray(choices)) types = both(types, new Set(choices.map(typeOf)));
    if (own.const !== undefined) types = both(types, new Set([typeOf(own.const)]));
    for (const alternatives of [listOf(own.anyOf), listOf(own.oneOf)]) {
      if (alternatives.length === 0) continue;
      const each = alternatives.map((one) => this.#typesOf(one, depth + 1));
      if (each.every((one) => one !== null)) types = both(types, new Set(each.flatMap((one) => [...one])));
    }
    for (const one of listOf(own.allOf)) types = both(types, this.#typesOf(one, depth + 1));
    return types;
  }

  /** Returns a schema, or the one that it refers to within the root; null for any other. */
  #resolved(schema: unknown, depth: number): JsonObject | null {
    let own = schema;
    for (let at = depth; isObject(own); at++) {
      if (++this.#steps > MAX_STEPS || at > MAX_DEPTH) throw new TooManySteps();
      const { $ref } = own;
      if ($ref === undefined) return own;
      if (typeof $ref !== "string" || !/^#(?:\/|$)/.test($ref)) return null;
      own = $ref.split("/").slice(1).reduce((place: unknown, part) => {
        const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
        return isObject(place) && Object.hasOwn(place, name) ? place[name] : undefined;
      }, this.#root);
    }
    return null;
  }
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the types that both have; every integer is a number. */
function both(one: Types, other: Types): Types {
  if (one === null || other === null) return one ?? other;
  const has = (types: ReadonlySet<unknown>, type: unknown) =>
    types.has(type) || type === "integer" && types.has("number");
  return new Set([
    ...[...one].filter((type) => has(other, type)),
    ...[...other].filter((type) => has(one, type)),
  ]);
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** Returns whether a value has one of the types; an unknown type accepts any. */
function isOf(types: Types, value: unknown): boolean {
  return types === null || [...types].some((type) => IS_OF_TYPE.get(type)?.(value) ?? true);
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Returns the value that a text stands for when it must be of one of the types; else the value itself. */
function valueOfText(types: Types, value: unknown): unknown {
  if (typeof value !== "string") return value;
  const text = value.trim();
  const json = /^(?:true|false)$/i.test(text) ? text.toLowerCase() : text; // True of Python
  if (!/^[[{]/.test(json) && !NUMBER.test(json) && !/^(?:true|false|null)$/.test(json)) return value;
  try {
    const meant: unknown = JSON.parse(json);
    const isExact = typeof meant !== "number" || Number.isSafeInteger(meant) || !Number.isInteger(meant);
    return isExact && isOf(types, meant) ? meant : value;
  } catch {
    return value; // a text that only begins like JSON
  }
}

/** Returns the first list if the second one has the same items. */
function unchanged(before: unknown[], after: unknown[]): unknown[] {
  return after.some((item, at) => item !== before[at]) ? after : before;
}
