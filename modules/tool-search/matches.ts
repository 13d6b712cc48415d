/** Finds the lines of a text that match, in parts so small that other work runs in between. */
import { Slices } from "../files/walk.ts";
import type { TextMatch, TextPattern } from "./pattern.ts";

/** Characters that are searched without a pause, or fewer for a large pattern. */
export const BLOCK_CHARS = 64 * 1024;

/** Lines that match, of which the last is no line of another match. */
export interface LineMatch {
  /** Index of the first line. */
  readonly at: number;
  readonly lines: readonly string[];
  /** Index in the first line at which the match begins. */
  readonly found: number;
}

/** Yields the matches of a text in their order. */
export function matchesIn(
  text: string,
  pattern: TextPattern,
  signal: AbortSignal | undefined,
): AsyncGenerator<LineMatch> {
  return pattern.is_multiline ? matchesOfText(text, pattern, signal) : matchesOfLines(text, pattern, signal);
}

/** Yields single lines; most blocks of lines are passed over without splitting them. */
async function* matchesOfLines(
  whole: string,
  pattern: TextPattern,
  signal: AbortSignal | undefined,
): AsyncGenerator<LineMatch> {
  if (whole === "") return;
  const text = whole.endsWith("\n") ? whole.slice(0, -1) : whole; // which ends the last line
  const slices = new Slices();
  const block_chars = Math.min(BLOCK_CHARS, pattern.chars);
  let at = 0;
  for (let start = 0; start <= text.length;) {
    const pause = slices.pause(signal);
    if (pause) await pause;
    const end = endOfBlock(text, start, block_chars);
    if (end - start > block_chars) { // one long line
      const line = text.slice(start, end);
      const match = await findIn(line, 0, pattern, slices, signal);
      if (match !== null) yield { at, lines: [line], found: match.start };
      at++;
    } else {
      const block = text.slice(start, end);
      const lines = pattern.maybe(block) ? block.split("\n") : null;
      for (const [index, line] of (lines ?? []).entries()) {
        const match = pattern.find(line, 0);
        if (match !== null) yield { at: at + index, lines: [line], found: match.start };
      }
      at += lines?.length ?? linesIn(text, start, end);
    }
    start = end + 1;
  }
}

/** Returns the end of the last line that ends within a number of characters, or else of the first. */
function endOfBlock(text: string, start: number, chars: number): number {
  if (start + chars >= text.length) return text.length;
  const within = text.lastIndexOf("\n", start + chars);
  const end = within >= start ? within : text.indexOf("\n", start);
  return end < 0 ? text.length : end;
}

/** Yields matches that may span lines; after one, the search continues at the next line. */
async function* matchesOfText(
  text: string,
  pattern: TextPattern,
  signal: AbortSignal | undefined,
): AsyncGenerator<LineMatch> {
  const slices = new Slices();
  let [at, counted] = [0, 0];
  for (let from = 0; from < text.length;) {
    const match = await findIn(text, from, pattern, slices, signal);
    if (match === null) return;
    const start = match.start === 0 ? 0 : text.lastIndexOf("\n", match.start - 1) + 1;
    const newline = text.indexOf("\n", Math.max(match.start, match.end - 1));
    const end = newline < 0 ? text.length : newline;
    at += linesIn(text, counted, start) - 1;
    counted = start;
    yield { at, lines: text.slice(start, end).split("\n"), found: match.start - start };
    from = end + 1;
  }
}

/**
 * Resolves to the first match at an index or after it. The text is searched in windows that overlap, each
 * with the character before it. A match that ends with its window may be longer: the window grows.
 */
async function findIn(
  text: string,
  from: number,
  pattern: TextPattern,
  slices: Slices,
  signal: AbortSignal | undefined,
): Promise<TextMatch | null> {
  const least = Math.min(BLOCK_CHARS, pattern.chars);
  for (let [at, chars] = [from, least]; at <= text.length;) {
    const end = Math.min(text.length, at + chars);
    const before = at > 0 ? at - 1 : 0;
    const found = pattern.find(text.slice(before, end), at - before);
    const isCut = found !== null && end < text.length && before + found.end >= end;
    if (found !== null && !isCut) return { start: before + found.start, end: before + found.end };
    if (end === text.length) return null;
    chars = isCut && before + found.start === at ? 2 * chars : least;
    at = isCut ? before + found.start : at + Math.ceil(chars / 2);
    const pause = slices.pause(signal);
    if (pause) await pause;
  }
  return null;
}

function linesIn(text: string, start: number, end: number): number {
  let count = 1;
  for (let at = text.indexOf("\n", start); at >= 0 && at < end; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
