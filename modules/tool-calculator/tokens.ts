/** Splits the text of an expression into numbers, names and signs. */
import { CalculationError } from "./failure.ts";

/** A token and its position, counted from 1. Every list ends with `end`. */
export type Token =
  | { kind: "number"; value: number; text: string; position: number }
  | { kind: "name"; text: string; position: number }
  | { kind: "sign"; text: string; position: number }
  | { kind: "end"; text: string; position: number };

/** Accepted signs → the operator. */
const SIGNS: Readonly<Record<string, string>> = {
  "+": "+",
  "-": "-",
  "\u2212": "-", // minus sign
  "\u2013": "-", // en dash, which word processors insert for a hyphen
  "*": "*",
  "\u00d7": "*", // multiplication sign
  "\u00b7": "*", // middle dot
  "\u22c5": "*", // dot operator
  "/": "/",
  "\u00f7": "/", // division sign
  "\u2215": "/", // division slash
  "%": "%",
  "^": "^",
  "(": "(",
  ")": ")",
  ",": ",",
};

/**
 * Returns the tokens of an expression. `**` is read as `^`; names are lower-cased; `π` is `pi`.
 *
 * @throws {CalculationError} `syntax_error` with the position, for a character that does not start a token.
 */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const character = text.charAt(at);
    const position = at + 1;
    if (isSpace(character)) at++;
    else if (isDigit(character) || (character === "." && isDigit(text.charAt(at + 1)))) {
      const end = endOfNumber(text, at);
      const digits = text.slice(at, end);
      tokens.push({ kind: "number", value: Number(digits), text: digits, position });
      at = end;
    } else if (isLetter(character)) {
      const end = endOfName(text, at);
      tokens.push({ kind: "name", text: text.slice(at, end).toLowerCase(), position });
      at = end;
    } else if (character === "\u03c0") {
      tokens.push({ kind: "name", text: "pi", position });
      at++;
    } else if (text.startsWith("**", at)) {
      tokens.push({ kind: "sign", text: "^", position });
      at += 2;
    } else {
      const sign = Object.hasOwn(SIGNS, character) ? SIGNS[character] : undefined;
      if (sign === undefined) {
        const quoted = JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0));
        throw new CalculationError("syntax_error", `unexpected character ${quoted} at position ${position}`);
      }
      tokens.push({ kind: "sign", text: sign, position });
      at++;
    }
  }
  tokens.push({ kind: "end", text: "", position: text.length + 1 });
  return tokens;
}

/** Returns the end of a number: digits, at most one dot, and an exponent if it has digits. In `2e` the `e` is a name. */
function endOfNumber(text: string, start: number): number {
  let end = afterDigits(text, start);
  if (text.charAt(end) === ".") end = afterDigits(text, end + 1);
  if (text.charAt(end).toLowerCase() !== "e") return end;
  const digits = text.charAt(end + 1) === "+" || text.charAt(end + 1) === "-" ? end + 2 : end + 1;
  return isDigit(text.charAt(digits)) ? afterDigits(text, digits) : end;
}

function afterDigits(text: string, start: number): number {
  let end = start;
  while (isDigit(text.charAt(end))) end++;
  return end;
}

function endOfName(text: string, start: number): number {
  let end = start + 1;
  while (isLetter(text.charAt(end)) || isDigit(text.charAt(end))) end++;
  return end;
}

function isDigit(character: string): boolean {
  return character >= "0" && character <= "9";
}

function isLetter(character: string): boolean {
  return (character >= "a" && character <= "z") || (character >= "A" && character <= "Z") ||
    character === "_";
}

function isSpace(character: string): boolean {
  return character.trim() === ""; // all white space of Unicode, including no-break spaces
}
