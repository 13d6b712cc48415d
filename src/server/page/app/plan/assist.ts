/** What may be written at a place of a plan, and what a key of it means, by the JSON Schema of plans. */
import type { Data } from "preamp/client";
import { type MapNode, type Node, type Pair, readSyntax, type Scalar, type Syntax } from "./syntax.ts";

/** Something that may be written. */
interface Suggestion {
  readonly label: string;
  /** What is written. */
  readonly insert: string;
  /** One sentence; may be empty. */
  readonly description: string;
}

/** What may be written at a place, in place of what is between two offsets. */
export interface Suggestions {
  readonly from: number;
  readonly to: number;
  readonly items: readonly Suggestion[];
}

/** What a key or a value means. */
export interface Help {
  readonly name: string;
  /** Such as `integer, at least 1`; may be empty. */
  readonly type: string;
  /** As JSON; absent without a default. */
  readonly default?: string;
  /** May be empty. */
  readonly description: string;
}

/** A character that no plan has: it marks the place in the text that is read. */
const MARK = "\ue000";
/** Most schemas that lead from one to another. */
const MAX_DEPTH = 16;
/** Texts that YAML reads as such without quotes. */
const PLAIN_TEXT = /^(?!(?:true|false|null|yes|no|on|off)$)[a-z][\w./-]*$/i;

/** A scalar with what is around it. */
interface Place {
  readonly scalar: Scalar;
  /** The pair whose key the scalar is. */
  readonly pair?: Pair;
  /** The object that has the pair. */
  readonly map?: MapNode;
  /** Name of the key that leads here: that of the pair, or of the innermost one around the value. */
  readonly name: string;
  /** Schemas of what stands here: of the object for a key, else of the value. */
  readonly schemas: readonly Data[];
  /** Whether the text is JSON. */
  readonly is_json: boolean;
  /** The whole schema. */
  readonly root: Data;
}

/**
 * Returns what may be written at an offset; null for nothing.
 *
 * @param is_typing Whether it is offered unasked: then no default is, and a complete value stays.
 */
export function suggestionsAt(
  text: string,
  offset: number,
  schema: Data,
  is_typing = false,
): Suggestions | null {
  const { root } = readSyntax(text.slice(0, offset) + MARK + text.slice(offset));
  const place = placeAt(root, offset, schema);
  if (place === null) return null;
  const { scalar, pair } = place;
  const written = scalar.text.slice(0, Math.max(0, scalar.text.indexOf(MARK)));
  const offered = pair ? keysOf(place) : valuesOf(place, is_typing);
  if (is_typing && !pair && offered.some(({ label }) => label === written)) return null;
  const items = matching(offered, written);
  return items.length === 0 ? null : { from: scalar.from, to: scalar.to - 1, items };
}

/** Returns what the key or value at an offset means; null where the schema says nothing. */
export function helpAt({ root }: Syntax, offset: number, schema: Data): Help | null {
  const place = placeAt(root, offset, schema);
  if (place === null) return null;
  const { scalar, pair, name, schemas } = place;
  if (pair) return helpOf(name, stepInto(schema, schemas, name, pair.value));
  const value = schemas.find((schema) => schema.const === scalar.text && schema.description !== undefined);
  return value
    ? { name: scalar.text, type: "", description: textOf(value.description) }
    : helpOf(name, schemas);
}

/** Returns what schemas say together; null if that is nothing. */
function helpOf(name: string, schemas: readonly Data[]): Help | null {
  const said = (key: string) => schemas.find((schema) => schema[key] !== undefined)?.[key];
  const [type, by_default, description] = [typeOf(schemas), said("default"), textOf(said("description"))];
  if (type === "" && description === "") return null;
  return {
    name,
    type,
    ...(by_default === undefined ? {} : { default: JSON.stringify(by_default) }),
    description,
  };
}

/** Returns the scalar at an offset with its schemas; null where the text has no scalar. */
function placeAt(node: Node | null, offset: number, root: Data): Place | null {
  const facts = { is_json: node?.kind === "map" && node.flow, root };
  const at = ({ from, to }: Scalar) => from <= offset && offset <= to;
  const look = (node: Node | null, schemas: readonly Data[], name: string): Place | null => {
    if (node?.kind === "scalar") return at(node) ? { ...facts, scalar: node, name, schemas } : null;
    for (const item of node?.kind === "list" ? node.items : []) {
      const is_open = item?.kind === "scalar" && item.undashed; // its schema is that of the list
      const found = look(item, is_open ? schemas : stepInto(root, schemas, 0, item), name);
      if (found) return found;
    }
    for (const pair of node?.kind === "map" ? node.pairs : []) {
      const { key: { text: key }, value } = pair;
      if (at(pair.key)) return { ...facts, scalar: pair.key, pair, map: node as MapNode, name: key, schemas };
      const found = value && look(value, stepInto(root, schemas, key, value), key);
      if (found) return found;
    }
    return null;
  };
  const key = node?.kind === "scalar" ? node : null; // the first key, whose colon is missing yet
  const pairs = key ? [{ key, complete: false, value: null }] : [];
  const whole: Node | null = key ? { kind: "map", flow: false, pairs } : node;
  return look(whole, alternatives(root, root, whole), "");
}

/** Returns the schemas of a key, or for a number of an entry, with those that depend on the value there. */
function stepInto(
  root: Data,
  schemas: readonly Data[],
  step: string | number,
  value: Node | null,
): readonly Data[] {
  const found = schemas.flatMap(({ properties, additionalProperties, items }) => {
    if (typeof step === "number") return isData(items) ? [items] : [];
    if (isData(properties) && Object.hasOwn(properties, step)) return [properties[step]];
    return isData(additionalProperties) ? [additionalProperties] : [];
  });
  return found.flatMap((schema) => alternatives(root, schema, value));
}

/** Returns a schema with those that it refers to and combines; conditions are judged by the value. */
function alternatives(root: Data, schema: unknown, value: Node | null, depth = 0): Data[] {
  if (!isData(schema) || depth > MAX_DEPTH) return [];
  const { $ref, if: condition, then } = schema;
  const defs = root.$defs;
  const parts = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((part) => Array.isArray(part) ? part : []);
  if (typeof $ref === "string" && isData(defs)) parts.push(defs[$ref.replace("#/$defs/", "")]);
  if (isData(condition) && fits(value, condition)) parts.push(then);
  return [schema, ...parts.flatMap((part) => alternatives(root, part, value, depth + 1))];
}

/** Returns whether a value has the keys and constants of a condition. */
function fits(value: Node | null, { const: wanted, properties }: Data): boolean {
  if (wanted !== undefined) return value?.kind === "scalar" && value.text === wanted;
  return Object.entries(isData(properties) ? properties : {}).every(([name, condition]) => {
    const pair = value?.kind === "map" ? value.pairs.find(({ key }) => key.text === name) : undefined;
    return pair !== undefined && isData(condition) && fits(pair.value, condition);
  });
}

/** Returns the keys that the object of a place may have and does not. */
function keysOf({ scalar, pair, map, schemas, is_json }: Place): Suggestion[] {
  const others = new Set(map?.pairs.flatMap(({ key }) => key === scalar ? [] : [key.text]));
  const known = new Map<string, Data[]>();
  for (const { properties } of schemas) {
    for (const [name, schema] of Object.entries(isData(properties) ? properties : {})) {
      if (isData(schema) && !others.has(name)) known.set(name, [...known.get(name) ?? [], schema]);
    }
  }
  return [...known].map(([name, schemas]) => {
    const key = scalar.quote !== "" || is_json ? JSON.stringify(name) : name;
    const end = pair?.complete ? "" : map?.flow ? ": " : colonFor(schemas, scalar.column);
    return { label: name, insert: key + end, description: helpOf(name, schemas)?.description ?? "" };
  });
}

/** Returns the colon after a key, and where its value begins: in the next line for an object or a list. */
function colonFor(schemas: readonly Data[], column: number): string {
  const has = (type: string, keyword: string) =>
    schemas.some((schema) => schema.type === type && isData(schema[keyword]));
  const next = `:\n${" ".repeat(column + 2)}`;
  if (has("array", "items")) return `${next}- `;
  return has("object", "properties") || has("object", "additionalProperties") ? next : ": ";
}

/** Returns the values that a place may have; where a key may begin, also the keys of an object. */
function valuesOf(place: Place, is_typing: boolean): Suggestion[] {
  const { scalar, schemas, is_json, root } = place;
  const values = new Map<string, Suggestion>();
  const add = (value: unknown, description: unknown, dash: string) => {
    const label = typeof value === "string" ? value : JSON.stringify(value);
    const in_quotes = typeof value === "string" &&
      (is_json || scalar.quote !== "" || !PLAIN_TEXT.test(value));
    const insert = dash + (in_quotes ? JSON.stringify(value) : label);
    if (!values.has(label)) values.set(label, { label, insert, description: textOf(description) });
  };
  const addAll = (schemas: readonly Data[], dash: string) => {
    for (const { const: only, enum: some, type, description } of schemas) {
      const listed = Array.isArray(some) ? some : type === "boolean" ? [true, false] : [];
      if (only === undefined) listed.forEach((value) => add(value, "", dash));
      else add(only, description, dash);
    }
    for (const { default: value } of is_typing ? [] : schemas) {
      if (typeof value === "string" || typeof value === "number") add(value, "by default", dash);
    }
  };
  addAll(schemas, "");
  if (scalar.starts && scalar.quote === "" && !is_json) addAll(stepInto(root, schemas, 0, null), "- ");
  return [...values.values(), ...scalar.starts && !scalar.undashed && !is_json ? keysOf(place) : []];
}

/** Returns suggestions that begin with a text, then those that contain it; not what is written already. */
function matching(offered: readonly Suggestion[], written: string): Suggestion[] {
  const wanted = written.toLowerCase();
  const ranked = offered.map((suggestion) => ({
    suggestion,
    at: suggestion.label.toLowerCase().indexOf(wanted),
  }));
  return [...ranked.filter(({ at }) => at === 0), ...ranked.filter(({ at }) => at > 0)]
    .map(({ suggestion }) => suggestion)
    .filter(({ insert }) => insert !== written && insert !== JSON.stringify(written));
}

/** Returns the type of a value in words. */
function typeOf(schemas: readonly Data[]): string {
  const names = new Set<string>();
  for (const { const: only, enum: some, type } of schemas) {
    if (only !== undefined) continue;
    if (Array.isArray(some)) names.add(`one of ${some.join(", ")}`);
    else for (const name of [type].flat()) if (typeof name === "string") names.add(TYPES[name] ?? name);
  }
  return [...names].join(" or ");
}

const TYPES: Readonly<Record<string, string>> = { string: "text", boolean: "true or false", array: "list" };

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function isData(value: unknown): value is Data {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
