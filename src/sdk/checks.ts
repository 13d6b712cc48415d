/**
 * Checks of fields and their error message, for the factories of data models. Uses no schema library, because
 * factories run on every call.
 */
import { isObject } from "./json.ts";
import { describe } from "./value_path.ts";

/** Returns the error of a factory: `Cannot make a <model>: <field> <rule>: received <value>`. */
export function fieldError(model: string, field: string, rule: string, value: unknown): TypeError {
  return new TypeError(`Cannot make a ${model}: ${field} ${rule}: received ${describe(value)}`);
}

/** Throws unless a field is a non-empty string. */
export function requireText(model: string, field: string, value: unknown): void {
  if (typeof value !== "string" || value === "") {
    throw fieldError(model, field, "must be a non-empty string", value);
  }
}

/** Throws unless a field is a list of strings. */
export function requireTexts(model: string, field: string, value: unknown): void {
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) {
    throw fieldError(model, field, "must be a list of strings", value);
  }
}

/** Throws unless a field is an object. */
export function requireObject(model: string, field: string, value: unknown): void {
  if (!isObject(value)) throw fieldError(model, field, "must be an object", value);
}

/** Throws unless a field is a whole number of at least `minimum`. */
export function requireWhole(model: string, field: string, value: unknown, minimum: number): void {
  if (!Number.isSafeInteger(value) || (value as number) < minimum) {
    throw fieldError(model, field, `must be a whole number of at least ${minimum}`, value);
  }
}

/** Throws unless a field is one of the words. */
export function requireOneOf(model: string, field: string, value: unknown, words: readonly string[]): void {
  if (!words.includes(value as string)) {
    throw fieldError(model, field, `must be one of ${words.join(", ")}`, value);
  }
}
