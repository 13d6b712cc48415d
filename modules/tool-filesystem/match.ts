/**
 * Finds a text in a file as a model remembers it: exactly, else up to white space, quotes and dashes. What is
 * found must be unique, and what is not found is answered with the lines that are nearest to it.
 */
/** A range of a text, in UTF-16 units. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Returns each place of a text, without overlaps. */
export function placesOf(text: string, wanted: string): Range[] {
  const places: Range[] = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
    places.push({ start: at, end: at + wanted.length });
  }
  return places;
}

const SAME: Readonly<Record<string, string>> = {
  "\u2018": "'",
  "\u2019": "'",
  "\u201a": "'",
  "\u201c": '"',
  "\u201d": '"',
  "\u201e": '"',
  "\u2010": "-",
  "\u2011": "-",
  "\u2012": "-",
  "\u2013": "-",
  "\u2014": "-",
  "\u2212": "-",
};
const SPACE = /[\t\u00a0\u2000-\u200a\u202f\u3000 ]/;

/** A text with one form of white space, quotes and dashes, and where its units begin in the original. */
interface Tolerant {
  readonly text: string;
  readonly starts: readonly number[];
}

/** Runs of white space become one space; those at the end of a line are left out. */
function tolerant(original: string): Tolerant {
  const units: string[] = [];
  const starts: number[] = [];
  for (let at = 0; at < original.length; at++) {
    const unit = original[at]!;
    if (unit === "\r" && original[at + 1] === "\n") continue;
    if (SPACE.test(unit)) {
      if (units.at(-1) === " ") continue;
      units.push(" ");
    } else {
      if (unit === "\n" && units.at(-1) === " ") {
        units.pop();
        starts.pop();
      }
      units.push(SAME[unit] ?? unit);
    }
    starts.push(at);
  }
  return { text: units.join(""), starts };
}

/** Characters of a text that is also searched tolerantly: this takes a tenth of a second. */
const MAX_TOLERANT_CHARS = 1_000_000;

/** Returns each place of a text up to white space, quotes and dashes; none in a long text. */
export function tolerantPlacesOf(text: string, wanted: string): Range[] {
  if (text.length > MAX_TOLERANT_CHARS) return [];
  const sought = tolerant(wanted).text.trim();
  if (sought === "") return [];
  const { text: simple, starts } = tolerant(text);
  return placesOf(simple, sought).map(({ start, end }) => ({
    start: starts[start]!, // a place is inside of the text
    end: starts[end - 1]! + 1,
  }));
}

/** Returns the number of the line at a position, from 1. */
export function lineAt(text: string, position: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < position; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

/** Characters that are compared to find the nearest lines, in all and of one line. */
const MAX_COMPARED_CHARS = 2_000_000;
const MAX_COMPARED_OF_LINE = 200;
const SHOWN_BEFORE = 1;
const SHOWN_AFTER = 4;

/** Returns the lines of a text that are most like the first line of what was wanted, numbered. */
export function nearestLines(text: string, wanted: string): string {
  const first = wanted.split("\n").map((line) => line.trim()).find((line) => line !== "") ?? "";
  const like = likenessTo(first.slice(0, MAX_COMPARED_OF_LINE));
  const lines = text.split("\n");
  let best = 0;
  let best_score = -1;
  for (let at = 0, compared = 0; at < lines.length && compared < MAX_COMPARED_CHARS; at++) {
    const line = lines[at]!.trim().slice(0, MAX_COMPARED_OF_LINE);
    compared += line.length + 1;
    const score = like(line);
    if (score > best_score) [best, best_score] = [at, score];
  }
  const from = Math.max(0, best - SHOWN_BEFORE);
  const to = Math.min(lines.length, best + SHOWN_AFTER + 1);
  return lines.slice(from, to).map((line, at) =>
    `${String(from + at + 1).padStart(6)}\t${line.slice(0, 500)}`
  )
    .join("\n");
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
