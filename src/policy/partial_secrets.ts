/** Where text may be cut without cutting a secret in two: for text that arrives in pieces (threats.md T21). */

/**
 * Returns a function that tells how many characters at the end of a text may be the beginning of one of `needles`, those of
 * whole needles that reach over that place included: 0 when the text may go out as it is. What may go out never ends within a
 * needle, whatever follows.
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

/** Whether one of sorted needles begins with `part`; what does stands where `part` itself would. */
function begins(sorted: readonly string[], part: string): boolean {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < part) low = middle + 1;
    else high = middle;
  }
  for (let index = low; index < sorted.length && sorted[index]!.startsWith(part); index++) {
    if (sorted[index]!.length > part.length) return true; // a whole one needs no more text
  }
  return false;
}

/**
 * Moves a cut before every needle that lies across it. Needles that overlap without end, such as `aaaaaa` in a row of `a`,
 * would move it for ever: beyond four of the longest it stays, and what is before it is redacted as far as it is known.
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
