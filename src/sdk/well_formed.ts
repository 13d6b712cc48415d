/** JSON data whose texts are well-formed Unicode. */
import { isObject, type JsonObject } from "./json.ts";

/**
 * Returns an object whose texts and keys are well-formed Unicode; the same object if they were. Vendors
 * refuse a request with half of a surrogate pair.
 */
export function wellFormed(value: JsonObject): JsonObject {
  return isWellFormed(value) ? value : convert(value) as JsonObject;
}

function isWellFormed(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (Array.isArray(value)) return value.every(isWellFormed);
  if (!isObject(value)) return true;
  for (const key of Object.keys(value)) if (!key.isWellFormed() || !isWellFormed(value[key])) return false;
  return true;
}

function convert(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(convert);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toWellFormed(), convert(item)]));
}
