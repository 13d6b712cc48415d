/**
 * The constants and functions of expressions, with their numbers of arguments, and the failure of a
 * calculation.
 */

/** Kinds of failures, the `type` of a failed result. */
type FailureKind =
  | "tool_input_invalid"
  | "expression_too_long"
  | "expression_too_deep"
  | "syntax_error"
  | "unknown_name"
  | "division_by_zero"
  | "domain_error"
  | "overflow";

/** Thrown when an expression cannot be evaluated; the tool turns it into a failed result. */
export class CalculationError extends Error {
  /** The `error.type` of the failed result. */
  readonly kind: FailureKind;

  constructor(kind: FailureKind, fact: string) {
    super(`Cannot evaluate the expression: ${fact}`);
    this.kind = kind;
  }
}

/** A function of an expression. */
export interface CalculatorFunction {
  readonly min: number;
  readonly max: number;
  readonly apply: (...values: number[]) => number;
}

export const CONSTANTS: ReadonlyMap<string, number> = new Map([
  ["pi", Math.PI],
  ["tau", 2 * Math.PI],
  ["e", Math.E],
]);

/** Functions by name. `log` without a base is the natural logarithm, as in Python and JavaScript. */
export const FUNCTIONS: ReadonlyMap<string, CalculatorFunction> = new Map([
  ["abs", unary(Math.abs)],
  ["sign", unary(Math.sign)],
  ["sqrt", unary(Math.sqrt)],
  ["cbrt", unary(Math.cbrt)],
  ["floor", unary(Math.floor)],
  ["ceil", unary(Math.ceil)],
  ["trunc", unary(Math.trunc)],
  ["round", takes(1, 2, round)],
  ["min", takes(1, Infinity, Math.min)],
  ["max", takes(1, Infinity, Math.max)],
  ["exp", unary(Math.exp)],
  ["ln", unary(positive(Math.log))],
  ["log", takes(1, 2, logarithm)],
  ["log10", unary(positive(Math.log10))],
  ["log2", unary(positive(Math.log2))],
  ["sin", unary(withoutNoise(Math.sin))],
  ["cos", unary(withoutNoise(Math.cos))],
  ["tan", unary(withoutNoise(Math.tan))],
  ["asin", unary(Math.asin)],
  ["acos", unary(Math.acos)],
  ["atan", unary(Math.atan)],
  ["atan2", takes(2, 2, Math.atan2)],
  ["sinh", unary(Math.sinh)],
  ["cosh", unary(Math.cosh)],
  ["tanh", unary(Math.tanh)],
  ["hypot", takes(1, Infinity, Math.hypot)],
  ["pow", takes(2, 2, power)],
  ["mod", takes(2, 2, modulo)],
]);

export function divide(a: number, b: number): number {
  if (b === 0) throw new CalculationError("division_by_zero", "division by zero");
  return a / b;
}

/** Returns the remainder with the sign of `b`, so that `-7 % 3` is 2 as in Python. */
export function modulo(a: number, b: number): number {
  if (b === 0) throw new CalculationError("division_by_zero", "modulo by zero");
  const rest = a % b;
  return rest !== 0 && (rest < 0) !== (b < 0) ? rest + b : rest;
}

export function power(a: number, b: number): number {
  if (a === 0 && b < 0) throw new CalculationError("division_by_zero", "zero to a negative power");
  return a ** b;
}

function unary(apply: (value: number) => number): CalculatorFunction {
  return takes(1, 1, apply);
}

function takes(min: number, max: number, apply: (...values: number[]) => number): CalculatorFunction {
  return { min, max, apply };
}

function logarithm(value: number, base?: number): number {
  const ln = positive(Math.log);
  if (base === undefined) return ln(value);
  if (base === 10) return positive(Math.log10)(value);
  if (base === 2) return positive(Math.log2)(value);
  if (base === 1) throw new CalculationError("domain_error", "a logarithm has no base 1");
  return ln(value) / ln(base);
}

/** Wraps a logarithm: numbers up to 0 are a domain error, also 0, whose logarithm would be -Infinity. */
function positive(apply: (value: number) => number): (value: number) => number {
  return (value) => {
    if (value > 0) return apply(value);
    throw new CalculationError("domain_error", `a logarithm takes numbers above 0, not ${value}`);
  };
}

/**
 * Rounds halves away from zero, in decimal: `round(1.005, 2)` is 1.01 although the double is slightly less.
 */
function round(value: number, digits = 0): number {
  if (!Number.isInteger(digits) || Math.abs(digits) > 15) {
    throw new CalculationError("domain_error", `round takes whole digits from -15 to 15, not ${digits}`);
  }
  return Math.sign(value) * shift(Math.round(shift(Math.abs(value), digits)), -digits);
}

/** Moves the decimal point in the number's decimal text, which has no binary rounding error. */
function shift(value: number, digits: number): number {
  const [mantissa, exponent] = String(value).split("e");
  return Number(`${mantissa}e${Number(exponent ?? 0) + digits}`);
}

/**
 * Wraps a function so that a result below the rounding error of its argument is 0: `sin(pi)` would be
 * 1.2e-16, because the double `pi` differs from π by that much.
 */
function withoutNoise(apply: (value: number) => number): (value: number) => number {
  return (value) => {
    const result = apply(value);
    return Math.abs(result) < Math.abs(value) * Number.EPSILON ? 0 : result;
  };
}
