/**
 * Finds lines in a file as a model remembers them: as they are, else up to white space at their ends, else up
 * to all white space, quotes and dashes. What is put in their place is then fitted to the file.
 */
import { FileError } from "../files/access.ts";
import { type LineChange, MAX_NUMBERED, numberedLine } from "../files/line_changes.ts";

/** Characters that models write in place of each other, behind the one that stands for all. */
const ALIKE: readonly (readonly [string, RegExp])[] = [
  [" ", /[\t \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+/],
  ["'", /['\u2018-\u201b]/],
  ['"', /["\u201c-\u201f]/],
  ["-", /[-\u2010-\u2015\u2212]/],
];
const MARKS = new RegExp(ALIKE.map(([, alike]) => alike.source).join("|"), "g");
/** Forms in which lines are compared, the strictest first. */
const FORMS: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim().replace(MARKS, kindOf),
];

function kindOf(mark: string): string {
  return ALIKE.find(([, alike]) => alike.test(mark))![0];
}

function marksIn(text: string): string[] {
  return text.match(MARKS) ?? [];
}

/** Finds lists of lines in a file. */
export class LineMatcher {
  readonly #lines: readonly string[];
  readonly #formed: string[][] = [];

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  /** Returns each place of a list of lines, in the strictest form that has one at or after `from`. */
  placesOf(wanted: readonly string[], from = 0): number[] {
    for (const [index, form] of FORMS.entries()) {
      const lines = this.#formed[index] ??= this.#lines.map(form);
      const places = placesIn(lines, wanted.map(form));
      if (places.some((place) => place >= from)) return places;
    }
    return [];
  }
}

/**
 * Returns each place of a list of lines, in linear time: after a mismatch, lines that are known to match are
 * not compared again (the algorithm of Knuth, Morris and Pratt).
 */
function placesIn(lines: readonly string[], wanted: readonly string[]): number[] {
  const back = [0];
  for (let at = 1, length = 0; at < wanted.length; at++) {
    while (length > 0 && wanted[at] !== wanted[length]) length = back[length - 1]!;
    if (wanted[at] === wanted[length]) length++;
    back.push(length);
  }
  const places: number[] = [];
  for (let at = 0, length = 0; at < lines.length; at++) {
    while (length > 0 && lines[at] !== wanted[length]) length = back[length - 1]!;
    if (lines[at] === wanted[length]) length++;
    if (length < wanted.length) continue;
    places.push(at - length + 1);
    length = back[length - 1]!;
  }
  return places;
}

/** Lines as the model wrote them, which were found in a file. */
export interface Fitting {
  readonly old: readonly string[];
  readonly now: readonly string[];
  /** What leads from `old` to `now`. */
  readonly changes: readonly LineChange[];
  /** What the lines come from, for a refusal. */
  readonly name: string;
}

/**
 * Returns the new lines of each change with the indentation, quotes and dashes that the file has at a place,
 * where the model wrote others.
 *
 * @throws {FileError} when there is more than one way to do so, or none.
 */
export function fitted(lines: readonly string[], place: number, fitting: Fitting, path: string): string[][] {
  const { old, now, changes, name } = fitting;
  const end = place + old.length;
  const found = lines.slice(place, end);
  const pairs = old.map((line, at) => [line, found[at]!] as const).filter(([line]) => line.trim() !== "");
  const indents = pairs.map(([line, own]) => [indentOf(line), indentOf(own)] as const);
  const other = new Set(pairs.flatMap(([line, own]) => {
    const marks = marksIn(own.trim());
    return marksIn(line.trim()).filter((mark, at) => mark !== marks[at]).map(kindOf);
  }));
  let longer = 0;
  try {
    return changes.map(({ at, count, put }) => {
      const added = now.slice(at + longer, at + longer + put);
      longer += put - count;
      return added.map((line, index) => {
        if (line.trim() === "") return line;
        const pair = count === put ? [old[at + index]!, found[at + index]!] as const : ["", ""] as const;
        const indent = indentOf(line);
        const isKept = pair[0].trim() !== "" && indentOf(pair[0]) === indent;
        return (isKept ? indentOf(pair[1]) : fittedIndent(indent, indents, line)) +
          fittedText(line.slice(indent.length), pair[0].trim(), pair[1].trim(), other);
      });
    });
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    throw new FileError(
      `${name} is in ${path} only with other white space, quotes or dashes, and what shall take its place ` +
        `cannot be fitted: ${error.message}\nCopy the lines as they are:\n${
          numberedLines(lines, place, end)
        }`,
    );
  }
}

function indentOf(line: string): string {
  return /^[^\S\r\n]*/.exec(line)![0];
}

/** Returns the file's indentation for one that the model wrote. @throws {FileError} */
function fittedIndent(indent: string, pairs: readonly (readonly [string, string])[], line: string): string {
  const known = new Set(pairs.filter(([old]) => old === indent).map(([, own]) => own));
  if (known.size === 0) {
    if (pairs.every(([old, own]) => old === own)) return indent;
    for (const way of [moved(indent, pairs), scaled(indent, pairs)]) if (way !== null) known.add(way);
  }
  if (known.size === 1) return [...known][0]!;
  throw new FileError(`which indentation this line has in the file is not certain: ${line}`);
}

/** Returns an indentation to which the same is added, or from which it is taken, as in all pairs. */
function moved(indent: string, pairs: readonly (readonly [string, string])[]): string | null {
  const [old, own] = pairs[0]!;
  const extra = (text: string, other: string) => text.slice(0, Math.max(0, text.length - other.length));
  const [more, less] = [extra(own, old), extra(old, own)];
  if (pairs.some(([old, own]) => more + old !== less + own) || !indent.startsWith(less)) return null;
  const result = more + indent.slice(less.length);
  const isMixed = (text: string) => new Set(text).size > 1;
  return isMixed(result) && !pairs.some(([, own]) => isMixed(own)) ? null : result;
}

/** Returns an indentation of as many steps in the file's width and kind, such as a tab for four spaces. */
function scaled(indent: string, pairs: readonly (readonly [string, string])[]): string | null {
  const olds = new Set(indent + pairs.map(([old]) => old).join(""));
  const owns = new Set(pairs.map(([, own]) => own).join(""));
  const [old, own] = pairs.find(([old]) => old !== "") ?? ["", ""];
  const isSame = pairs.every((pair) => pair[0].length * own.length === pair[1].length * old.length);
  const length = indent.length * own.length / old.length;
  if (olds.size !== 1 || owns.size !== 1 || !isSame || !Number.isInteger(length)) return null;
  return [...owns][0]!.repeat(length);
}

/**
 * Returns a new text with the file's marks in what it has in common with the text that it replaces.
 *
 * @param old The replaced text as the model wrote it.
 * @param own The same as it is in the file.
 * @param other Kinds of marks that the model wrote in another way somewhere.
 * @throws {FileError} when the rest has such marks: which of the file's they should be is not known.
 */
function fittedText(text: string, old: string, own: string, other: ReadonlySet<string>): string {
  const body = text.trimEnd();
  const shorter = Math.min(body.length, old.length);
  let start = 0;
  while (start < shorter && body[start] === old[start]) start++;
  let end = 0;
  while (end < shorter - start && body.at(-1 - end) === old.at(-1 - end)) end++;
  const [before, theirs, count] = [marksIn(old), marksIn(own), marksIn(body).length];
  let index = 0;
  const fittedBody = body.replace(MARKS, (mark, at: number) => {
    const first = index++;
    const last = first + theirs.length - count;
    if (at + mark.length <= start && before[first] === mark) return theirs[first]!;
    if (at >= body.length - end && before[last] === mark) return theirs[last]!;
    if (kindOf(mark) === " " || !other.has(kindOf(mark))) return mark;
    throw new FileError(`the file has another kind of ${mark} than this line: ${text}`);
  });
  return fittedBody + text.slice(body.length);
}

/** Characters that are compared to find the nearest lines, in all and of one line. */
const MAX_COMPARED_CHARS = 2_000_000;
const MAX_COMPARED_OF_LINE = 200;
const SHOWN_BEFORE = 1;
const SHOWN_AFTER = 4;

/** Returns the lines that are most like the first line of what was wanted, numbered. */
export function nearestLines(lines: readonly string[], wanted: readonly string[]): string {
  const first = wanted.map((line) => line.trim()).find((line) => line !== "") ?? "";
  const like = likenessTo(first.slice(0, MAX_COMPARED_OF_LINE));
  let best = 0;
  let best_score = -1;
  for (let at = 0, compared = 0; at < lines.length && compared < MAX_COMPARED_CHARS; at++) {
    const line = lines[at]!.trim().slice(0, MAX_COMPARED_OF_LINE);
    compared += line.length + 1;
    const score = like(line);
    if (score > best_score) [best, best_score] = [at, score];
  }
  const from = Math.max(0, best - SHOWN_BEFORE);
  return numberedLines(lines, from, Math.min(lines.length, best + SHOWN_AFTER + 1));
}

/** Returns the first of some lines as text, numbered. */
export function numberedLines(lines: readonly string[], from: number, to: number): string {
  return lines.slice(from, Math.min(to, from + MAX_NUMBERED)).map((line, at) =>
    numberedLine(line, from + at + 1)
  ).join("\n");
}

/** Returns a function that returns how alike a text is, from 0 to 1: their common pairs of characters. */
export function likenessTo(wanted: string): (other: string) => number {
  const pairs = new Map<number, number>();
  for (let at = 1; at < wanted.length; at++) {
    pairs.set(pairAt(wanted, at), (pairs.get(pairAt(wanted, at)) ?? 0) + 1);
  }
  return (other) => {
    if (other === wanted) return 1;
    const taken = new Map<number, number>();
    let common = 0;
    for (let at = 1; at < other.length; at++) {
      const pair = pairAt(other, at);
      const count = pairs.get(pair);
      if (count === undefined) continue;
      const before = taken.get(pair) ?? 0;
      if (before === count) continue;
      taken.set(pair, before + 1);
      common++;
    }
    const all = Math.max(0, wanted.length - 1) + Math.max(0, other.length - 1);
    return all === 0 ? 0 : 2 * common / all;
  };
}

function pairAt(text: string, at: number): number {
  return text.charCodeAt(at - 1) << 16 | text.charCodeAt(at);
}
