/**
 * Marks the frozen plain data that `toFrozenObject` creates. Marked data is recognised without a walk: it is
 * not copied, frozen or measured again, and not searched again for the same secrets, however many events,
 * messages and requests contain it. The tokens of a marked message are counted once.
 */
import { Object } from "./primordials.ts";

/** A constructor that returns its argument, so that a derived class adds its private fields to any object. */
export class Argument {
  constructor(value: object) {
    return value;
  }
}

/** A power of two above the most levels of marked data. */
const LEVELS = 128;

/** perf: private fields, because a `WeakMap` takes ten times as long and costs the garbage collector. */
class Mark extends Argument {
  /** Estimated size in bytes × {@link LEVELS} + levels; one number, to keep marks small. */
  #size: number;
  /** Number of the search that found no secret in it; 0 = none. */
  #clean_in = 0;
  /** Estimated tokens of a message; -1 = not counted. */
  #tokens = -1;

  constructor(value: object, bytes: number, levels: number) {
    super(value);
    this.#size = bytes * LEVELS + levels;
  }

  static isIn(value: object): value is Mark {
    return #size in value;
  }

  static bytesOf(mark: Mark): number {
    return (mark.#size - Mark.levelsOf(mark)) / LEVELS;
  }

  static levelsOf(mark: Mark): number {
    return mark.#size & (LEVELS - 1);
  }

  static isCleanIn(mark: Mark, search: number): boolean {
    return mark.#clean_in === search;
  }

  static setCleanIn(mark: Mark, search: number): void {
    mark.#clean_in = search;
  }

  static tokensOf(mark: Mark): number {
    return mark.#tokens;
  }

  static setTokensOf(mark: Mark, tokens: number): void {
    mark.#tokens = tokens;
  }
}

/**
 * Freezes plain data whose lists and objects are all marked, and marks it.
 *
 * @param bytes Estimated size as JSON: `estimateJsonBytes`.
 * @param levels Objects and lists within each other, this one included: at most 64.
 */
export function freezeMarked<T extends object>(value: T, bytes: number, levels: number): T {
  new Mark(value, bytes, levels); // before it is frozen: engines may refuse private fields of frozen objects
  return Object.freeze(value) as T;
}

/** Returns whether `toFrozenObject` created this data. */
export function isMarked(value: object): boolean {
  return Mark.isIn(value);
}

/** Returns the estimated size of marked data as JSON in bytes; -1 for data without a mark. */
export function markedBytes(value: object): number {
  return Mark.isIn(value) ? Mark.bytesOf(value) : -1;
}

/** Returns how many objects and lists of marked data are within each other, itself included; 0 without a mark. */
export function markedLevels(value: object): number {
  return Mark.isIn(value) ? Mark.levelsOf(value) : 0;
}

/** Returns whether {@link setClean} was the last search of this data. */
export function isClean(value: object, search: number): boolean {
  return Mark.isIn(value) && Mark.isCleanIn(value, search);
}

/** Notes that a search found no secret in marked data; does nothing for other data. */
export function setClean(value: object, search: number): void {
  if (Mark.isIn(value)) Mark.setCleanIn(value, search);
}

/** Returns the number of {@link setTokens}; -1 without one. */
export function knownTokens(value: object): number {
  return Mark.isIn(value) ? Mark.tokensOf(value) : -1;
}

/** Notes the estimated tokens of a marked message; does nothing for other data. */
export function setTokens(value: object, tokens: number): void {
  if (Mark.isIn(value)) Mark.setTokensOf(value, tokens);
}
