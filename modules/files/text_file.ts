/**
 * A text file as its lines. Encoding, byte order mark and the end of each line are kept apart from the text,
 * so that tools see and change text only, and everything that a change does not name stays as it is.
 */
import { FileError } from "./access.ts";
import { decodeText, encodeText, type Encoding, UTF_8 } from "./encoding.ts";
import { changesBetween } from "./line_changes.ts";

/** Lines of a file that can be changed. */
const MAX_LINES = 2_000_000;

/** The lines of a text. */
export interface Lines {
  /** Texts between the line ends; the last one is empty when the text ends with a line end. */
  readonly lines: readonly string[];
  /** The end of each line but the last: `\n` or `\r\n`; `\r` where a text has no `\n`. */
  readonly ends: readonly string[];
}

/** A text file. */
export interface TextFile extends Lines {
  readonly encoding: Encoding;
}

/** A part of a text, in UTF-16 units of its lines joined by `\n`, and what is put in its place. */
export interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly put: string;
}

/** Returns what ends the lines of a text: `\r` only in a text that has no `\n`. */
export function separatorOf(text: string): "\n" | "\r" {
  return text.includes("\n") || !text.includes("\r") ? "\n" : "\r";
}

/** Returns the lines of a text. */
export function linesOf(text: string): Lines {
  const separator = separatorOf(text);
  const lines = text.split(separator);
  const ends: string[] = new Array(lines.length - 1).fill(separator);
  if (separator === "\n" && text.includes("\r")) {
    for (let at = 0; at < ends.length; at++) {
      if (!lines[at]!.endsWith("\r")) continue;
      lines[at] = lines[at]!.slice(0, -1);
      ends[at] = "\r\n";
    }
  }
  return { lines, ends };
}

/** Returns a text with `\n` as its line end, as it is searched or put in a file. */
export function normalText(text: string, { ends }: Lines): string {
  return ends[0] === "\r" ? text.replace(/\r\n?/g, "\n") : text.replaceAll("\r\n", "\n");
}

/** Returns the lines that a file has, the last one with or without a line end. */
export function wholeLines({ lines }: Lines): readonly string[] {
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

/** Returns a new text file. */
export function newTextFile(text: string): TextFile {
  return { encoding: UTF_8, ...linesOf(text) };
}

/**
 * Resolves to the lines of a file's bytes.
 *
 * @throws {FileError} when they are no text, or could not be written again as they are.
 */
export async function parseTextFile(bytes: Uint8Array, path: string): Promise<TextFile> {
  const decoded = await decodeText(bytes);
  if (decoded === null) throw notText(path, bytes.length);
  const { text, encoding } = decoded;
  const lines = linesOf(text);
  if (lines.lines.length > MAX_LINES) throw new FileError(`${path} has more than ${MAX_LINES} lines`);
  if (!encoding.name.startsWith("utf-")) {
    const again = encodeText(text, encoding, path);
    if (again.length !== bytes.length || again.some((byte, at) => byte !== bytes[at])) {
      throw new FileError(`${path} is encoded as ${encoding.name}, which has other bytes for the same text`);
    }
  }
  return { encoding, ...lines };
}

/** Returns the refusal of a file that is no text. */
export function notText(path: string, bytes: number): FileError {
  return new FileError(
    `${path} is not text, or its encoding is not certain: it counts as a binary file of ${bytes} bytes`,
  );
}

/** Returns the bytes of a text file. @throws {FileError} when its encoding lacks a character. */
export function bytesOf({ lines, ends, encoding }: TextFile, path: string): Uint8Array {
  return encodeText(lines.map((line, at) => line + (ends[at] ?? "")).join(""), encoding, path);
}

/** Returns whether two text files have the same lines and line ends. */
export function isSameText(one: Lines, other: Lines): boolean {
  const textOf = ({ lines, ends }: Lines) => lines.map((line, at) => line + ends[at]).join("");
  return textOf(one) === textOf(other);
}

/** Returns what a text file has besides UTF-8 and `\n`, for a person or a model; empty: nothing. */
export function formatOf({ encoding, ends }: TextFile): string {
  const kinds = [...new Set(ends)].map((end) => ({ "\n": "LF", "\r\n": "CRLF" })[end] ?? "CR");
  return [
    ...(encoding.name === UTF_8.name ? [] : [encoding.name]),
    ...(encoding.mark.length === 0 ? [] : ["byte order mark"]),
    ...(kinds.length > 1 ? [`line ends ${kinds.join(" and ")}`] : kinds[0] === "LF" ? [] : kinds),
  ].join(", ");
}

/** Returns where each line begins in the lines joined by `\n`. */
export function startsOf(lines: readonly string[]): number[] {
  let start = 0;
  return lines.map((line) => (start += line.length + 1) - line.length - 1);
}

/** Returns the index of the line that contains a position. */
export function lineAt(starts: readonly number[], position: number): number {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * Resolves to the lines with parts of their text replaced. A new line ends like the line whose place it
 * takes, else like its neighbour.
 *
 * @param replacements In the order of their places, without overlaps, with `\n` as their line end.
 */
export async function replaced<File extends Lines>(
  file: File,
  replacements: readonly Replacement[],
): Promise<File> {
  const starts = startsOf(file.lines);
  const isUniform = file.ends.every((end) => end === file.ends[0]);
  const text = isUniform ? "" : file.lines.join("\n");
  const [lines, ends]: [string[], string[]] = [[], []];
  let [line, column, open] = [0, 0, ""];
  const keepUntil = (position: number) => {
    for (const last = lineAt(starts, position); line < last; line++) {
      lines.push(open + file.lines[line]!.slice(column));
      ends.push(file.ends[line]!);
      [column, open] = [0, ""];
    }
    const to = position - starts[line]!;
    open += file.lines[line]!.slice(column, to);
    column = to;
  };
  for (const { start, end, put } of replacements) {
    keepUntil(start);
    const last = lineAt(starts, end);
    const parts = put.split("\n");
    const own = isUniform || parts.length === 1
      ? null
      : await endsFor(file, line, column, text.slice(start, end).split("\n"), parts);
    for (const [index, part] of parts.slice(0, -1).entries()) {
      lines.push(open + part);
      ends.push(own?.[index] ?? file.ends[0] ?? "\n");
      open = "";
    }
    open += parts.at(-1);
    [line, column] = [last, end - starts[last]!];
  }
  keepUntil(starts.at(-1)! + file.lines.at(-1)!.length);
  lines.push(open);
  return { ...file, lines, ends };
}

/** Resolves to the line ends of new lines in a text whose line ends differ. */
async function endsFor(
  { ends }: Lines,
  first: number,
  column: number,
  old: readonly string[],
  now: readonly string[],
): Promise<string[]> {
  const above = column === 0 ? ends[first - 1] : undefined;
  const found: string[] = [];
  const add = (end: string | undefined) =>
    found.push(end ?? found.at(-1) ?? above ?? ends[first] ?? ends[first - 1] ?? "\n");
  let at = 0;
  for (const change of [...await changesBetween(old, now), { at: old.length, count: 0, put: 0 }]) {
    while (at < change.at) add(ends[first + at++]);
    for (let index = 0; index < change.put; index++) {
      add(change.count === 0 ? undefined : ends[first + at + Math.min(index, change.count - 1)]);
    }
    at += change.count;
  }
  return found;
}
