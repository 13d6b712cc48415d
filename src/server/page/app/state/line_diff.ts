/** The difference of two texts by lines. */

/** Lines of context around a change. */
const CONTEXT = 2;
/** Pairs of lines that are compared at most; beyond it, all lines in between count as replaced. */
const MAX_PAIRS = 4_000_000;

/** Returns the changes from one text to another, each line with a sign as in a unified diff; "" if equal. */
export function lineDiff(from: string, to: string): string {
  const [a, b] = [from.trimEnd().split("\n"), to.trimEnd().split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let [i, j] = [a.length, b.length];
  while (i > start && j > start && a[i - 1] === b[j - 1]) i--, j--;
  if (i === start && j === start) return "";
  const lines = [
    ...a.slice(0, start).map((line) => ` ${line}`),
    ...changes(a.slice(start, i), b.slice(start, j)),
    ...a.slice(i).map((line) => ` ${line}`),
  ];
  const near = (at: number) =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some((line) => line[0] !== " ");
  const shown = lines.map((line, at) => near(at) ? line : "@@");
  return shown.filter((line, at) => line !== "@@" || shown[at - 1] !== "@@").join("\n");
}

/** Returns the lines of two texts by a longest common subsequence. */
function changes(a: readonly string[], b: readonly string[]): string[] {
  const width = b.length + 1;
  const common = new Uint32Array(a.length * b.length > MAX_PAIRS ? 0 : (a.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  if (common.length > 0) {
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
      }
    }
  }
  const lines: string[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) lines.push(` ${a[i++]}`), j++;
    else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) lines.push(`-${a[i++]}`);
    else lines.push(`+${b[j++]}`);
  }
  return lines;
}
