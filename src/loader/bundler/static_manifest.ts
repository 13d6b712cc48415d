/**
 * Reads a module's declaration (`export const module = {…}`) from its bundle without executing it. Only literals can be read; anything
 * else is unknown and never guessed. The declaration only lists wanted permissions: the plan grants them (src/docs/security.md).
 */
import { init, parse } from "es-module-lexer/minimal";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { readLiteral, type Reference, UNKNOWN } from "./static_literal.ts";

/** Most characters of a bundle whose declaration is read. */
const MAX_CHARS = 1024 * 1024;
/** Most characters that the lexer reads in total, about 50 ms: each constant in a literal needs another pass. */
const MAX_READ_CHARS = 2 * 1024 * 1024;
/** Most constants that a literal may refer to, directly or indirectly. */
const MAX_HOPS = 32;

/** The readable part of a declaration. */
export interface Declared {
  readonly fields: JsonObject;
  /** Names of fields that would have to be computed. */
  readonly unread: readonly string[];
}

/** Declaration of a module without an export `module`. */
export const NOTHING_DECLARED: Declared = { fields: {}, unread: [] };

/** Resolves to the module's declaration; null if it is not a literal. */
export async function readDeclared(code: string): Promise<Declared | null> {
  const end = code.lastIndexOf("\n//# sourceMappingURL=");
  const text = end === -1 ? code : code.slice(0, end);
  if (text.length > MAX_CHARS) return null;
  await init();
  const local = localName(text);
  const value = local === undefined ? UNKNOWN : new Constants(text).value(local);
  if (!isObject(value)) return null;
  const entries = Object.entries(value);
  return {
    fields: Object.fromEntries(entries.filter(([, field]) => isKnown(field))),
    unread: entries.filter(([, field]) => !isKnown(field)).map(([name]) => name),
  };
}

/** Returns whether a value has no unknown part. */
function isKnown(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isKnown);
  return isObject(value) ? Object.values(value).every(isKnown) : value !== UNKNOWN;
}

/** Returns the bundle's local name of the export `module`. */
function localName(text: string): string | undefined {
  try {
    return parse(text)[1].find(({ n }) => n === "module")?.ln;
  } catch {
    return undefined; // not a module
  }
}

/** Constants at the top level of a bundle. */
class Constants {
  readonly #text: string;
  readonly #open = new Set<string>();
  readonly #max_hops: number;
  #hops = 0;

  constructor(text: string) {
    this.#text = text;
    this.#max_hops = Math.min(MAX_HOPS, Math.floor(MAX_READ_CHARS / Math.max(1, text.length)));
  }

  /** Returns the literal value of a name, or {@link UNKNOWN}. */
  readonly value: Reference = (name) => {
    this.#hops++;
    if (this.#open.has(name) || this.#hops > this.#max_hops) return UNKNOWN;
    const at = this.#initialiser(name);
    if (at === undefined) return UNKNOWN;
    this.#open.add(name);
    const value = readLiteral(this.#text, at, this.value);
    this.#open.delete(name);
    return value;
  };

  /**
   * Returns the offset of the value of a top-level name that is assigned exactly once. Every `name =` in the text is rewritten to an
   * export, and the lexer reports those at the top level, not those in strings, comments and functions.
   */
  #initialiser(name: string): number | undefined {
    const places = assignmentsOf(this.#text, name);
    let marked = "";
    let position = 0;
    const marks = new Map<number, number>();
    for (const { start, value } of places) {
      marked += `${this.#text.slice(position, start)};export var `;
      marks.set(marked.length, value);
      position = start;
    }
    marked += this.#text.slice(position);
    let found;
    try {
      found = parse(marked)[1].flatMap(({ s, n }) => n === name ? marks.get(s) ?? [] : []);
    } catch {
      return undefined; // a rewritten assignment broke the syntax
    }
    return found.length === 1 ? found[0] : undefined;
  }
}

/** Returns the offsets of name and value of every `name =`. */
function assignmentsOf(text: string, name: string): { start: number; value: number }[] {
  const places = [];
  for (let start = text.indexOf(name); start !== -1; start = text.indexOf(name, start + name.length)) {
    const before = text.charAt(start - 1);
    let at = start + name.length;
    while (isSpace(text.charAt(at))) at++;
    const next = text.charAt(at + 1);
    if (text.charAt(at) !== "=" || next === "=" || next === ">" || before === "." || isNamePart(before)) {
      continue;
    }
    places.push({ start, value: at + 1 });
  }
  return places;
}

function isSpace(letter: string): boolean {
  return letter === " " || letter === "\n" || letter === "\t" || letter === "\r";
}

function isNamePart(letter: string): boolean {
  return letter !== "" && /[\p{ID_Continue}$\u200c\u200d]/u.test(letter);
}
