/** Markdown for a terminal: paragraphs and tables in its width. */
import { wrapText } from "./format.ts";

/** A part of a page: code as it is, the rows of a table, or a text of one paragraph, item or heading. */
interface Block {
  readonly kind: "code" | "table" | "text";
  readonly lines: string[];
}

const FENCE = /^ *```/;
/** Indentation of a text, with the mark of an item or a quotation. */
const MARGIN = /^ *(?:(?:[->*]|\d+\.) +)?/;

/**
 * Returns Markdown whose paragraphs fit a width. A table that does not fit becomes a list: the first cell of
 * each row, and below it the others, with their headings if there are several. Code is not changed.
 *
 * @param columns Width of the terminal.
 */
export function fitMarkdown(markdown: string, columns: number): string {
  return blocksOf(markdown).flatMap(({ kind, lines }) => {
    if (kind === "text") return fitText(lines, columns);
    return kind === "table" && lines.some(({ length }) => length > columns)
      ? fitTable(lines, columns)
      : lines;
  }).join("\n");
}

function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  let fenced = false;
  for (const line of markdown.split("\n")) {
    const is_fence = FENCE.test(line);
    const kind = fenced || is_fence ? "code" : line.startsWith("|") ? "table" : "text";
    if (is_fence) fenced = !fenced;
    const last = blocks.at(-1);
    if (last?.kind === kind && (kind !== "text" || continues(last.lines[0]!, line))) last.lines.push(line);
    else blocks.push({ kind, lines: [line] });
  }
  return blocks;
}

/** Returns whether a line belongs to the text that begins with the line `first`. */
function continues(first: string, line: string): boolean {
  return first !== "" && line !== "" && !first.startsWith("#") && !/^ *(?:[-*] |\d+\. |#)/.test(line);
}

function fitText(lines: readonly string[], columns: number): string[] {
  const [margin = ""] = MARGIN.exec(lines[0]!)!; // a block has a line; every line has a margin
  const text = lines.map((line) => line.trim()).join(" ").slice(margin.trimStart().length);
  return wrapText(text, columns - margin.length)
    .map((line, index) => `${index === 0 ? margin : " ".repeat(margin.length)}${line}`);
}

function fitTable(rows: readonly string[], columns: number): string[] {
  const [headings = [], , ...entries] = rows.map(cellsOf);
  return entries.flatMap(([first = "", ...others]) => [
    first,
    ...others.flatMap((cell, index) => {
      const text = others.length > 1 ? `${headings[index + 1]}: ${cell}` : cell;
      return cell === "" ? [] : wrapText(text, columns - 4).map((line) => `    ${line}`);
    }),
  ]);
}

function cellsOf(row: string): string[] {
  return row.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim().replaceAll("\\|", "|"));
}
