/** Least squares with bounds and a ridge, by coordinate descent on the normal equations. Knows nothing of tokens. */

/**
 * Returns the values ≥ 0 that minimise the sum of `importance` × (row · values ÷ wanted − 1)², plus `ridge` × (value − prior)²
 * for each value (both in hundredths of a token).
 */
export function solve(
  rows: readonly Float64Array[],
  wanted: readonly number[],
  importance: readonly number[],
  prior: readonly number[],
  ridge: number,
): number[] {
  const size = prior.length;
  const gram = Array.from({ length: size }, () => new Float64Array(size));
  const target = new Float64Array(size);
  for (const [index, row] of rows.entries()) {
    const used = [...row.keys()].filter((place) => row[place] !== 0);
    const scale = 1 / wanted[index]!;
    for (const one of used) {
      const left = row[one]! * scale * importance[index]!;
      target[one]! += left;
      for (const other of used) gram[one]![other]! += left * row[other]! * scale;
    }
  }
  const unit = ridge / 10_000;
  const values = [...prior];
  for (let sweep = 0; sweep < 3000; sweep++) {
    let moved = 0;
    for (let one = 0; one < size; one++) {
      const line = gram[one]!;
      let rest = target[one]! + unit * prior[one]!;
      for (let other = 0; other < size; other++) if (other !== one) rest -= line[other]! * values[other]!;
      const best = Math.min(400, Math.max(0, rest / (line[one]! + unit)));
      moved = Math.max(moved, Math.abs(best - values[one]!));
      values[one] = best;
    }
    if (moved < 0.02) break;
  }
  return values;
}
