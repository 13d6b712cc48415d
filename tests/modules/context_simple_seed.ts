/** Seed and number of random histories, from the environment or fixed; printed, so that a run can be repeated. */

const SEED = 20_261_121;

/** Returns options for `fc.assert`: `usual` runs unless PROPERTY_RUNS says how many, the seed of PROPERTY_SEED or a fixed one. */
export function propertyOptions(usual: number): { numRuns: number; seed: number } {
  const seed = Number(Deno.env.get("PROPERTY_SEED") ?? SEED);
  const numRuns = Number(Deno.env.get("PROPERTY_RUNS") ?? usual);
  Deno.stdout.writeSync(new TextEncoder().encode(`${numRuns} random histories, seed ${seed}\n`));
  return { numRuns, seed };
}
