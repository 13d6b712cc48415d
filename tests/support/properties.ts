/** Number and seed of the random cases of property tests, from the environment or fixed. */

const SEED = 20_261_121;

/**
 * Returns options of `fc.assert`: `few` cases; `many` with `PROPERTY_RUNS=many`, as `deno task test` sets it; or the number that
 * `PROPERTY_RUNS` gives. The seed is fixed unless `PROPERTY_SEED` gives another one; fast-check prints it with a failure.
 */
export function propertyOptions(few: number, many: number): { numRuns: number; seed: number } {
  const runs = Deno.env.get("PROPERTY_RUNS") ?? "";
  const numRuns = runs === "" ? few : runs === "many" ? many : Number(runs);
  if (!Number.isSafeInteger(numRuns) || numRuns < 1) {
    throw new RangeError(
      `Cannot read PROPERTY_RUNS: must be "many" or a whole number above 0: received ${runs}`,
    );
  }
  return { numRuns, seed: Number(Deno.env.get("PROPERTY_SEED") ?? SEED) };
}
