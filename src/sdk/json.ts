/**
 * Plain data: the JSON types, the one conversion from "anything a module hands us" to JSON-safe data, and the canonical
 * text that hashes are taken of. Knows nothing of messages, tools or hooks.
 */

import { isArray, Object } from "./primordials.ts";

/** Any value that survives `JSON.parse(JSON.stringify(value))`. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

/** An object with string keys. Values are `unknown` because modules hand us what they like; see {@link toPlain}. */
export type JsonObject = { [key: string]: unknown };

/** A JSON Schema (draft 2020-12) object. */
export type JsonSchema = JsonObject;

/** Returns true when `value` is a plain object or class instance, not null and not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !isArray(value);
}

const MAX_DEPTH = 64;

/**
 * Returns a deep, JSON-safe copy that shares nothing with `value`.
 *
 * Conversions (behaviour.md §4.2 and appendix B): `undefined` and functions are dropped from objects and become null in
 * arrays; BigInt → decimal string; Date → RFC 3339; Map → object; Set → array; bytes → base64; Error → `{name, message}`;
 * an instance with `toJSON` → what that returns; NaN and infinities → null; a cycle → `"[Circular]"`; below 64 levels →
 * `"[Deep]"`. The keys `__proto__`, `constructor` and `prototype` are dropped (threats T9). Never throws: a getter that
 * throws becomes `"[Unreadable]"`.
 */
export function toPlain(value: unknown): JsonValue {
  return typeof value === "object" && value !== null ? copy(value, 0, null) : scalar(value);
}

/** {@link toPlain} for an object; anything else becomes `{}`. */
export function toPlainObject(value: unknown): { [key: string]: JsonValue } {
  try {
    if (isFlat(value)) return { ...value };
  } catch {
    // a field cannot be read: only that one is lost
  }
  const plain = toPlain(value);
  return isObject(plain) ? plain as { [key: string]: JsonValue } : {};
}

/** Whether an object holds nothing but text, numbers, booleans and null: many events do, and a shallow copy takes a third of the time. */
function isFlat(value: unknown): value is { [key: string]: JsonValue } {
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) {
    return false;
  }
  for (const key in value) {
    const item = (value as JsonObject)[key];
    if (isDropped(key)) return false;
    if (typeof item === "string" || typeof item === "boolean" || item === null) continue;
    if (typeof item !== "number" || !Number.isFinite(item)) return false;
  }
  return true;
}

/** Keys that no data may have (threats T9). */
function isDropped(key: string): boolean {
  return key === "__proto__" || key === "constructor" || key === "prototype";
}

/** The objects around one that is being copied, innermost first; made only for what holds others. */
interface Parents {
  readonly value: unknown;
  readonly next: Parents | null;
}

function scalar(value: unknown): JsonValue {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : null;
    case "bigint":
      return value.toString();
    default:
      return null;
  }
}

function copy(value: object, depth: number, parents: Parents | null): JsonValue {
  if (depth >= MAX_DEPTH) return "[Deep]";
  for (let parent = parents; parent; parent = parent.next) if (parent.value === value) return "[Circular]";
  try {
    if (isArray(value)) return copyItems(value, depth, parents);
    const prototype = Object.getPrototypeOf(value);
    return prototype === Object.prototype || prototype === null
      ? copyFields(value as JsonObject, depth, parents)
      : copyInstance(value, depth, parents);
  } catch {
    return "[Unreadable]"; // a throwing getter or proxy must not take the log down
  }
}

function copyItems(items: readonly unknown[], depth: number, parents: Parents | null): JsonValue[] {
  const result: JsonValue[] = [];
  let here: Parents | null = null;
  for (let index = 0; index < items.length; index++) {
    const item = items[index];
    result[index] = typeof item === "object" && item !== null
      ? copy(item, depth + 1, here ??= { value: items, next: parents })
      : scalar(item);
  }
  return result;
}

/** Copies an object without a prototype that has fields: `for … in` makes no list of keys, for every object of every event. */
function copyFields(
  fields: JsonObject,
  depth: number,
  parents: Parents | null,
): { [key: string]: JsonValue } {
  const result: { [key: string]: JsonValue } = {};
  let here: Parents | null = null;
  for (const key in fields) {
    if (isDropped(key)) continue;
    const item = read(fields, key);
    if (item === undefined || typeof item === "function" || typeof item === "symbol") continue;
    result[key] = typeof item === "object" && item !== null
      ? copy(item, depth + 1, here ??= { value: fields, next: parents })
      : scalar(item);
  }
  return result;
}

/**
 * Reads one field: only this one is lost when it throws. A function of its own because V8 15 compiles the loop above for ever
 * anew (300 times a run) when it reads the field itself.
 */
function read(fields: JsonObject, key: string): unknown {
  try {
    return fields[key];
  } catch {
    return "[Unreadable]";
  }
}

/** Copies what is neither a list nor a bare object. */
function copyInstance(value: object, depth: number, parents: Parents | null): JsonValue {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Map) {
    const fields: JsonObject = {};
    for (const [key, item] of value) fields[String(key)] = item;
    return copyFields(fields, depth, { value, next: parents });
  }
  if (value instanceof Set) return copyItems([...value], depth, { value, next: parents });
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (value instanceof Uint8Array) return toBase64(value);
  if (value instanceof ArrayBuffer) return toBase64(new Uint8Array(value));
  if (ArrayBuffer.isView(value)) {
    return toBase64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  }
  if (value instanceof String || value instanceof Number || value instanceof Boolean) {
    return scalar(value.valueOf());
  }
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === "function") {
    const told: unknown = toJSON.call(value);
    if (typeof told !== "object" || told === null) return scalar(told);
    return copy(told, depth + 1, { value, next: parents });
  }
  return copyOwn(value as JsonObject, depth, { value, next: parents });
}

/** Copies the fields of an instance, not those of what it inherits from. */
function copyOwn(value: JsonObject, depth: number, here: Parents): { [key: string]: JsonValue } {
  const fields: JsonObject = {};
  for (const key of Object.keys(value)) if (!isDropped(key)) fields[key] = read(value, key);
  return copyFields(fields, depth, here);
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let start = 0; start < bytes.length; start += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  }
  return btoa(binary);
}

/**
 * Returns the RFC 8785 (JSON Canonicalization Scheme) text of JSON-safe data: keys sorted by UTF-16 code units, no white
 * space, ECMAScript number and string forms. Plan hashes and argument hashes are taken of it. One difference: a lone
 * surrogate is escaped, not refused, because a model can produce one and its arguments must be hashed all the same.
 *
 * @throws {TypeError} when `value` holds what JSON cannot: a function, a BigInt, NaN.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) {
      throw new TypeError(`Cannot canonicalise a number: not finite: received ${value}`);
    }
    return JSON.stringify(value);
  }
  if (isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (isObject(value)) {
    const fields = Object.keys(value).filter((key) => value[key] !== undefined).sort();
    return `{${fields.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`).join(",")}}`;
  }
  throw new TypeError(`Cannot canonicalise a value: not JSON: received ${typeof value}`);
}

/** Returns true when two JSON-safe values are equal, whatever the order of their keys. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isArray(a)) {
    return isArray(b) && a.length === b.length && a.every((item, index) => jsonEqual(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && jsonEqual(a[key], b[key]));
}

/** {@link toPlainObject}, frozen all the way down; an object that is both already comes back itself. */
export function toFrozenObject(value: unknown): { readonly [key: string]: JsonValue } {
  return isObject(value) && isFrozenPlain(value, 0)
    ? value as { [key: string]: JsonValue }
    : deepFreeze(toPlainObject(value));
}

function isFrozenPlain(value: unknown, depth: number): value is JsonValue {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || depth >= MAX_DEPTH || !Object.isFrozen(value)) return false; // what holds itself is deep
  if (isArray(value)) {
    for (let index = 0; index < value.length; index++) { // a gap is no JSON, and `every` would skip it
      if (!isFrozenPlain(value[index], depth + 1)) return false;
    }
    return true;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  for (const key in value) {
    if (isDropped(key) || !isFrozenPlain(read(value as JsonObject, key), depth + 1)) return false;
  }
  return true;
}

/** Freezes JSON-safe data all the way down and returns it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) freeze(value);
  return value;
}

function freeze(value: object): void {
  Object.freeze(value);
  for (const key in value) { // data: what it has is its own
    const item = read(value as JsonObject, key);
    if (typeof item === "object" && item !== null && !Object.isFrozen(item)) freeze(item);
  }
}
