/**
 * Patterns of names and words: `*` matches any characters, `?` matches one, and `\` makes the next character
 * literal. Patterns come from plans and texts from models, so the matcher is not a regular expression.
 */

/** Returns whether the whole text matches the pattern. Case matters. */
export type Glob = (text: string) => boolean;

const STAR = -1;
const ANY = -2;
const DIGIT = -3;

/** Returns whether a pattern contains `*` or `?`. */
export function hasWildcard(pattern: string): boolean {
  return pattern.includes("*") || pattern.includes("?");
}

/** Compiles a pattern. A match takes at most pattern × text steps, because only the last `*` is retried. */
export function compileGlob(pattern: string): Glob {
  if (!hasWildcard(pattern) && !pattern.includes("\\")) return (text) => text === pattern;
  const codes = parse(pattern);
  return (text) => matches(codes, text);
}

/** What stands for one digit in a pattern of models. */
const DIGIT_CLASS = "[0-9]";

/**
 * Compiles a pattern of models, such as `claude-opus-[0-9]*`: `[0-9]` matches one digit, and case does not
 * matter. Undefined for a name without a wildcard.
 */
export function compileModelGlob(pattern: string): Glob | undefined {
  if (!hasWildcard(pattern) && !pattern.includes(DIGIT_CLASS)) return undefined;
  const codes = parse(pattern.toLowerCase(), true);
  return (text) => matches(codes, text.toLowerCase());
}

function parse(pattern: string, with_digits = false): number[] {
  const codes: number[] = [];
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern.charAt(at);
    if (with_digits && pattern.startsWith(DIGIT_CLASS, at)) {
      codes.push(DIGIT);
      at += DIGIT_CLASS.length - 1;
    } else if (character === "*") codes.push(STAR);
    else if (character === "?") codes.push(ANY);
    else {
      if (character === "\\" && at + 1 < pattern.length) at++;
      codes.push(pattern.charCodeAt(at));
    }
  }
  return codes;
}

function matches(codes: readonly number[], text: string): boolean {
  let at = 0;
  let place = 0;
  let star = -1;
  let retry = 0;
  while (at < text.length) {
    const code = codes[place];
    if (code === STAR) {
      star = place++;
      retry = at;
    } else if (code === ANY || code === text.charCodeAt(at) || code === DIGIT && /\d/.test(text.charAt(at))) {
      at++;
      place++;
    } else if (star >= 0) {
      place = star + 1; // the last star takes one more character
      at = ++retry;
    } else return false;
  }
  while (codes[place] === STAR) place++;
  return place === codes.length;
}
