/** Random numbers that are the same in every run: the generator of texts must give the same texts again. */

/** A source of random choices. */
export interface Random {
  /** A number from 0 up to 1. */
  next(): number;
  /** A whole number from `least` to `most`, both included. */
  int(least: number, most: number): number;
  /** One of the items. */
  pick<T>(items: readonly T[]): T;
}

/** Returns the random numbers of a seed (mulberry32). */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (least: number, most: number) => least + Math.floor(next() * (most - least + 1));
  return { next, int, pick: (items) => items[int(0, items.length - 1)]! };
}
