/**
 * Finds the arithmetic in a prompt: a recursive-descent parser for what `tool-calculator` understands, tried from each
 * token on. It calculates nothing.
 */
import type { Token } from "./lexer.ts";

/** An expression in a prompt. */
export interface FoundExpression {
  /** As the person wrote it: `6 × 7`. */
  source: string;
  /** As the calculator takes it: `6*7`. */
  normalised: string;
}

/** Operators told by several tokens, longest first where one begins another. */
const PHRASES: readonly (readonly [words: readonly string[], operator: string])[] = [
  [["%", "of"], "/100*"],
  [["percent", "of"], "/100*"],
  [["to", "the", "power", "of"], "^"],
  [["multiplied", "by"], "*"],
  [["divided", "by"], "/"],
  [["modulo"], "%"],
  [["mod"], "%"],
  [["times"], "*"],
  [["plus"], "+"],
  [["minus"], "-"],
  [["x"], "*"],
];

const OPERATORS: ReadonlySet<string> = new Set(["+", "-", "*", "/", "%", "^"]);

/** Written without spaces these are as often a date, a range or a size: `2024-11-21`, `24/7`, `1920x1080`. */
const DOUBTFUL: ReadonlySet<string> = new Set(["-", "/", "x"]);

/** The functions of `tool-calculator`. */
const FUNCTIONS: ReadonlySet<string> = new Set(
  ("abs acos asin atan atan2 cbrt ceil cos cosh exp floor hypot ln log log10 log2 max min mod pow round sign sin sinh sqrt " +
    "tan tanh trunc").split(" "),
);

/** Words that ask for a calculation. */
const CUES: ReadonlySet<string> = new Set(
  [
    "what",
    "what's",
    "what’s",
    "calculate",
    "calc",
    "compute",
    "evaluate",
    "solve",
    "much",
    "equals",
    "result",
  ],
);

/** Nesting the parser follows; a prompt is anybody's. */
const MAX_DEPTH = 32;

/** Returns the first expression of a prompt that has an operator or a function in it, or null. */
export function findExpression(prompt: string, tokens: readonly Token[]): FoundExpression | null {
  for (let start = 0; start < tokens.length;) {
    const found = isArgumentList(tokens, start) ? null : new Parser(tokens).parse(start);
    if (found === null) {
      start++;
      continue;
    }
    if (found.certain || isAskedFor(tokens, start, found.end)) {
      const from = tokens[start]?.start;
      const to = tokens[found.end - 1]?.end;
      return { source: prompt.slice(from, to), normalised: found.text };
    }
    start = found.end;
  }
  return null;
}

/** The parenthesis of `f(2)`, where f is nothing we know. */
function isArgumentList(tokens: readonly Token[], start: number): boolean {
  const [before, opening] = [tokens[start - 1], tokens[start]];
  return opening?.text === "(" && before?.kind === "word" && before.end === opening.start;
}

/** A doubtful expression counts when a word asks for it, when `=` follows, or when there is nothing else. */
function isAskedFor(tokens: readonly Token[], start: number, end: number): boolean {
  if (tokens[end]?.text === "=") return true;
  const others = [...tokens.slice(0, start), ...tokens.slice(end)].filter((token) => token.kind !== "symbol");
  return others.length === 0 || tokens.slice(0, start).some((token) => CUES.has(token.text));
}

interface Parsed {
  text: string;
  /** Index of the token behind it. */
  end: number;
  /** Whether it can be nothing but arithmetic. */
  certain: boolean;
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #operations = 0;
  #certain = false;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  /** Returns the longest expression from `start` on, or null when there is none or it is a lone number. */
  parse(start: number): Parsed | null {
    this.#at = start;
    const text = this.#expression(0);
    return text === null || this.#operations === 0 ? null : { text, end: this.#at, certain: this.#certain };
  }

  /** expression = operand { operator operand } */
  #expression(depth: number): string | null {
    let text = this.#operand(depth);
    if (text === null) return null;
    for (;;) {
      const before = this.#mark();
      const operator = this.#operator();
      const operand = operator === null ? null : this.#operand(depth);
      if (operand === null) {
        this.#reset(before);
        return text;
      }
      text += operator + operand;
    }
  }

  /** operand = { "+" | "-" } ( number | pi | function "(" expression { "," expression } ")" | "(" expression ")" ) */
  #operand(depth: number): string | null {
    const first = this.#at;
    let sign = "";
    for (let text = this.#peek()?.text; text === "-" || text === "+"; text = this.#peek()?.text) {
      if (this.#at - first >= MAX_DEPTH) return null;
      if (text === "-") sign = sign === "" ? "-" : "";
      this.#at++;
    }
    const primary = this.#primary(depth);
    return primary === null ? null : sign + primary;
  }

  #primary(depth: number): string | null {
    const token = this.#peek();
    if (token === undefined || depth >= MAX_DEPTH) return null;
    if (token.kind === "number" || token.text === "pi" || token.text === "π") {
      this.#at++;
      return token.text === "π" ? "pi" : token.text;
    }
    if (FUNCTIONS.has(token.text) && this.#peek(1)?.text === "(") {
      this.#at++;
      const list = this.#parenthesised(depth, true);
      if (list !== null) this.#count(true);
      return list === null ? null : token.text + list;
    }
    return token.text === "(" ? this.#parenthesised(depth, false) : null;
  }

  #parenthesised(depth: number, list: boolean): string | null {
    let text = "";
    do {
      const opening = this.#peek()?.text ?? "";
      this.#at++;
      const inner = this.#expression(depth + 1);
      if (inner === null) return null;
      text += opening + inner;
    } while (list && this.#peek()?.text === ",");
    if (this.#peek()?.text !== ")") return null;
    this.#at++;
    return `${text})`;
  }

  #operator(): string | null {
    const phrase = PHRASES.find(([words]) => words.every((word, index) => this.#peek(index)?.text === word));
    const first = this.#peek();
    if (phrase) {
      this.#count(!this.#isDoubtful(first));
      this.#at += phrase[0].length;
      return phrase[1];
    }
    if (first === undefined || !OPERATORS.has(first.text) || this.#isPercentSign(first)) return null;
    this.#count(!this.#isDoubtful(first));
    this.#at++;
    return first.text;
  }

  #isDoubtful(token: Token | undefined): boolean {
    return token !== undefined && DOUBTFUL.has(token.text) && this.#touches(-1, token) &&
      this.#touches(1, token);
  }

  /** `20% more` is a share, `20 % 3` and `20%3` a remainder. */
  #isPercentSign(token: Token): boolean {
    return token.text === "%" && this.#touches(-1, token) && !this.#touches(1, token);
  }

  #touches(offset: -1 | 1, token: Token): boolean {
    const neighbour = this.#peek(offset);
    return offset < 0 ? neighbour?.end === token.start : neighbour?.start === token.end;
  }

  #count(certain: boolean): void {
    this.#operations++;
    this.#certain ||= certain;
  }

  #peek(offset = 0): Token | undefined {
    return this.#tokens[this.#at + offset];
  }

  #mark() {
    return { at: this.#at, operations: this.#operations, certain: this.#certain };
  }

  #reset(mark: { at: number; operations: number; certain: boolean }): void {
    this.#at = mark.at;
    this.#operations = mark.operations;
    this.#certain = mark.certain;
  }
}
