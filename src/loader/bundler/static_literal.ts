/**
 * Reads JavaScript literals as data (ECMA-262 §12.9 and §13.2): text, numbers, booleans, null, lists, objects with plain keys, and
 * names of such constants. Other expressions become {@link UNKNOWN} and are skipped. Where skipping is ambiguous, such as at a slash
 * that may start a regular expression, the whole literal is unknown.
 */
import type { JsonObject } from "../../sdk/json.ts";

/** Marks a value that would have to be computed. */
export const UNKNOWN: unique symbol = Symbol("unknown");

/** Returns the value of a constant. */
export type Reference = (name: string) => unknown;

/** Deepest nesting of lists and objects. */
const MAX_DEPTH = 32;

/** Returns the literal at an offset, with {@link UNKNOWN} in place of other expressions. */
export function readLiteral(text: string, at: number, reference: Reference): unknown {
  try {
    return new Reader(text, at, reference).value(0);
  } catch (error) {
    if (error instanceof Unreadable) return UNKNOWN;
    throw error;
  }
}

class Unreadable extends Error {}

const WORDS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null, undefined: UNKNOWN };
const CLOSERS: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };
const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  v: "\v",
  0: "\0",
};

class Reader {
  readonly #text: string;
  readonly #reference: Reference;
  #at: number;

  constructor(text: string, at: number, reference: Reference) {
    this.#text = text;
    this.#at = at;
    this.#reference = reference;
  }

  /** Reads an expression up to the next comma, bracket or semicolon. */
  value(depth: number): unknown {
    if (depth > MAX_DEPTH) throw new Unreadable();
    const start = this.#skipSpace();
    const value = this.#literal(depth);
    if (this.#endsValue()) return value;
    this.#at = start;
    this.#passExpression();
    return UNKNOWN;
  }

  /** Returns whether an expression ends here, which a line break or the end of the text may also mean. */
  #endsValue(): boolean {
    const before = this.#at;
    this.#skipSpace();
    const letter = this.#text.charAt(this.#at);
    return letter === "" || ",;]})".includes(letter) ||
      this.#text.slice(before, this.#at).includes("\n") && /[\p{ID_Start}$_]/u.test(letter) &&
        !this.#continues();
  }

  /** Returns whether `in` or `instanceof` continues the expression. */
  #continues(): boolean {
    return /^(?:in|instanceof)\b/.test(this.#text.slice(this.#at, this.#at + 11));
  }

  #literal(depth: number): unknown {
    const letter = this.#text.charAt(this.#at);
    if (letter === "{") return this.#object(depth);
    if (letter === "[") return this.#list(depth);
    if (letter === '"' || letter === "'" || letter === "`") return this.#string(letter);
    if (letter === "!") return this.#not();
    const number = this.#match(/-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?![\w$.])/iy);
    if (number !== undefined) return Number(number);
    const name = this.#match(/[\p{ID_Start}$_][\p{ID_Continue}$]*/uy);
    if (name === undefined) return UNKNOWN;
    if (Object.hasOwn(WORDS, name)) return WORDS[name];
    return this.#endsValue() ? this.#reference(name) : UNKNOWN;
  }

  /** Reads `!0` or `!1`, the booleans of minifiers. */
  #not(): unknown {
    const written = this.#match(/![01](?![\w.])/y);
    return written === undefined ? UNKNOWN : written === "!0";
  }

  #list(depth: number): unknown {
    const items: unknown[] = [];
    this.#at++;
    while (!this.#takes("]")) {
      items.push(this.value(depth + 1));
      if (!this.#takes(",") && !this.#sees("]")) throw new Unreadable();
    }
    return items;
  }

  #object(depth: number): unknown {
    const fields: JsonObject = {};
    let unknown = false;
    this.#at++;
    while (!this.#takes("}")) {
      const key = this.#key();
      if (key === undefined) {
        unknown = true; // spread or computed key
        this.#passExpression();
      } else if (this.#takes(":")) {
        setField(fields, key, this.value(depth + 1));
      } else if (this.#sees(",") || this.#sees("}")) {
        setField(fields, key, this.#reference(key));
      } else throw new Unreadable(); // a method or an accessor
      if (!this.#takes(",") && !this.#sees("}")) throw new Unreadable();
    }
    return unknown ? UNKNOWN : fields;
  }

  #key(): string | undefined {
    this.#skipSpace();
    const letter = this.#text.charAt(this.#at);
    if (letter === '"' || letter === "'") return this.#string(letter);
    return this.#match(/[\p{ID_Start}$_][\p{ID_Continue}$]*|\d+/uy);
  }

  #string(quote: string): string {
    let value = "";
    for (this.#at++; this.#at < this.#text.length; this.#at++) {
      const letter = this.#text.charAt(this.#at);
      if (letter === quote) {
        this.#at++;
        return value;
      }
      if (quote === "`" && letter === "$" && this.#text.charAt(this.#at + 1) === "{") throw new Unreadable();
      value += letter === "\\" ? this.#escape() : letter;
    }
    throw new Unreadable();
  }

  /** Reads an escape: starts at the backslash, ends at the last character. */
  #escape(): string {
    const letter = this.#text.charAt(++this.#at);
    if (letter === "u" || letter === "x") {
      this.#at++;
      const code = this.#match(letter === "x" ? /[0-9a-f]{2}/iy : /[0-9a-f]{4}|\{[0-9a-f]{1,6}\}/iy);
      const point = parseInt((code ?? "").replace(/[{}]/g, ""), 16);
      if (!(point <= 0x10ffff)) throw new Unreadable();
      this.#at--;
      return String.fromCodePoint(point);
    }
    if (letter === "\n") return "";
    if (letter === "\r") {
      if (this.#text.charAt(this.#at + 1) === "\n") this.#at++;
      return "";
    }
    return ESCAPES[letter] ?? letter;
  }

  /** Skips an expression whose value is unknown. */
  #passExpression(): void {
    const closers: string[] = [];
    for (this.#skipSpace(); this.#at < this.#text.length;) {
      const letter = this.#text.charAt(this.#at);
      if (letter === '"' || letter === "'" || letter === "`") {
        this.#string(letter);
        continue;
      }
      if (letter === "/") throw new Unreadable(); // a division or a regular expression: needs a parser
      if (closers.length === 0 && ",;]})".includes(letter)) return;
      if (closers.at(-1) === letter) closers.pop();
      else if (letter in CLOSERS) closers.push(CLOSERS[letter]!); // checked by the condition
      else if (")]}".includes(letter)) throw new Unreadable();
      this.#at++;
    }
  }

  /** Skips white space and comments; returns the new offset. */
  #skipSpace(): number {
    this.#match(/(?:\s|\/\/[^\n]*(?:\n|$)|\/\*[^]*?\*\/)*/y);
    return this.#at;
  }

  #sees(letter: string): boolean {
    this.#skipSpace();
    return this.#text.charAt(this.#at) === letter;
  }

  #takes(letter: string): boolean {
    const sees = this.#sees(letter);
    if (sees) this.#at++;
    else if (this.#at >= this.#text.length) throw new Unreadable();
    return sees;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) return undefined;
    this.#at += found.length;
    return found;
  }
}

/** Sets a field, also one named `__proto__`. */
function setField(fields: JsonObject, key: string, value: unknown): void {
  Object.defineProperty(fields, key, { value, enumerable: true, configurable: true, writable: true });
}
