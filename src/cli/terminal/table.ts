/** Rows of text as aligned columns. */

/** Returns rows with each column as wide as its widest cell, two spaces between, no space at the end of a line. */
export function tableText(rows: readonly (readonly string[])[], indent = ""): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, [...cell].length);
    }
  }
  const pad = (cell: string, column: number) => cell + " ".repeat((widths[column] ?? 0) - [...cell].length);
  return rows.map((row) => `${indent}${row.map(pad).join("  ")}`.trimEnd() + "\n").join("");
}
