/**
 * What a module says of itself (`export const module = {…}`), read from its bundle without running it. Only a literal can be
 * read so; anything that would have to be computed is unknown, and an unknown part never guessed. A wish list, so that what
 * the code does to it later changes nothing that is granted (threats.md: permissions come from the plan).
 */
import { init, parse } from "es-module-lexer/minimal";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { readLiteral, type Reference, UNKNOWN } from "./static_literal.ts";

/** Characters of the largest bundle that is read: one that is longer is not read. Our choice, as the others here. */
const MAX_CHARS = 1024 * 1024;
/** Characters that the lexer may see in all, about 50 ms: each constant that a literal names takes another pass. */
const MAX_READ_CHARS = 2 * 1024 * 1024;
/** Constants that a literal may name, one through another. */
const MAX_HOPS = 32;

/** What could be read of a declaration. */
export interface Declared {
  readonly fields: JsonObject;
  /** Names of the fields that would have to be computed. */
  readonly unread: readonly string[];
}

/** What a module says of itself that exports no `module`. */
export const NOTHING_DECLARED: Declared = { fields: {}, unread: [] };

/** Resolves to what the module declares; null when there is no such literal. */
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

/** What is unknown in part says something else than it seems to. */
function isKnown(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isKnown);
  return isObject(value) ? Object.values(value).every(isKnown) : value !== UNKNOWN;
}

/** Returns what the bundle calls its export `module`. */
function localName(text: string): string | undefined {
  try {
    return parse(text)[1].find(({ n }) => n === "module")?.ln;
  } catch {
    return undefined; // no module at all
  }
}

/** The constants of a bundle's top level. */
class Constants {
  readonly #text: string;
  readonly #open = new Set<string>();
  readonly #max_hops: number;
  #hops = 0;

  constructor(text: string) {
    this.#text = text;
    this.#max_hops = Math.min(MAX_HOPS, Math.floor(MAX_READ_CHARS / Math.max(1, text.length)));
  }

  /** Returns the literal that a name stands for, or {@link UNKNOWN}. */
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
   * Returns where the value of a top-level name begins, when exactly one place there gives it one. Every `name =` of the text
   * is made to look like an export, and the lexer tells which of them are code of the top level: in strings, comments and
   * functions it sees none.
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
      return undefined; // a mark broke the text: what it stands in is nothing we know
    }
    return found.length === 1 ? found[0] : undefined;
  }
}

/** Returns the places of `name =`, where the name and where the value begins. */
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
