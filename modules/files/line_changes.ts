/** Which lines differ between two texts, and how that is shown to a person and to a model. */

/** Lines that are replaced: `count` lines from `at` on, by `put` lines of the new text. */
export interface LineChange {
  readonly at: number;
  readonly count: number;
  readonly put: number;
}

/** Lines to delete and to add that are searched for; texts that differ more are one change. */
const MAX_EDIT_LENGTH = 1000;

/** Resolves to the changes that lead from one list of lines to another, in order. */
export async function changesBetween(old: readonly string[], now: readonly string[]): Promise<LineChange[]> {
  const shorter = Math.min(old.length, now.length);
  let start = 0;
  while (start < shorter && old[start] === now[start]) start++;
  let end = 0;
  while (end < shorter - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  const [from, to] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  if (from.length === 0 && to.length === 0) return [];
  const whole = [{ at: start, count: from.length, put: to.length }];
  if (from.length === 0 || to.length === 0) return whole;
  const { diffArrays } = await import("diff");
  const parts = diffArrays(from, to, { maxEditLength: MAX_EDIT_LENGTH, oneChangePerToken: true });
  if (!parts) return whole;
  return changesOf(parts.map(({ added, removed }) => added ? "+" : removed ? "-" : " "), start);
}

/** Returns the changes of lines that are kept, deleted or added; `at`: the first line. */
export function changesOf(marks: readonly (" " | "-" | "+")[], at = 0): LineChange[] {
  const changes: { at: number; count: number; put: number }[] = [];
  for (const [index, mark] of marks.entries()) {
    if (mark !== " " && (marks[index - 1] ?? " ") === " ") changes.push({ at, count: 0, put: 0 });
    if (mark === "+") changes.at(-1)!.put++;
    else at++;
    if (mark === "-") changes.at(-1)!.count++;
  }
  return changes;
}

const CONTEXT_LINES = 3;
const MAX_DIFF_CHARS = 20_000;
const MAX_LINE_CHARS = 500;
/** Lines of changes that a model gets back: it wrote them, and may read more. */
export const MAX_NUMBERED = 40;
const UNENDED = "\\ No newline at end of file";

/** A change of a file, as it is shown. */
export interface ShownChange {
  /** For a person: a unified diff without file names; empty when no line differs. */
  readonly diff: string;
  /** For a model: the first of the new lines around each change, numbered. */
  readonly numbered: readonly string[];
  /** How many more there are. */
  readonly left: number;
}

/** Resolves to what leads from one list of lines to another; the last line of a list has no line end. */
export async function shownChange(before: readonly string[], after: readonly string[]): Promise<ShownChange> {
  const [old, now] = [endedLines(before), endedLines(after)];
  const diff: string[] = [];
  const numbered: string[] = [];
  let [chars, left] = [0, 0];
  const add = (sign: string, line: string, number: number) => {
    if (chars <= MAX_DIFF_CHARS) {
      chars += diff[diff.push(sign + line.slice(0, MAX_DIFF_CHARS)) - 1]!.length + 1;
    }
    if (sign === "-" || line === UNENDED) return;
    if (numbered.length < MAX_NUMBERED) numbered.push(numberedLine(line, number));
    else left++;
  };
  let longer = 0; // lines that the new text has more, up to a place
  const changes = await changesBetween(old, now);
  for (let index = 0; index < changes.length;) {
    let at = Math.max(0, changes[index]!.at - CONTEXT_LINES);
    const head = diff.push("") - 1;
    const [from, to] = [at, at + longer];
    const keep = (end: number) => {
      for (; at < end; at++) add(" ", old[at]!, at + longer + 1);
    };
    do {
      const { at: place, count, put } = changes[index++]!;
      keep(place);
      for (; at < place + count; at++) add("-", old[at]!, 0);
      longer -= count;
      for (let more = put; more > 0; more--, longer++) add("+", now[at + longer]!, at + longer + 1);
    } while (index < changes.length && changes[index]!.at - at <= 2 * CONTEXT_LINES);
    keep(Math.min(old.length, at + CONTEXT_LINES));
    const range = (first: number, count: number) => `${count === 0 ? first : first + 1},${count}`;
    diff[head] = `@@ -${range(from, at - from)} +${range(to, at + longer - to)} @@`;
  }
  const text = diff.join("\n");
  return {
    diff: text.length <= MAX_DIFF_CHARS ? text : `${text.slice(0, MAX_DIFF_CHARS)}\n[… diff cut]`,
    numbered,
    left,
  };
}

/** Returns a line with its number, as models read it. */
export function numberedLine(line: string, number: number, maxChars = MAX_LINE_CHARS): string {
  return `${String(number).padStart(6)}\t${line.length > maxChars ? `${line.slice(0, maxChars)} […]` : line}`;
}

function endedLines(lines: readonly string[]): readonly string[] {
  return lines.at(-1) === "" ? lines.slice(0, -1) : [...lines, UNENDED];
}
