/**
 * Patterns of paths, such as `src/**` or `*.{ts,md}`. Patterns come from models and names from anywhere, so
 * the matcher is no regular expression: only the last `*` is retried, and a match takes pattern × path steps.
 */
import { FileError } from "./access.ts";

const MAX_PATTERN_CHARS = 1000;
const MAX_ALTERNATIVES = 100;

/** Tests one character, or one folder of a path. */
type Test = (part: string) => boolean;
/** A part that matches any number of characters, or of folders. */
const ANY_NUMBER = null;
type Part = Test | typeof ANY_NUMBER;

/**
 * Returns a test of relative paths. A pattern without `/` is compared with the name only.
 *
 * @throws {FileError} when the pattern cannot be read.
 */
export function globMatcher(pattern: string): Test {
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw new FileError(`The pattern must have at most ${MAX_PATTERN_CHARS} characters`);
  }
  const alternatives = alternativesOf(pattern.replace(/^\.\//, "")).map((one) => {
    const parts = one.split("/").map((part): Part => part === "**" ? ANY_NUMBER : segmentTest(part));
    return parts.length === 1
      ? (path: string[]) => parts[0] === ANY_NUMBER || matches(parts, path.slice(-1))
      : (path: string[]) => matches(parts, path);
  });
  return (path) => {
    const segments = path.split("/");
    return alternatives.some((test) => test(segments));
  };
}

/** Returns whether all of a list matches; the last part of any number takes as few items as possible. */
function matches(parts: readonly Part[], items: ArrayLike<string>): boolean {
  let [at, place, any, retry] = [0, 0, -1, 0];
  while (at < items.length) {
    const part = parts[place];
    if (part === ANY_NUMBER) {
      any = place++;
      retry = at;
    } else if (part?.(items[at]!)) {
      at++;
      place++;
    } else if (any >= 0) {
      place = any + 1;
      at = ++retry;
    } else return false;
  }
  while (parts[place] === ANY_NUMBER) place++;
  return place === parts.length;
}

/** Returns the test of a part between two slashes: `*`, `?`, `[a-z]` and `\`. */
function segmentTest(text: string): Test {
  if (!/[*?[\\]/.test(text)) return (name) => name === text;
  const parts: Part[] = [];
  for (let at = 0; at < text.length; at++) {
    const unit = text[at]!;
    if (unit === "*") parts.push(ANY_NUMBER);
    else if (unit === "?") parts.push(() => true);
    else if (unit === "[" && text.indexOf("]", at + 2) > 0) {
      const end = text.indexOf("]", at + 2);
      parts.push(classTest(text.slice(at + 1, end)));
      at = end;
    } else {
      const literal = unit === "\\" && at + 1 < text.length ? text[++at]! : unit;
      parts.push((other) => other === literal);
    }
  }
  return (name) => matches(parts, name);
}

/** Returns the test of `[…]`: characters and ranges, or with `!` or `^` all others. */
function classTest(text: string): Test {
  const isNegated = text[0] === "!" || text[0] === "^";
  const set = isNegated ? text.slice(1) : text;
  return (unit) => {
    for (let at = 0; at < set.length; at++) {
      const isRange = set[at + 1] === "-" && at + 2 < set.length;
      const last = isRange ? set[at + 2]! : set[at]!;
      if (unit >= set[at]! && unit <= last) return !isNegated;
      if (isRange) at += 2;
    }
    return isNegated;
  };
}

/** Returns the patterns that the outermost `{a,b}` stand for, and those inside. @throws {FileError} */
function alternativesOf(pattern: string): string[] {
  const open = pattern.indexOf("{");
  if (open < 0) return [pattern];
  const commas: number[] = [];
  let depth = 0;
  for (let at = open; at < pattern.length; at++) {
    if (pattern[at] === "{") depth++;
    else if (pattern[at] === "," && depth === 1) commas.push(at);
    else if (pattern[at] === "}" && --depth === 0) {
      const limits = [open, ...commas, at];
      const found = limits.slice(1).flatMap((end, index) =>
        alternativesOf(
          pattern.slice(0, open) + pattern.slice(limits[index]! + 1, end) + pattern.slice(at + 1),
        )
      );
      if (found.length <= MAX_ALTERNATIVES) return found;
      throw new FileError(`The pattern ${pattern} has more than ${MAX_ALTERNATIVES} alternatives`);
    }
  }
  throw new FileError(`The pattern ${pattern} has a { without }`);
}
