/**
 * Which schemas of a guest's tools the host may evaluate itself: those made of keywords that look at each part of an input once.
 * Patterns, references and alternatives can be written to take for ever, and are left to the guest (threats T16). Pure.
 */
import { isObject } from "../../sdk/json.ts";

/** Keywords whose value is compared with, or says nothing about the input. */
const SIMPLE: ReadonlySet<string> = new Set([
  ...["$schema", "title", "description", "default", "examples", "deprecated"],
  ...["type", "enum", "const", "required", "additionalProperties"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
]);

/** Parts of one schema, and values of one list: more is nobody's description of an input. */
const MAX_PARTS = 500;

/** Returns whether a schema is made of such keywords alone, all the way down. */
export function isPlainSchema(schema: unknown): boolean {
  const open = [schema];
  for (let part = 0; part < open.length; part++) {
    const one = open[part];
    if (typeof one === "boolean") continue;
    if (!isObject(one) || open.length > MAX_PARTS) return false;
    for (const [keyword, value] of Object.entries(one)) {
      if (keyword === "properties" && isObject(value)) open.push(...Object.values(value));
      else if (keyword === "items" || (keyword === "additionalProperties" && isObject(value))) {
        open.push(value);
      } else if (!SIMPLE.has(keyword) || (Array.isArray(value) && value.length > MAX_PARTS)) return false;
    }
  }
  return true;
}
