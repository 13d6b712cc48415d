/**
 * Reads and evaluates arithmetic expressions, and formats their values. A precedence parser, without `eval`
 * and without a syntax tree.
 *
 * | binds     | operators       | groups       |
 * |-----------|-----------------|--------------|
 * | weakest   | `+ -`           | to the left  |
 * |           | `* / %`         | to the left  |
 * |           | unary `+ -`     |              |
 * | strongest | `^` (or `**`)   | to the right |
 *
 * So `-2^2` is -4 and `2^-1` is 0.5.
 */
import { CalculationError, CONSTANTS, divide, FUNCTIONS, modulo, power } from "./functions.ts";

/** Maximum characters of an expression. */
export const MAX_EXPRESSION_CHARS = 10_000;

/** Maximum nesting of parentheses, signs and powers; far below the limit of the stack. */
const MAX_DEPTH = 200;

/**
 * Returns the value of an arithmetic expression, always finite.
 *
 * @throws {CalculationError} with the reason and, for a syntax error, the position.
 */
export function evaluate(expression: string): number {
  if (expression.length > MAX_EXPRESSION_CHARS) {
    throw new CalculationError(
      "expression_too_long",
      `it has ${expression.length} characters, more than ${MAX_EXPRESSION_CHARS}`,
    );
  }
  const reader = new Reader(tokenize(expression));
  if (reader.peek().kind === "end") throw new CalculationError("syntax_error", "it is empty");
  const value = sum(reader);
  if (reader.peek().kind !== "end") throw reader.unexpected();
  return value;
}

class Reader {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  peek(): Token {
    return this.#tokens[this.#at] as Token; // the list ends with `end`, which `take` does not pass
  }

  take(): Token {
    const token = this.peek();
    if (token.kind !== "end") this.#at++;
    return token;
  }

  /** Takes the next token if it is one of the signs and returns it. */
  takeSign(...signs: string[]): string | undefined {
    const token = this.peek();
    if (token.kind !== "sign" || !signs.includes(token.text)) return undefined;
    this.#at++;
    return token.text;
  }

  expect(sign: string): void {
    if (this.takeSign(sign) === undefined) throw this.unexpected(`, expected "${sign}"`);
  }

  nested(read: (reader: Reader) => number): number {
    if (++this.#depth > MAX_DEPTH) {
      throw new CalculationError("expression_too_deep", `it nests deeper than ${MAX_DEPTH} levels`);
    }
    const value = read(this);
    this.#depth--;
    return value;
  }

  unexpected(hint = ""): CalculationError {
    const token = this.peek();
    const found = token.kind === "end" ? "end of the expression" : JSON.stringify(token.text);
    return new CalculationError("syntax_error", `unexpected ${found} at position ${token.position}${hint}`);
  }
}

function sum(reader: Reader): number {
  let value = product(reader);
  for (let sign = reader.takeSign("+", "-"); sign; sign = reader.takeSign("+", "-")) {
    const right = product(reader);
    value = finite(sign === "+" ? value + right : value - right, `"${sign}"`);
  }
  return value;
}

function product(reader: Reader): number {
  let value = signed(reader);
  for (let sign = reader.takeSign("*", "/", "%"); sign; sign = reader.takeSign("*", "/", "%")) {
    const right = signed(reader);
    const result = sign === "*" ? value * right : sign === "/" ? divide(value, right) : modulo(value, right);
    value = finite(result, `"${sign}"`);
  }
  return value;
}

function signed(reader: Reader): number {
  const sign = reader.takeSign("+", "-");
  if (sign === undefined) return raised(reader);
  const value = reader.nested(signed);
  return sign === "-" ? -value : value;
}

function raised(reader: Reader): number {
  const base = atom(reader);
  if (reader.takeSign("^") === undefined) return base;
  return finite(power(base, reader.nested(signed)), '"^"');
}

function atom(reader: Reader): number {
  const token = reader.peek();
  if (token.kind === "number") {
    reader.take();
    return finite(Number(token.text), token.text);
  }
  if (token.kind === "name") {
    reader.take();
    return named(token.text, token.position, reader);
  }
  if (reader.takeSign("(") === undefined) throw reader.unexpected();
  const value = reader.nested(sum);
  reader.expect(")");
  return value;
}

function named(name: string, position: number, reader: Reader): number {
  const fn = FUNCTIONS.get(name);
  if (fn === undefined) {
    const value = CONSTANTS.get(name);
    if (value !== undefined) return value;
    const known = [...CONSTANTS.keys(), ...FUNCTIONS.keys()].join(", ");
    throw new CalculationError(
      "unknown_name",
      `unknown name ${JSON.stringify(name)} at position ${position}; known names: ${known}`,
    );
  }
  reader.expect("(");
  const values: number[] = [];
  if (reader.takeSign(")") === undefined) {
    do values.push(reader.nested(sum)); while (reader.takeSign(",") !== undefined);
    reader.expect(")");
  }
  if (values.length < fn.min || values.length > fn.max) {
    const expected = fn.max === Infinity
      ? `at least ${fn.min}`
      : fn.min === fn.max
      ? `${fn.min}`
      : `${fn.min} to ${fn.max}`;
    throw new CalculationError(
      "syntax_error",
      `${name} at position ${position} takes ${expected} arguments, not ${values.length}`,
    );
  }
  return finite(fn.apply(...values), name);
}

function finite(value: number, operation: string): number {
  if (Number.isFinite(value)) return value;
  if (Number.isNaN(value)) {
    throw new CalculationError("domain_error", `the result of ${operation} is not a real number`);
  }
  throw new CalculationError("overflow", `the result of ${operation} is too large`);
}

/**
 * Returns a finite number as text. Whole numbers that a double represents exactly are printed in full. Others
 * are rounded to 15 significant digits, the most that survive decimal → double → decimal: 0.1 + 0.2 is "0.3",
 * 2^64 is "1.84467440737096e+19".
 */
export function formatNumber(value: number): string {
  if (Number.isSafeInteger(value)) return String(value + 0); // + 0 turns -0 into 0
  const digits = value.toPrecision(15);
  const rounded = Number(digits);
  if (Math.abs(rounded) <= 1e15) return String(rounded);
  const [mantissa = "", exponent = ""] = digits.split("e");
  return `${Number(mantissa)}e${exponent}`;
}

/** A token and its position, counted from 1. Every list ends with `end`. */
interface Token {
  readonly kind: "number" | "name" | "sign" | "end";
  readonly text: string;
  readonly position: number;
}

/** Accepted signs → the operator. */
const SIGNS: ReadonlyMap<string, string> = new Map([
  ["\u2212", "-"], // minus sign
  ["\u2013", "-"], // en dash, which word processors insert for a hyphen
  ["\u00d7", "*"], // multiplication sign
  ["\u00b7", "*"], // middle dot
  ["\u22c5", "*"], // dot operator
  ["\u00f7", "/"], // division sign
  ["\u2215", "/"], // division slash
  ["**", "^"],
  ...[..."+-*/%^(),"].map((sign) => [sign, sign] as const),
]);

/** White space; a number, whose `e` needs digits after it; a name; any other character. */
const TOKEN = /\s+|(?<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?<name>[A-Za-z_]\w*|\u03c0)|\*\*|./gu;

/**
 * Returns the tokens of an expression. `**` is read as `^`; names are lower-cased; `π` is `pi`.
 *
 * @throws {CalculationError} `syntax_error` with the position, for a character that does not start a token.
 */
function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  for (const { 0: found, index, groups: { number, name } = {} } of text.matchAll(TOKEN)) {
    const position = index + 1;
    if (number !== undefined) tokens.push({ kind: "number", text: number, position });
    else if (name !== undefined) {
      tokens.push({ kind: "name", text: name === "\u03c0" ? "pi" : name.toLowerCase(), position });
    } else if (found.trim() !== "") {
      const sign = SIGNS.get(found);
      if (sign === undefined) {
        const fact = `unexpected character ${JSON.stringify(found)} at position ${position}`;
        throw new CalculationError("syntax_error", fact);
      }
      tokens.push({ kind: "sign", text: sign, position });
    }
  }
  tokens.push({ kind: "end", text: "", position: text.length + 1 });
  return tokens;
}
