/** Measures times and prints them: medians, a table, one JSON line. */

/** One cell of a table. */
export type Cell = string | number;

/**
 * Returns the middle value; the mean of the two middle ones for an even count. @throws {RangeError} for an
 * empty list.
 */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  if (upper === undefined) throw new RangeError("Cannot compute the median of an empty list");
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** Resolves to the milliseconds that `run` took. */
export async function timed(run: () => unknown): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

/**
 * Times several functions in turn for `rounds` rounds, so that a slow moment of the machine affects all of
 * them. Resolves to the median milliseconds of each. A first round warms up and is not counted.
 */
export async function compare<Name extends string>(
  rounds: number,
  runs: Record<Name, () => unknown>,
): Promise<Record<Name, number>> {
  const names = Object.keys(runs) as Name[];
  const times = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      const ms = await timed(runs[name]);
      if (round >= 0) times.get(name)?.push(ms);
    }
  }
  const medians = names.map((name) => [name, median(times.get(name) ?? [])]);
  return Object.fromEntries(medians) as Record<Name, number>; // one entry per name
}

/** Returns a number rounded to three significant digits, or to an integer from 1,000 on. */
export function rounded(value: number): number {
  if (!Number.isFinite(value)) return value;
  return Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(3));
}

/** Returns a table as text, with the first column aligned left and the others right. */
export function tableOf(heading: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const lines = [heading, ...rows].map((row) =>
    row.map((cell) => typeof cell === "number" ? String(rounded(cell)) : cell)
  );
  const widths = heading.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  return lines.map((line) =>
    line.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
    ).join("  ").trimEnd()
  ).join("\n");
}

/** Writes a line to stdout. */
export function print(line = ""): void {
  const bytes = new TextEncoder().encode(`${line}\n`);
  for (let written = 0; written < bytes.length;) written += Deno.stdout.writeSync(bytes.subarray(written));
}

/** Prints the last line of a bench: one JSON object with rounded numbers. */
export function report(bench: string, figures: Record<string, unknown>): void {
  const host = { deno: Deno.version.deno, cores: navigator.hardwareConcurrency };
  print();
  print(
    JSON.stringify(
      { bench, ...figures, ...host },
      (_, value) => typeof value === "number" ? rounded(value) : value,
    ),
  );
}
