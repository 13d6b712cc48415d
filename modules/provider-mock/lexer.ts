/** Splits a prompt into numbers, words and symbols, each with its place, for the rules that look for something in it. */

/** One piece of a prompt. */
export interface Token {
  kind: "number" | "word" | "symbol";
  /** Numbers without separators, words in lower case, operators in ASCII. */
  text: string;
  /** Index of its first code unit in the prompt. */
  start: number;
  /** Index behind its last code unit. */
  end: number;
}

/** Spellings of the operators that `tool-calculator` knows. */
const OPERATORS: Readonly<Record<string, string>> = {
  "×": "*",
  "·": "*",
  "∗": "*",
  "÷": "/",
  "∕": "/",
  "−": "-",
  "–": "-",
};

/** Returns the tokens of a text in order; white space is in none of them, but a line break is a symbol. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let depth = 0;
  for (let start = 0; start < text.length;) {
    const character = characterAt(text, start);
    if (character !== "\n" && isSpace(character)) {
      start += character.length;
      continue;
    }
    const token = numberAt(text, start, depth === 0) ?? wordAt(text, start) ?? symbolAt(text, start);
    if (token.text === "(") depth++;
    else if (token.text === ")") depth--;
    tokens.push(token);
    start = token.end;
  }
  return tokens;
}

function numberAt(text: string, start: number, grouped: boolean): Token | null {
  const end = endOfNumber(text, start, grouped);
  if (end === null) return null;
  return { kind: "number", text: text.slice(start, end).replaceAll(",", "").toLowerCase(), start, end };
}

function wordAt(text: string, start: number): Token | null {
  const end = endOfWord(text, start);
  return end === null ? null : { kind: "word", text: text.slice(start, end).toLowerCase(), start, end };
}

function symbolAt(text: string, start: number): Token {
  if (text.startsWith("**", start)) return { kind: "symbol", text: "^", start, end: start + 2 };
  const character = characterAt(text, start);
  return {
    kind: "symbol",
    text: OPERATORS[character] ?? character,
    start,
    end: start + character.length,
  };
}

/**
 * Returns the end of a number, or null when there is none: digits, thousands in groups of three (`grouped`; between
 * parentheses a comma separates arguments), a fraction, an exponent. `007`, `3rd` and `1.2.3` are no numbers.
 */
function endOfNumber(text: string, start: number, grouped: boolean): number | null {
  let end = endOfDigits(text, start);
  if (end > start + 1 && text[start] === "0") return null;
  const mayGroup = grouped && end > start && end <= start + 3 && text[start] !== "0";
  while (mayGroup && text[end] === "," && endOfDigits(text, end + 1) === end + 4) end += 4;
  if (text[end] === "." && isDigit(characterAt(text, end + 1))) end = endOfDigits(text, end + 1);
  if (end === start) return null;
  end = endOfExponent(text, end);
  if (text[end] === "." && isDigit(characterAt(text, end + 1))) return null;
  return isLetter(characterAt(text, end)) && !isTimes(text, end) ? null : end;
}

function endOfExponent(text: string, start: number): number {
  if (text[start] !== "e" && text[start] !== "E") return start;
  const digits = text[start + 1] === "+" || text[start + 1] === "-" ? start + 2 : start + 1;
  const end = endOfDigits(text, digits);
  return end > digits ? end : start;
}

/** The x of `6x7`. */
function isTimes(text: string, index: number): boolean {
  return (text[index] === "x" || text[index] === "X") && isDigit(characterAt(text, index + 1));
}

/** Returns the end of a word, or null: letters and digits, with apostrophes, hyphens and dots inside (`what's`, `to-do`, `1.2.3`). */
function endOfWord(text: string, start: number): number | null {
  let end = start;
  while (end < text.length) {
    const character = characterAt(text, end);
    if (end === start && isTimes(text, end) && start > 0 && isDigit(characterAt(text, start - 1))) {
      return end + 1;
    }
    if (isLetter(character) || isDigit(character)) end += character.length;
    else if (end > start && "'’-.".includes(character) && joins(text, end)) end += character.length;
    else break;
  }
  return end > start ? end : null;
}

/** A hyphen joins letters only: `to-do` is a word, `x-3` is not. */
function joins(text: string, index: number): boolean {
  const next = characterAt(text, index + 1);
  return text[index] === "." ? isDigit(next) : isLetter(next) && isLetter(characterAt(text, index - 1));
}

function endOfDigits(text: string, start: number): number {
  let end = start;
  while (isDigit(characterAt(text, end))) end++;
  return end;
}

/** Returns the whole character at an index, both halves of a surrogate pair; empty behind the end. */
function characterAt(text: string, index: number): string {
  const point = text.codePointAt(index);
  return point === undefined ? "" : String.fromCodePoint(point);
}

function isDigit(character: string): boolean {
  return character >= "0" && character <= "9" && character.length === 1;
}

function isLetter(character: string): boolean {
  return character !== "" && /^\p{L}$/u.test(character);
}

function isSpace(character: string): boolean {
  return /^\s$/u.test(character);
}
