/** Taking times, saying them: medians, a table for people, one JSON line for machines. Knows nothing of what is measured. */

/** One cell of a table. */
export type Cell = string | number;

/** Returns the middle value; the mean of the two middle ones for an even count. @throws {RangeError} when there is none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  if (upper === undefined) throw new RangeError("Cannot take a median: there must be a value: received none");
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** Resolves to the milliseconds that `run` took. */
export async function timed(run: () => unknown): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

/**
 * Times several things in turn, `rounds` times over, so that a slow moment of the machine hits all of them; resolves to the
 * median milliseconds of each. One round before, to warm up, is not counted.
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

/** Returns a number with three significant digits, large ones without a fraction. */
export function rounded(value: number): number {
  if (!Number.isFinite(value)) return value;
  return Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(3));
}

/** Returns a table as text: the first column to the left, the others to the right. */
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

/** Writes the closing line of a bench: one JSON object, its numbers rounded. */
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
