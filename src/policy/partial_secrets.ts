/** Finds where streamed text can be cut without splitting a secret. */

/**
 * Returns a function that counts the characters at the end of a text that may be the beginning of one of
 * `needles`. The count includes whole needles across that position, and is 0 if the whole text can be
 * emitted. The emitted part never ends within a needle.
 */
export function createPartialSecretFilter(needles: readonly string[]): (text: string) => number {
  const sorted = [...needles].sort();
  const firsts = new Set(sorted.map((needle) => needle[0]));
  const longest = sorted.reduce((most, { length }) => Math.max(most, length), 0);

  return function cut(text) {
    if (longest === 0) return 0;
    let start = Math.max(0, text.length - longest + 1);
    while (start < text.length && !(firsts.has(text[start]) && begins(sorted, text.slice(start)))) start++;
    return text.length - wholeBefore(needles, text, start, longest);
  };
}

/**
 * Returns true if one of the sorted needles begins with `part`. Binary search: such a needle is at the
 * position of `part` itself.
 */
function begins(sorted: readonly string[], part: string): boolean {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < part) low = middle + 1;
    else high = middle;
  }
  for (let index = low; index < sorted.length && sorted[index]!.startsWith(part); index++) {
    if (sorted[index]!.length > part.length) return true; // a complete needle needs no more text
  }
  return false;
}

/**
 * Moves a cut before every needle that crosses it. Overlapping needles such as `aaaaaa` in a row of `a`
 * would move it forever, so it stops after four lengths of the longest needle. The text before the cut is
 * then redacted as far as the needles are known.
 */
function wholeBefore(needles: readonly string[], text: string, cut: number, longest: number): number {
  const least = text.length - 4 * longest;
  let start = cut;
  for (let moved = true; moved && start > least;) {
    moved = false;
    for (const needle of needles) {
      const at = text.indexOf(needle, Math.max(0, start - needle.length + 1));
      if (at === -1 || at >= start) continue;
      start = at;
      moved = true;
    }
  }
  return start;
}
