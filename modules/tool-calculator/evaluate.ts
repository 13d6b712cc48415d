/**
 * Evaluates arithmetic expressions with a precedence parser, without `eval` and without a syntax tree. From
 * the weakest: `+ -`; `* / %`; signs; `^`, which groups to the right. So `-2^2` is -4 and `2^-1` is 0.5.
 */

/** Maximum characters of an expression. */
export const MAX_EXPRESSION_CHARS = 10_000;

/** Maximum nesting of parentheses, signs and powers; far below the limit of the stack. */
const MAX_DEPTH = 200;

/** Thrown when an expression cannot be evaluated; the tool turns it into a failed result. */
export class CalculationError extends Error {
  /** The `error.type` of the failed result, such as `syntax_error`. */
  readonly kind: string;

  constructor(kind: string, fact: string) {
    super(`Cannot evaluate the expression: ${fact}`);
    this.kind = kind;
  }
}

const CONSTANTS: ReadonlyMap<string, number> = new Map([["pi", Math.PI], ["tau", 2 * Math.PI], [
  "e",
  Math.E,
]]);

/** Functions that take one number and are those of `Math`. */
const OF_MATH = "abs sign sqrt cbrt floor ceil trunc exp sin cos tan asin acos atan sinh cosh tanh"
  .split(" ") as readonly ("abs" | "sqrt")[];

/** A function with the least and the most numbers that it takes. */
type CalculatorFunction = readonly [least: number, most: number, apply: (...values: number[]) => number];

const FUNCTIONS = new Map<string, CalculatorFunction>([
  ...OF_MATH.map((name) => [name, [1, 1, Math[name]]] as [string, CalculatorFunction]),
  ["ln", [1, 1, logarithm]],
  ["log", [1, 2, logarithm]],
  ["log10", [1, 1, (value) => logarithm(value, 10)]],
  ["log2", [1, 1, (value) => logarithm(value, 2)]],
  ["round", [1, 2, round]],
  ["atan2", [2, 2, Math.atan2]],
  ["pow", [2, 2, power]],
  ["mod", [2, 2, modulo]],
  ["min", [1, Infinity, Math.min]],
  ["max", [1, Infinity, Math.max]],
  ["hypot", [1, Infinity, Math.hypot]],
]);

function logarithm(value: number, base = Math.E): number {
  if (value <= 0) return NaN; // also 0, whose logarithm would be -Infinity
  if (base === 10) return Math.log10(value); // exact for powers of 10
  if (base === 2) return Math.log2(value);
  return divide(Math.log(value), base === Math.E ? 1 : Math.log(base));
}

function divide(a: number, b: number): number {
  if (b === 0) throw new CalculationError("division_by_zero", "division by zero");
  return a / b;
}

/** Returns the remainder with the sign of `b`, so that `-7 % 3` is 2 as in Python. */
function modulo(a: number, b: number): number {
  if (b === 0) throw new CalculationError("division_by_zero", "modulo by zero");
  const rest = a % b;
  return rest !== 0 && (rest < 0) !== (b < 0) ? rest + b : rest;
}

function power(a: number, b: number): number {
  if (a === 0 && b < 0) throw new CalculationError("division_by_zero", "zero to a negative power");
  return a ** b;
}

/** Rounds halves away from zero, in decimal: `round(1.005, 2)` is 1.01, though the double is below it. */
function round(value: number, digits = 0): number {
  if (!Number.isInteger(digits) || Math.abs(digits) > 15) {
    throw new CalculationError("domain_error", `round takes whole digits from -15 to 15, not ${digits}`);
  }
  const shift = (number: number, by: number) => {
    const [mantissa, exponent = "0"] = String(number).split("e");
    return Number(`${mantissa}e${Number(exponent) + by}`);
  };
  return Math.sign(value) * shift(Math.round(shift(Math.abs(value), digits)), -digits);
}

/**
 * Returns the value of an arithmetic expression, always finite.
 *
 * @throws {CalculationError} with the reason and, for a syntax error, the position.
 */
export function evaluate(expression: string): number {
  if (expression.length > MAX_EXPRESSION_CHARS) {
    const fact = `it has ${expression.length} characters, more than ${MAX_EXPRESSION_CHARS}`;
    throw new CalculationError("expression_too_long", fact);
  }
  return new Parser(expression).value();
}

/** White space; a number, whose `e` needs digits after it; a name; any other character. */
const TOKEN = /\s+|(?<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?<name>[A-Za-z_]\w*|π)|\*\*|./gu;

/** Other spellings of signs and names. */
const SPELLINGS: ReadonlyMap<string, string> = new Map(
  [["−", "-"], ["–", "-"], ["×", "*"], ["·", "*"], ["⋅", "*"], ["÷", "/"], ["∕", "/"], ["**", "^"], [
    "π",
    "pi",
  ]],
);

interface Token {
  readonly kind: "number" | "name" | "sign" | "end";
  readonly text: string;
  /** Counted from 1. */
  readonly position: number;
}

class Parser {
  readonly #tokens: Token[] = [];
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    for (const { 0: found, index, groups } of text.matchAll(TOKEN)) {
      if (found.trim() === "") continue;
      const kind = groups?.number !== undefined ? "number" : groups?.name !== undefined ? "name" : "sign";
      const spelled = SPELLINGS.get(found) ?? found;
      this.#tokens.push({
        kind,
        text: kind === "name" ? spelled.toLowerCase() : spelled,
        position: index + 1,
      });
    }
    this.#tokens.push({ kind: "end", text: "", position: text.length + 1 });
  }

  value(): number {
    if (this.#tokens.length === 1) throw new CalculationError("syntax_error", "it is empty");
    const value = this.#sum();
    if (this.#next.kind !== "end") throw this.#unexpected();
    return value;
  }

  get #next(): Token {
    return this.#tokens[this.#at]!; // the list ends with `end`, which is never taken
  }

  /** Takes the next token if it is one of the signs and returns it. */
  #take(signs: string): string | undefined {
    const { kind, text } = this.#next;
    if (kind !== "sign" || !signs.includes(text)) return undefined;
    this.#at++;
    return text;
  }

  #expect(sign: string): void {
    if (this.#take(sign) === undefined) throw this.#unexpected(`, expected "${sign}"`);
  }

  #unexpected(hint = ""): CalculationError {
    const { kind, text, position } = this.#next;
    const found = kind === "end" ? "end of the expression" : JSON.stringify(text);
    return new CalculationError("syntax_error", `unexpected ${found} at position ${position}${hint}`);
  }

  #nested(read: () => number): number {
    if (++this.#depth > MAX_DEPTH) {
      throw new CalculationError("expression_too_deep", `it nests deeper than ${MAX_DEPTH} levels`);
    }
    const value = read();
    this.#depth--;
    return value;
  }

  #sum(): number {
    let value = this.#product();
    for (let sign = this.#take("+-"); sign; sign = this.#take("+-")) {
      const right = this.#product();
      value = finite(sign === "+" ? value + right : value - right, `"${sign}"`);
    }
    return value;
  }

  #product(): number {
    let value = this.#signed();
    for (let sign = this.#take("*/%"); sign; sign = this.#take("*/%")) {
      const right = this.#signed();
      value = finite(
        sign === "*" ? value * right : sign === "/" ? divide(value, right) : modulo(value, right),
        `"${sign}"`,
      );
    }
    return value;
  }

  #signed(): number {
    const sign = this.#take("+-");
    if (sign) return (sign === "-" ? -1 : 1) * this.#nested(() => this.#signed());
    const base = this.#atom();
    return this.#take("^") ? finite(power(base, this.#nested(() => this.#signed())), '"^"') : base;
  }

  #atom(): number {
    const token = this.#next;
    if (token.kind === "number" || token.kind === "name") {
      this.#at++;
      return token.kind === "name" ? this.#named(token) : finite(Number(token.text), token.text);
    }
    if (this.#take("(") === undefined) throw this.#unexpected();
    const value = this.#nested(() => this.#sum());
    this.#expect(")");
    return value;
  }

  #named({ text: name, position }: Token): number {
    const constant = CONSTANTS.get(name);
    if (constant !== undefined) return constant;
    const found = FUNCTIONS.get(name);
    if (!found) {
      const known = [...CONSTANTS.keys(), ...FUNCTIONS.keys()].join(", ");
      const fact = `unknown name ${JSON.stringify(name)} at position ${position}; known names: ${known}`;
      throw new CalculationError("unknown_name", fact);
    }
    this.#expect("(");
    const values: number[] = [];
    if (this.#take(")") === undefined) {
      do values.push(this.#nested(() => this.#sum())); while (this.#take(","));
      this.#expect(")");
    }
    const [least, most, apply] = found;
    if (values.length < least || values.length > most) {
      const expected = most === Infinity
        ? `at least ${least}`
        : least === most
        ? least
        : `${least} to ${most}`;
      const fact = `${name} at position ${position} takes ${expected} arguments, not ${values.length}`;
      throw new CalculationError("syntax_error", fact);
    }
    return finite(apply(...values), name);
  }
}

function finite(value: number, operation: string): number {
  if (Number.isFinite(value)) return value;
  const [kind, is] = Number.isNaN(value) ? ["domain_error", "not a real number"] : ["overflow", "too large"];
  throw new CalculationError(kind, `the result of ${operation} is ${is}`);
}

/**
 * Returns a finite number as text. Whole numbers that a double represents exactly are printed in full. Others
 * are rounded to 15 significant digits, the most that survive decimal → double → decimal: 0.1 + 0.2 is "0.3".
 */
export function formatNumber(value: number): string {
  if (Number.isSafeInteger(value)) return String(value + 0); // + 0 turns -0 into 0
  const rounded = Number(value.toPrecision(15));
  return Math.abs(rounded) <= 1e15 ? String(rounded) : rounded.toExponential();
}
