/** Names of the properties of a tool's input: the API refuses a request with one that does not match. */
import { isObject, type JsonObject, type JsonSchema } from "preamp/base";
import { objectSchema, unusedName } from "preamp/provider";

const VALID = /^[a-zA-Z0-9_.-]{1,64}$/;

/** Returns a tool's schema as one object with valid names; the API refuses alternatives at its top, too. */
export function inputSchema(parameters: JsonSchema): JsonObject {
  const schema = objectSchema(parameters);
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
export function withOwnNames(input: JsonObject, parameters: JsonSchema): JsonObject {
  const names = validNames(objectSchema(parameters));
  if (names.size === 0) return input;
  const own = new Map([...names].map(([name, valid]) => [valid, name]));
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [own.get(name) ?? name, value]));
}

/** Returns the name in requests by the name of each property whose own one is not valid. */
function validNames({ properties }: JsonObject): ReadonlyMap<string, string> {
  const all = isObject(properties) ? Object.keys(properties) : [];
  const used = new Set(all.filter((name) => VALID.test(name)));
  const invalid = all.filter((name) => !VALID.test(name));
  const wanted = (name: string) => name.replace(/[^a-zA-Z0-9_.-]/g, "_").slice(0, 64) || "_";
  return new Map(invalid.map((name) => [name, unusedName(wanted(name), used)]));
}
