/** Names that an API does not take: of tools and of the properties of their inputs, there and back. */
import { isObject, type JsonObject, type ToolSpec } from "preamp/base";
import { objectSchema } from "preamp/provider";
import type { Vendor } from "./vendor.ts";

/** Names in the requests of one call. */
export class Names {
  readonly #tools: readonly ToolSpec[];
  readonly #vendor: Vendor;
  /** Tools by the names in requests, and back. */
  readonly #own = new Map<string, string>();
  readonly #valid = new Map<string, string>();

  constructor(tools: readonly ToolSpec[], vendor: Vendor) {
    this.#tools = tools;
    this.#vendor = vendor;
    const used = new Set(tools.map(({ name }) => name));
    for (const { name: own } of tools) {
      const wanted = toolName(own);
      const valid = wanted === own ? own : unusedName(wanted, used);
      this.#own.set(valid, own);
      this.#valid.set(own, valid);
    }
  }

  /** Returns the name of a tool in requests; the tool may be one of the history only. */
  toolIn(own: string): string {
    return this.#valid.get(own) ?? toolName(own);
  }

  /** Returns whether a word is the name of a tool in requests. */
  has(valid: string): boolean {
    return this.#own.has(valid);
  }

  /** Returns the tool's own name. */
  toolOf(valid: string): string {
    return this.#own.get(valid) ?? valid;
  }

  /** Returns the schema of a tool's input as one object with valid names, in the form of the vendor. */
  schemaIn({ parameters }: ToolSpec): JsonObject {
    const whole = objectSchema(parameters);
    const schema = this.#vendor.schema?.(whole) ?? whole;
    const names = this.#propertyNames(schema);
    if (names.size === 0) return schema;
    const { properties, required } = schema as { properties: JsonObject; required?: unknown };
    const renamed = Object.entries(properties).map(([name, value]) => [names.get(name) ?? name, value]);
    return {
      ...schema,
      properties: Object.fromEntries(renamed),
      ...(Array.isArray(required) ? { required: required.map((name) => names.get(name) ?? name) } : {}),
    };
  }

  /** Returns the input of a call, as a text, with the names of the tool's schema. */
  inputOf(tool: string, input: string): string {
    const spec = this.#tools.find(({ name }) => name === tool);
    const names = spec ? this.#propertyNames(objectSchema(spec.parameters)) : new Map();
    if (names.size === 0) return input;
    const own = new Map([...names].map(([name, valid]) => [valid, name]));
    const value = parsed(input);
    if (!isObject(value)) return input;
    const entries = Object.entries(value).map(([name, field]) => [own.get(name) ?? name, field]);
    return JSON.stringify(Object.fromEntries(entries));
  }

  /** Returns the name in requests by the name of each property whose own one is not valid. */
  #propertyNames({ properties }: JsonObject): ReadonlyMap<string, string> {
    const { property_names: is_valid } = this.#vendor;
    if (!is_valid || !isObject(properties)) return new Map();
    const all = Object.keys(properties);
    const used = new Set(all.filter((name) => is_valid.test(name)));
    const wanted = (name: string) => name.replace(/[^a-zA-Z0-9_.-]/g, "_").slice(0, 64) || "_";
    return new Map(
      all.filter((name) => !is_valid.test(name)).map((name) => [name, unusedName(wanted(name), used)]),
    );
  }
}

/** The strictest API (Gemini) wants a letter or an underscore first, and at most 64 characters. */
function toolName(own: string): string {
  return /^[a-zA-Z_]/.test(own) ? own : `_${own}`.slice(0, 64);
}

/** Returns the value of a JSON text; undefined for any other text. */
export function parsed(text: unknown): unknown {
  try {
    return typeof text === "string" ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** Room for a number at the end of a name; vendors take names of up to 64 characters. */
const MAX_BASE_CHARS = 60;

/**
 * Returns a name that is not in use, and adds it to those in use: the wanted one, or its beginning with a
 * number, such as `search_2`.
 *
 * @param wanted At most 64 characters.
 * @param used Names in use.
 */
export function unusedName(wanted: string, used: Set<string>): string {
  let name = wanted;
  for (let count = 2; used.has(name); count++) name = `${wanted.slice(0, MAX_BASE_CHARS)}_${count}`;
  used.add(name);
  return name;
}
