/**
 * Plain data: the JSON types, the conversion of any value to JSON-safe data, its estimated size, and
 * canonical JSON for hashes.
 */
import { freezeMarked, isMarked, markedBytes, markedLevels } from "./frozen_data.ts";
import { isArray, Object } from "./primordials.ts";

/** Bytes of a number, a boolean or null with the separators around it; an assumed average. */
export const SCALAR_BYTES = 8;
/** Bytes of the quotes or brackets of a text, a list or an object. */
export const MARKS_BYTES = 2;
/** Bytes around a key, and after an item of a list. */
export const KEY_BYTES = 4;
export const ITEM_BYTES = 1;

/** Any value that survives `JSON.parse(JSON.stringify(value))`. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

/** An object with string keys. Values are `unknown` because they come from modules; see {@link toPlain}. */
export type JsonObject = { [key: string]: unknown };

/** A JSON Schema (draft 2020-12) object. */
export type JsonSchema = JsonObject;

/** Returns true when `value` is a plain object or class instance, not null and not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !isArray(value);
}

/** Returns true for an object with a method `then`, such as a promise. */
export function isThenable(value: unknown): value is Promise<unknown> {
  return isObject(value) && typeof value.then === "function";
}

/** Levels of objects and lists that data may have; conversions cut what is below. */
export const MAX_DEPTH = 64;

/**
 * Returns a deep, JSON-safe copy that shares nothing with `value`.
 *
 * Conversions: `undefined` and functions are dropped from objects and become null in arrays; BigInt → decimal
 * string; Date → RFC 3339; Map → object; Set → array; bytes → base64; Error → `{name, message}`; an instance
 * with `toJSON` → its return value; NaN and infinities → null; a cycle → `"[Circular]"`; below 64 levels →
 * `"[Deep]"`. The keys `__proto__`, `constructor` and `prototype` are dropped. Never throws: a getter that
 * throws becomes `"[Unreadable]"`.
 */
export function toPlain(value: unknown): JsonValue {
  return typeof value === "object" && value !== null ? copy(value, 0, null, false) : scalar(value);
}

/** Returns {@link toPlain} of an object; any other value becomes `{}`. */
export function toPlainObject(value: unknown): { [key: string]: JsonValue } {
  try {
    const fields = shallowCopy(value, false);
    if (fields) return fields;
  } catch {
    // a field cannot be read: the slow path replaces only that field
  }
  const plain = toPlain(value);
  return isObject(plain) ? plain as { [key: string]: JsonValue } : {};
}

/**
 * Returns a shallow copy of an object if that is a whole copy: it holds only text, numbers, booleans and
 * null; otherwise null. Many events do, and a shallow copy takes a third of the time.
 *
 * @param or_marked Whether it may hold marked data too, which copies share.
 */
function shallowCopy(value: unknown, or_marked: boolean): { [key: string]: JsonValue } | null {
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) {
    return null;
  }
  // perf: for objects of many shapes, `Object.assign` takes a quarter of the time of a spread
  const fields: JsonObject = Object.assign({}, value as JsonObject); // checks the copy: a getter may return another value each time
  if (Object.getPrototypeOf(fields) !== Object.prototype) return null; // `__proto__`, under --unsafe-proto
  for (const key in fields) {
    const item = fields[key];
    if (isDropped(key)) return null;
    if (typeof item === "string" || typeof item === "boolean" || item === null) continue;
    if (typeof item === "number" && Number.isFinite(item)) continue;
    if (!or_marked || typeof item !== "object" || !isMarked(item)) return null;
  }
  return fields as { [key: string]: JsonValue };
}

/** Returns true for keys that could change a prototype; data never has them. */
function isDropped(key: string): boolean {
  return key === "__proto__" || key === "constructor" || key === "prototype";
}

/**
 * Ancestors of the object that is being copied, innermost first; created only for objects that contain
 * objects.
 */
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

/** @param frozen Whether the copy is frozen and marked; marked parts are then not copied. */
function copy(value: object, depth: number, parents: Parents | null, frozen: boolean): JsonValue {
  if (frozen && isMarked(value) && depth + markedLevels(value) <= MAX_DEPTH) return value as JsonValue; // plain: the mark says so
  if (depth >= MAX_DEPTH) return "[Deep]";
  for (let parent = parents; parent; parent = parent.next) if (parent.value === value) return "[Circular]";
  try {
    if (isArray(value)) return copyItems(value, depth, parents, frozen);
    const prototype = Object.getPrototypeOf(value);
    return prototype === Object.prototype || prototype === null
      ? copyFields(value as JsonObject, depth, parents, frozen)
      : copyInstance(value, depth, parents, frozen);
  } catch {
    return "[Unreadable]"; // a getter or proxy may throw
  }
}

function copyItems(
  items: readonly unknown[],
  depth: number,
  parents: Parents | null,
  frozen: boolean,
): JsonValue[] {
  const result: JsonValue[] = [];
  let here: Parents | null = null;
  let bytes = MARKS_BYTES;
  let levels = 0;
  for (let index = 0; index < items.length; index++) {
    const item = items[index];
    const plain = result[index] = typeof item === "object" && item !== null
      ? copy(item, depth + 1, here ??= { value: items, next: parents }, frozen)
      : scalar(item);
    if (!frozen) continue;
    bytes += ITEM_BYTES + bytesOf(plain);
    if (typeof plain !== "object" || plain === null) continue;
    const below = markedLevels(plain);
    if (below > levels) levels = below;
  }
  return frozen ? freezeMarked(result, bytes, levels + 1) : result;
}

/** Copies the fields of a plain object. perf: `for … in` allocates no list of keys. */
function copyFields(
  fields: JsonObject,
  depth: number,
  parents: Parents | null,
  frozen: boolean,
): { [key: string]: JsonValue } {
  const result: { [key: string]: JsonValue } = {};
  let here: Parents | null = null;
  let bytes = MARKS_BYTES;
  let levels = 0;
  for (const key in fields) {
    if (isDropped(key)) continue;
    const item = read(fields, key);
    if (item === undefined || typeof item === "function" || typeof item === "symbol") continue;
    const plain = result[key] = typeof item === "object" && item !== null
      ? copy(item, depth + 1, here ??= { value: fields, next: parents }, frozen)
      : scalar(item);
    if (!frozen) continue;
    bytes += key.length + KEY_BYTES + bytesOf(plain);
    if (typeof plain !== "object" || plain === null) continue;
    const below = markedLevels(plain);
    if (below > levels) levels = below;
  }
  return frozen ? freezeMarked(result, bytes, levels + 1) : result;
}

/** Returns the estimated size of a part of a frozen copy: `estimateJsonBytes`. */
function bytesOf(plain: JsonValue): number {
  if (typeof plain === "string") return plain.length + MARKS_BYTES;
  return typeof plain === "object" && plain !== null ? markedBytes(plain) : SCALAR_BYTES;
}

/**
 * Reads one field; a failing getter loses only this field. A separate function, because V8 15 recompiles the
 * loop above 300 times per run when the `try` is inside it.
 */
function read(fields: JsonObject, key: string): unknown {
  try {
    return fields[key];
  } catch {
    return "[Unreadable]";
  }
}

/** Copies a class instance. */
function copyInstance(value: object, depth: number, parents: Parents | null, frozen: boolean): JsonValue {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : scalar(value.toISOString());
  const here = { value, next: parents };
  if (value instanceof Map) {
    const fields: JsonObject = {};
    for (const [key, item] of value) fields[String(key)] = item;
    return copyFields(fields, depth, here, frozen);
  }
  if (value instanceof Set) return copyItems([...value], depth, here, frozen);
  if (value instanceof Error) {
    return copyFields({ name: value.name, message: value.message }, depth, here, frozen);
  }
  if (value instanceof ArrayBuffer) return new Uint8Array(value).toBase64();
  if (ArrayBuffer.isView(value)) {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength).toBase64();
  }
  if (value instanceof String || value instanceof Number || value instanceof Boolean) {
    return scalar(value.valueOf());
  }
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === "function") {
    const json: unknown = toJSON.call(value);
    if (typeof json !== "object" || json === null) return scalar(json);
    return copy(json, depth + 1, here, frozen);
  }
  return copyOwn(value as JsonObject, depth, here, frozen);
}

/** Copies the own fields of an instance, not inherited ones. */
function copyOwn(
  value: JsonObject,
  depth: number,
  here: Parents,
  frozen: boolean,
): { [key: string]: JsonValue } {
  const fields: JsonObject = {};
  for (const key of Object.keys(value)) if (!isDropped(key)) fields[key] = read(value, key);
  return copyFields(fields, depth, here, frozen);
}

/**
 * Returns the RFC 8785 (JSON Canonicalization Scheme) text of JSON-safe data: keys sorted by UTF-16 code
 * units, no white space, ECMAScript number and string forms. Used for hashes of plans and arguments. One
 * difference: a lone surrogate is escaped, not refused, because a model can produce one in arguments.
 *
 * @throws {TypeError} when `value` contains a value that JSON does not have: a function, a BigInt, NaN.
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

/** Returns true when two JSON-safe values are equal; the order of keys is ignored. */
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

/**
 * Returns {@link toPlainObject} deeply frozen. Parts that this function returned before are not copied again,
 * so that a message, its events and its requests share them.
 */
export function toFrozenObject(value: unknown): { readonly [key: string]: JsonValue } {
  const plain = toFrozen(value);
  return isObject(plain) ? plain as { [key: string]: JsonValue } : NO_FIELDS;
}

/**
 * Returns {@link toFrozenObject} of a new object that the caller gives away: a literal whose keys the program
 * chose, without accessors and without a reference to itself. perf: the object itself is frozen; a copy takes
 * four times as long.
 */
export function toFrozenOwn(fields: JsonObject): { readonly [key: string]: JsonValue } {
  if (isMarked(fields)) return fields as { [key: string]: JsonValue }; // plain: the mark says so
  let bytes = MARKS_BYTES;
  let levels = 0;
  for (const key in fields) {
    let item = fields[key];
    if (typeof item === "object" && item !== null && !isMarked(item)) item = fields[key] = toFrozen(item);
    if (typeof item === "object" && item !== null) {
      const below = markedLevels(item);
      if (below >= MAX_DEPTH) return toFrozenObject(fields);
      if (below > levels) levels = below;
    } else if (item === undefined || scalar(item) !== item) return toFrozenObject(fields);
    bytes += key.length + KEY_BYTES + bytesOf(item as JsonValue); // a scalar or frozen data
  }
  return freezeMarked(fields as { [key: string]: JsonValue }, bytes, levels + 1);
}

/** Returns {@link toPlain} deeply frozen, like {@link toFrozenObject}. */
export function toFrozen(value: unknown): JsonValue {
  return typeof value === "object" && value !== null ? copy(value, 0, null, true) : scalar(value);
}

/**
 * Returns {@link toPlainObject} whose parts are frozen like those of {@link toFrozenObject}, and shared. For
 * an object that has one owner, such as the data of an entry, this takes a quarter of the time.
 */
export function toOwnObject(value: unknown): { [key: string]: JsonValue } {
  try {
    const fields = shallowCopy(value, true);
    if (fields) return fields;
  } catch {
    // a field cannot be read: the slow path replaces only that field
  }
  return { ...toFrozenObject(value) };
}

const NO_FIELDS: { readonly [key: string]: JsonValue } = freezeMarked({}, MARKS_BYTES, 1);

/** Freezes JSON-safe data deeply and returns it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) freeze(value);
  return value;
}

function freeze(value: object): void {
  Object.freeze(value);
  for (const key in value) { // plain data has no inherited fields
    const item = read(value as JsonObject, key);
    if (typeof item === "object" && item !== null && !Object.isFrozen(item)) freeze(item);
  }
}

/**
 * Returns the estimated size of a value as JSON in bytes, without serialising it. Characters count as one
 * byte.
 *
 * perf: separate loops for lists and objects, and text and scalars inline. One `for … in` for both takes 12
 * times as long (0.9 µs per log entry), because it creates a string for every index.
 */
export function estimateJsonBytes(value: unknown): number {
  if (typeof value === "string") return value.length + MARKS_BYTES;
  if (typeof value !== "object" || value === null) return SCALAR_BYTES;
  const known = markedBytes(value);
  if (known >= 0) return known;
  return Array.isArray(value) ? listBytes(value) : objectBytes(value as Record<string, unknown>); // an object, just checked
}

function listBytes(items: readonly unknown[]): number {
  let bytes = MARKS_BYTES;
  for (let index = 0; index < items.length; index++) { // perf: an iterator allocates 5 KB per run
    const item = items[index];
    bytes += ITEM_BYTES + (typeof item === "string" ? item.length + MARKS_BYTES : estimateJsonBytes(item));
  }
  return bytes;
}

function objectBytes(fields: Record<string, unknown>): number {
  let bytes = MARKS_BYTES;
  for (const key in fields) {
    const value = fields[key];
    bytes += key.length + KEY_BYTES +
      (typeof value === "string" ? value.length + MARKS_BYTES : estimateJsonBytes(value));
  }
  return bytes;
}
