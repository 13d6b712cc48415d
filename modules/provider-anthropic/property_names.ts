/** Names of the properties of a tool's input: the API refuses a request with one that does not match. */
import { isObject, type JsonObject, type JsonSchema } from "preamp/base";

const VALID = /^[a-zA-Z0-9_.-]{1,64}$/;
/** Room for a number at the end of a name that is in use. */
const MAX_BASE_CHARS = 60;

/** Returns a tool's schema with valid names. */
export function withValidNames(schema: JsonSchema): JsonSchema {
  const names = validNames(schema);
  if (names.size === 0) return schema;
  const { properties, required } = schema as { properties: JsonObject; required?: unknown };
  const renamed = Object.entries(properties).map(([name, value]) => [names.get(name) ?? name, value]);
  return {
    ...schema,
    properties: Object.fromEntries(renamed),
    ...(Array.isArray(required) ? { required: required.map((name) => names.get(name) ?? name) } : {}),
  };
}

/** Returns the input of a call with the names of the tool's schema. */
export function withOwnNames(input: JsonObject, schema: JsonSchema): JsonObject {
  const names = validNames(schema);
  if (names.size === 0) return input;
  const own = new Map([...names].map(([name, valid]) => [valid, name]));
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [own.get(name) ?? name, value]));
}

/** Returns the name in requests by the name of each property whose own one is not valid. */
function validNames({ properties }: JsonSchema): ReadonlyMap<string, string> {
  const all = isObject(properties) ? Object.keys(properties) : [];
  const used = new Set(all.filter((name) => VALID.test(name)));
  const names = new Map<string, string>();
  for (const name of all) {
    if (VALID.test(name)) continue;
    const base = name.replace(/[^a-zA-Z0-9_.-]/g, "_").slice(0, MAX_BASE_CHARS) || "_";
    let valid = base;
    for (let count = 2; used.has(valid); count++) valid = `${base}_${count}`;
    used.add(valid);
    names.set(name, valid);
  }
  return names;
}
