/**
 * Patterns of names and words: `*` matches any characters, `?` matches one, and `\` makes the next character
 * literal. Patterns come from plans and texts from models, so the matcher is not a regular expression.
 */

/** Returns whether the whole text matches the pattern. Case matters. */
export type Glob = (text: string) => boolean;

const STAR = -1;
const ANY = -2;

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

function parse(pattern: string): number[] {
  const codes: number[] = [];
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern.charAt(at);
    if (character === "*") codes.push(STAR);
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
    } else if (code === ANY || code === text.charCodeAt(at)) {
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
