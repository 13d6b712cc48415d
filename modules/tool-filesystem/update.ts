/** Updates a text file by the parts of a patch, whose lines are found by their text. */
import { FileError } from "../files/access.ts";
import { changesOf, MAX_NUMBERED } from "../files/line_changes.ts";
import {
  isSameText,
  lineAt,
  replaced,
  type Replacement,
  startsOf,
  type TextFile,
  wholeLines,
} from "../files/text_file.ts";
import { fitted, LineMatcher, nearestLines } from "./match.ts";

/** A line of a change: of the file and kept, of the file and deleted, or new. */
interface Row {
  readonly mark: " " | "-" | "+";
  readonly text: string;
  /** Whether the line is empty, without a mark: models leave some between parts of a patch. */
  readonly isBare: boolean;
}

/** One part of an update. */
export interface Chunk {
  /** Lines that stand before the part, each in its place; from `@@ …`. */
  readonly anchors: string[];
  readonly rows: Row[];
  at_end: boolean;
}

/** A chunk with its place. */
interface Placed {
  /** Its rows, without bare lines at their borders that the file does not have. */
  readonly rows: readonly Row[];
  readonly old: readonly string[];
  readonly at: number;
  /** The places of the lines of its `@@`, and of its own lines; null: it has none and follows its `@@`. */
  readonly anchors: readonly (readonly number[])[];
  readonly places: readonly number[] | null;
  /** Whether it is at the end of the file, wherever else its lines are. */
  readonly isFixed: boolean;
}

/**
 * Resolves to a file with the changes of chunks, which follow each other in it.
 *
 * @throws {FileError} when one is not there, could be in several places, or cannot be fitted.
 */
export async function updated(file: TextFile, chunks: readonly Chunk[], path: string): Promise<TextFile> {
  const lines = wholeLines(file);
  const first = firstPlaces(lines, chunks, path);
  const last = lastPlaces(lines, first);
  const result = await changed(file, first, path);
  const other = first.find(({ at }, index) => at !== last[index]);
  // which one of several is deleted may make no difference
  if (
    other &&
    !isSameText(result, await changed(file, first.map((one, at) => ({ ...one, at: last[at]! })), path))
  ) {
    const places = [other.at, last[first.indexOf(other)]!].map((line) => line + 1).join(" and ");
    throw new FileError(
      `These lines are in ${path} more than once (such as at lines ${places}): add lines around them, or a ` +
        `line above them after @@:\n${other.old.slice(0, MAX_NUMBERED).join("\n")}`,
    );
  }
  return result;
}

async function changed(file: TextFile, placed: readonly Placed[], path: string): Promise<TextFile> {
  const starts = startsOf(file.lines);
  const length = starts.at(-1)! + file.lines.at(-1)!.length;
  const replacements: Replacement[] = [];
  for (const { rows, at: place, old } of placed) {
    const changes = changesOf(rows.map(({ mark }) => mark));
    const now = rows.filter(({ mark }) => mark !== "-").map(({ text }) => text);
    const lines = fitted(wholeLines(file), place, { old, now, changes, name: "The patch" }, path);
    for (const [index, { at, count }] of changes.entries()) {
      const put = lines[index]!;
      const [first, next] = [starts[place + at], starts[place + at + count]];
      if (next !== undefined) {
        replacements.push({ start: first!, end: next, put: put.map((line) => `${line}\n`).join("") });
      } // the last line has no line end, and so has what takes its place or follows it
      else if (count > 0) replacements.push({ start: first!, end: length, put: put.join("\n") });
      else replacements.push({ start: length, end: length, put: `\n${put.join("\n")}` });
    }
  }
  return await replaced(file, replacements.toSorted((a, b) => a.start - b.start));
}

/** Returns the first place of each chunk after those before it. @throws {FileError} */
function firstPlaces(lines: readonly string[], chunks: readonly Chunk[], path: string): Placed[] {
  const matcher = new LineMatcher(lines);
  let from = 0;
  return chunks.map((chunk) => {
    const anchors = chunk.anchors.map((anchor) => matcher.placesOf([anchor], from));
    const start = anchors.length === 0 ? from : startAfter(anchors, firstFrom(anchors[0]!, from));
    if (start === undefined) {
      throw new FileError(
        `The patch needs these lines of its @@ in ${path}, where they are not, or not in this order: ` +
          chunk.anchors.join(", "),
      );
    }
    const bare = chunk.rows.map(({ isBare }) => isBare);
    const trimmed = chunk.rows.slice(Math.max(0, bare.indexOf(false)), bare.lastIndexOf(false) + 1);
    for (const rows of [chunk.rows, trimmed]) {
      const old = rows.filter(({ mark }) => mark !== "+").map(({ text }) => text);
      const placed = { rows, old, anchors };
      if (old.length === 0) {
        // without any place it is at the end, and later chunks may be before it
        const isFixed = anchors.length === 0 || chunk.at_end;
        return { ...placed, places: null, at: isFixed ? lines.length : from = start, isFixed };
      }
      const places = matcher.placesOf(old, start);
      const end = lines.length - old.length;
      const isFixed = chunk.at_end && end >= start && places.includes(end);
      const at = isFixed ? end : firstFrom(places, start);
      if (at === undefined) continue;
      from = at + old.length;
      return { ...placed, places, at, isFixed };
    }
    const old = trimmed.filter(({ mark }) => mark !== "+").map(({ text }) => text);
    throw new FileError(
      `The patch does not match ${path}: these lines are not there:\n${
        old.slice(0, MAX_NUMBERED).join("\n")
      }\n` +
        `The nearest lines are:\n${nearestLines(lines, old)}`,
    );
  });
}

/** Returns the last place of each chunk before those after it. */
function lastPlaces(lines: readonly string[], placed: readonly Placed[]): number[] {
  let limit = lines.length;
  return placed.toReversed().map(({ old, at, anchors, places, isFixed }) => {
    if (isFixed) {
      if (places !== null) limit = at;
      return at;
    }
    for (const place of (anchors[0] ?? places!).toReversed()) {
      const start = anchors.length === 0 ? place : startAfter(anchors, place);
      const found = start === undefined || places === null ? start : firstFrom(places, start);
      if (found === undefined || found + old.length > limit) continue;
      limit = place;
      return found;
    }
    return at;
  }).reverse();
}

/** Returns the line after several lines, each found after the one before; undefined: one is missing. */
function startAfter(anchors: readonly (readonly number[])[], first: number | undefined): number | undefined {
  let place = first;
  for (const places of anchors.slice(1)) {
    if (place !== undefined) place = firstFrom(places, place + 1);
  }
  return place === undefined ? undefined : place + 1;
}

/** Returns the first of ascending places that is at or after `start`. */
function firstFrom(places: readonly number[], start: number): number | undefined {
  return places[0]! >= start ? places[0] : places[lineAt(places, start - 1) + 1];
}
