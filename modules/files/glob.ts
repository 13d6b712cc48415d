/**
 * Patterns of paths, such as `src/**` or `*.{ts,md}`, as ripgrep's `--glob` reads them. Patterns come from
 * models and names from anywhere, so the matcher is no regular expression: only the last `*` is retried, and
 * a match takes pattern × path steps.
 */
import { FileError } from "./access.ts";

const MAX_PATTERN_CHARS = 1000;
const MAX_ALTERNATIVES = 100;

/** A pattern of paths below a folder. */
export interface Glob {
  /** The folders, or the whole path, that each matching path begins with; empty: any. */
  readonly base: string;
  /** Returns whether a path matches: relative to the folder, with `/`. */
  test(path: string): boolean;
  /** Returns whether the pattern has this name of a file or folder in full. */
  names(name: string): boolean;
}

/** Tests one character, or one folder of a path. */
type Test = (part: string) => boolean;
/** A part that matches any number of characters, or of folders. */
const ANY_NUMBER = null;
type Part = Test | typeof ANY_NUMBER;

/**
 * Reads a pattern. Without `/` before its end it is compared with the names in every folder; with `/` or `./`
 * at its start only with those at the top. With `!` at its start, what it matches is left out, and so is
 * what is below. A name with brackets or braces, such as `[id]`, also matches itself.
 *
 * @throws {FileError} when the pattern cannot be read.
 */
export function readGlob(pattern: string): Glob {
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw new FileError(`The pattern must have at most ${MAX_PATTERN_CHARS} characters`);
  }
  refuseExtended(pattern);
  const isNegated = pattern.startsWith("!");
  const text = isNegated ? pattern.slice(1).replace(/(?<=.)\/+$/, "") : pattern.replace(/\/+$/, "/**");
  const isAnchored = /^(?:\.?\/)/.test(text);
  const alternatives = alternativesOf(text)
    .map((one) => one.split("/").filter((part) => part !== "" && part !== "."))
    .filter((segments) => segments.length > 0);
  if (alternatives.length === 0) throw new FileError("The pattern is empty");
  const tests = alternatives.map((segments) => pathTest(segments, isAnchored || segments.length > 1));
  const matches = (path: readonly string[]) => tests.some((test) => test(path));
  const literals = alternatives.map((segments) => segments.map(literalOf));
  const names = new Set(isNegated ? [] : literals.flat());
  return {
    base: isNegated ? "" : baseOf(literals, isAnchored),
    test: isNegated
      ? (path) => {
        const segments = path.split("/");
        return !segments.some((_, index) => matches(segments.slice(0, index + 1)));
      }
      : (path) => matches(path.split("/")),
    names: (name) => names.has(name),
  };
}

/** @throws {FileError} for what other programs read as alternatives, and would match nothing here. */
function refuseExtended(pattern: string): void {
  if (/[@?*+!]\([^()/]*\|[^()/]*\)|!\(/.test(pattern)) {
    throw new FileError(
      `The pattern ${pattern} has (…), which is not supported: write {a,b} for one of several names, or a ` +
        "pattern that begins with ! for all others",
    );
  }
  if (/\{-?\w+\.\.-?\w+(?:\.\.-?\d+)?\}/.test(pattern)) {
    throw new FileError(`The pattern ${pattern} has a range, which is not supported: write {1,2,3}`);
  }
}

/** Returns a test of the segments of a path. */
function pathTest(segments: readonly string[], isWhole: boolean): (path: readonly string[]) => boolean {
  const parts = segments.map((part): Part => part === "**" ? ANY_NUMBER : segmentTest(part));
  if (isWhole) return (path) => matches(parts, path);
  return (path) => parts[0] === ANY_NUMBER || matches(parts, path.slice(-1));
}

/** Returns what all alternatives begin with. */
function baseOf(alternatives: readonly (readonly (string | null)[])[], isAnchored: boolean): string {
  const isOne = alternatives.length === 1;
  const base: string[] = [];
  for (let at = 0;; at++) {
    const part = alternatives[0]![at]; // there is one
    const isShared = part != null &&
      alternatives.every((segments) =>
        segments[at] === part && (segments.length > at + 1 || isOne && (isAnchored || at > 0))
      );
    if (!isShared) return base.join("/");
    base.push(part);
  }
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

/** Returns the name that a part between two slashes stands for; null if it has `*`, `?` or `[`. */
function literalOf(text: string): string | null {
  return /(?<!\\)(?:\\\\)*[*?[]/.test(text) ? null : text.replace(/\\(.)/gsu, "$1");
}

/** Returns the test of a part between two slashes: `*`, `?`, `[a-z]` and `\`. */
function segmentTest(text: string): Test {
  const literal = literalOf(text);
  if (literal !== null) return (name) => name === literal;
  const readings = [partsOf(text, true), ...text.includes("[") ? [partsOf(text, false)] : []];
  return (name) => {
    const characters = /[\ud800-\udbff]/.test(name) ? [...name] : name;
    return readings.some((parts) => matches(parts, characters));
  };
}

function partsOf(text: string, hasClasses: boolean): Part[] {
  const parts: Part[] = [];
  const units = [...text];
  for (let at = 0; at < units.length; at++) {
    const unit = units[at]!;
    const end = unit === "[" && hasClasses ? endOfClass(units, at) : -1;
    if (unit === "*") parts.push(ANY_NUMBER);
    else if (unit === "?") parts.push(() => true);
    else if (end > 0) {
      parts.push(classTest(units.slice(at + 1, end)));
      at = end;
    } else {
      const literal = unit === "\\" && at + 1 < units.length ? units[++at]! : unit;
      parts.push((other) => other === literal);
    }
  }
  return parts;
}

/** Returns the index of the `]` of a class; -1 without one. One that is first belongs to the class. */
function endOfClass(units: readonly string[], open: number): number {
  const first = open + (units[open + 1] === "!" || units[open + 1] === "^" ? 2 : 1);
  for (let at = first; at < units.length; at++) {
    if (units[at] === "\\") at++;
    else if (units[at] === "]" && at > first) return at;
  }
  return -1;
}

/** Returns the test of `[…]`: characters and ranges, or with `!` or `^` all others. */
function classTest(units: readonly string[]): Test {
  const isNegated = units[0] === "!" || units[0] === "^";
  const set = (isNegated ? units.slice(1) : units).filter((unit, at, all) =>
    unit !== "\\" || all[at - 1] === "\\"
  );
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
  let open = -1;
  const commas: number[] = [];
  let depth = 0;
  for (let at = 0; at < pattern.length; at++) {
    if (pattern[at] === "\\") at++;
    else if (pattern[at] === "{" && depth++ === 0) open = at;
    else if (pattern[at] === "," && depth === 1) commas.push(at);
    else if (pattern[at] === "}" && depth > 0 && --depth === 0) {
      const [before, after] = [pattern.slice(0, open), pattern.slice(at + 1)];
      const limits = [open, ...commas, at];
      const inside = limits.slice(1).map((end, index) => pattern.slice(limits[index]! + 1, end));
      // a name such as {{name}} of a template; other programs read {a} as a
      if (commas.length === 0) inside.push(pattern.slice(open, at + 1).replace(/[{}\\]/g, "\\$&"));
      const found = inside.flatMap((one) => alternativesOf(before + one + after));
      if (found.length <= MAX_ALTERNATIVES) return found;
      throw new FileError(`The pattern ${pattern} has more than ${MAX_ALTERNATIVES} alternatives`);
    }
  }
  if (depth === 0) return [pattern];
  throw new FileError(`The pattern ${pattern} has a { without }`);
}
