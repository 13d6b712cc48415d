/**
 * How many of its cases a test tries: few by default; all with `PROPERTY_RUNS=many`, as `deno task test` sets
 * it; all, and many more random ones, with `PROPERTY_RUNS=most`; or the number of random cases that
 * `PROPERTY_RUNS` gives.
 */
const RUNS = Deno.env.get("PROPERTY_RUNS") ?? "";

const SEED = 20_261_121;

/** Returns options of `fc.assert`; fast-check prints the seed of a failure, which `PROPERTY_SEED` repeats. */
export function propertyOptions(few: number, many: number, most: number): { numRuns: number; seed: number } {
  const numRuns = RUNS === "" ? few : RUNS === "many" ? many : RUNS === "most" ? most : Number(RUNS);
  if (!Number.isSafeInteger(numRuns) || numRuns < 1) {
    throw new RangeError(
      `Cannot read PROPERTY_RUNS: must be "many", "most" or a whole number above 0: received ${RUNS}`,
    );
  }
  return { numRuns, seed: Number(Deno.env.get("PROPERTY_SEED") ?? SEED) };
}

/**
 * Returns `few` of the cases by default, evenly spread, with the first and the last one; all of them with
 * `PROPERTY_RUNS`.
 */
export function someOf<T>(cases: readonly T[], few: number): T[] {
  if (RUNS !== "" || cases.length <= few) return [...cases];
  return Array.from(
    { length: few },
    (_, index) => cases[Math.round(index * (cases.length - 1) / (few - 1))]!,
  );
}
