/**
 * Returns the known name nearest to a misspelt `name`, with an edit distance of at most `max_distance`, or
 * undefined. An edit inserts, deletes or replaces a letter, or swaps two neighbours.
 */
export function didYouMean(name: string, known: Iterable<string>, max_distance = 2): string | undefined {
  let best: string | undefined;
  let bestDistance = max_distance + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue;
    const distance = editDistance(name, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/**
 * Returns the optimal string alignment distance: Levenshtein's, but swapping two neighbours counts as one
 * edit.
 */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, before[j - 2]! + 1);
      }
      row.push(cost);
    }
    before = above;
    above = row;
  }
  return above[b.length]!;
}
