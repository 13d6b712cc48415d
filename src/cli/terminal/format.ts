/** Text for terminals: colours, aligned columns, display width, line wrapping. */
import type { Output } from "./io.ts";

/** Functions that colour text. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

/** Returns the style of an output (`NO_COLOR`: no-color.org). */
export function styleOf({ color }: Pick<Output, "color">): Style {
  const paint = (on: number, off: number) => (text: string) =>
    color ? `\x1b[${on}m${text}\x1b[${off}m` : text;
  return {
    bold: paint(1, 22),
    dim: paint(2, 22),
    red: paint(31, 39),
    green: paint(32, 39),
    yellow: paint(33, 39),
    cyan: paint(36, 39),
  };
}

/** Returns a text as one word of a shell command. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns an answer as JSON: indented for a person, on one line for a program. */
export function jsonText(answer: unknown, { terminal }: Pick<Output, "terminal">): string {
  return `${JSON.stringify(answer, null, terminal ? 2 : 0)}\n`;
}

/** Most names of {@link listText}. */
const MAX_NAMES = 8;

/** Returns `a, b and c`; of many names the first ones and their number. */
export function listText(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES);
  const more = names.length - shown.length;
  const words = more > 0 ? [...shown, `${more} more`] : shown;
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** Returns `1 file`, `2 files`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Returns rows as aligned columns with two spaces between them and no trailing spaces.
 * @param paint Colours a cell that is aligned.
 */
export function tableText(
  rows: readonly (readonly string[])[],
  indent = "",
  paint: (cell: string, column: number, row: number) => string = (cell) => cell,
): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, displayWidth(cell));
    }
  }
  return rows.map((row, index) => {
    const last = row.findLastIndex((cell) => cell !== "");
    const cells = row.slice(0, last + 1).map((cell, column) => {
      const spaces = column === last ? 0 : widths[column]! - displayWidth(cell); // it has a width
      return paint(cell + " ".repeat(spaces), column, index);
    });
    return `${indent}${cells.join("  ")}`.trimEnd() + "\n";
  }).join("");
}

/** Writes a message behind its label; at a terminal with its words wrapped. */
export function writeLabelled(output: Output, label: "note" | "warning", text: string): void {
  const line = `${styleOf(output).yellow(`${label}:`)} ${text}`;
  output.write(`${output.terminal ? wrapText(line, output.columns()).join("\n") : line}\n`);
}

/** Characters of width 2: wide ones by Unicode's East Asian Width (UAX 11), and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const ZERO = /\p{Mn}|\p{Me}|\p{Cf}/u;

/**
 * Returns text shortened to a number of columns; shortened text ends with `…`. The text must not contain
 * colour codes.
 */
export function cutToWidth(text: string, columns: number): string {
  let width = 0;
  let kept = ""; // what leaves a column for the …
  for (const point of text) {
    width += widthOf(point);
    if (width > columns) return columns < 1 ? "" : `${kept}…`;
    if (width < columns) kept += point;
  }
  return text;
}

function widthOf(point: string): number {
  return ZERO.test(point) ? 0 : WIDE.test(point) ? 2 : 1;
}

/** What {@link styleOf} adds. */
// deno-lint-ignore no-control-regex -- the codes of the colours
const COLOURS = /\x1b\[\d+m/g;

function displayWidth(text: string): number {
  let width = 0;
  for (const point of text.replace(COLOURS, "")) width += widthOf(point);
  return width;
}

/**
 * Returns text as lines of a maximum width in columns, broken at spaces. Longer words are not broken, for
 * copying. The text may have colours.
 */
export function wrapText(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && displayWidth(line) + 1 + displayWidth(word) > columns) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
