/** Editing of YAML as text: indentation, places, marks at lines. Knows no DOM. */
import type { Finding } from "../state/plan_draft.ts";
import { codeOf, CONTROLS } from "../ui/controls.ts";

/** Most hidden characters that are reported. */
const MAX_HIDDEN = 20;

/** Returns warnings about characters that an editor does not show: they may hide what a plan says. */
export function hiddenIn(text: string): Finding[] {
  return text.matchAll(CONTROLS).take(MAX_HIDDEN).map(({ 0: character, index }): Finding => {
    const line = lineAt(text, index);
    return {
      level: "warning",
      path: "",
      message: `The line has the invisible character ${codeOf(character)}`,
      line,
      column: index - offsetOf(text, line) + 1,
    };
  }).toArray();
}

/** A change of a text: `text` replaces what is between two offsets, then the selection is set. */
export interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
  readonly selection: readonly [start: number, end: number];
}

/**
 * Returns what Enter inserts: a line break and the indentation of the line above, deeper after a colon, and
 * that of the fields after a dash with a field.
 */
export function newLine(text: string, start: number, end: number): Edit {
  const line = text.slice(text.lastIndexOf("\n", start - 1) + 1, start);
  const [, indentation = "", dash = ""] = /^([ ]*)((?:- +)*)/.exec(line)!;
  const deeper = /:\s*([|>][+-]?)?\s*$/.test(line) ? 2 : 0;
  const fields = /^[ ]*(?:- +)+[^\s:]+:(\s|$)/.test(line) ? dash.length : 0;
  const inserted = `\n${" ".repeat(indentation.length + fields + deeper)}`;
  return {
    from: start,
    to: end,
    text: inserted,
    selection: [start + inserted.length, start + inserted.length],
  };
}

/** Returns the lines of a selection two spaces deeper, or less deep; null when nothing changes. */
export function indent(text: string, start: number, end: number, deeper: boolean): Edit | null {
  const from = text.lastIndexOf("\n", start - 1) + 1;
  const next = text.indexOf("\n", Math.max(start, end - 1));
  const to = next < 0 ? text.length : next;
  const old = text.slice(from, to);
  const lines = old.split("\n").map((line) => deeper ? line && `  ${line}` : line.replace(/^ {1,2}/, ""));
  const changed = deeper && old === "" ? "  " : lines.join("\n");
  if (changed === old) return null;
  const first = changed.split("\n", 1)[0]!.length - old.split("\n", 1)[0]!.length;
  const place = (at: number, by: number) => Math.max(from, at + by);
  return {
    from,
    to,
    text: changed,
    selection: [place(start, first), place(end, changed.length - old.length)],
  };
}

/** Returns the number of the line of an offset, from 1. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

/** Returns the offset of a line and column, both from 1; the nearest one if the text has no such place. */
export function offsetOf(text: string, line: number, column = 1): number {
  let start = 0;
  for (let rest = line; rest > 1; rest--) {
    const at = text.indexOf("\n", start);
    if (at < 0) return text.length;
    start = at + 1;
  }
  const end = text.indexOf("\n", start);
  return Math.min(start + column - 1, end < 0 ? text.length : end);
}

/** What the gutter shows at one line. */
export interface LineMark {
  readonly line: number;
  readonly level: Finding["level"];
  readonly text: string;
}

/** Returns one mark for each line with findings: an error if one of them is. */
export function marksOf(findings: readonly Finding[]): LineMark[] {
  const marks = new Map<number, LineMark>();
  for (const { line, level, message, hint } of findings) {
    if (line === undefined) continue;
    const known = marks.get(line);
    const text = hint ? `${message}: ${hint}` : message;
    marks.set(line, {
      line,
      level: known?.level === "error" ? "error" : level,
      text: known ? `${known.text}\n${text}` : text,
    });
  }
  return [...marks.values()];
}
