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

  static isIn(value: object): boolean {
    return #size in value;
  }

  static bytesOf(value: object): number {
    return #size in value ? (value.#size - (value.#size & (LEVELS - 1))) / LEVELS : -1;
  }

  static levelsOf(value: object): number {
    return #size in value ? value.#size & (LEVELS - 1) : 0;
  }

  static isCleanIn(value: object, search: number): boolean {
    return #size in value && value.#clean_in === search;
  }

  static setCleanIn(value: object, search: number): void {
    if (#size in value) value.#clean_in = search;
  }

  static tokensOf(value: object): number {
    return #size in value ? value.#tokens : -1;
  }

  static setTokensOf(value: object, tokens: number): void {
    if (#size in value) value.#tokens = tokens;
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
export const isMarked: (value: object) => boolean = Mark.isIn;

/** Returns the estimated size of marked data as JSON in bytes; -1 for data without a mark. */
export const markedBytes: (value: object) => number = Mark.bytesOf;

/**
 * Returns how many objects and lists of marked data are within each other, itself included; 0 without a mark.
 */
export const markedLevels: (value: object) => number = Mark.levelsOf;

/** Returns whether {@link setClean} was the last search of this data. */
export const isClean: (value: object, search: number) => boolean = Mark.isCleanIn;

/** Notes that a search found no secret in marked data; does nothing for other data. */
export const setClean: (value: object, search: number) => void = Mark.setCleanIn;

/** Returns the number of {@link setTokens}; -1 without one. */
export const knownTokens: (value: object) => number = Mark.tokensOf;

/** Notes the estimated tokens of a marked message; does nothing for other data. */
export const setTokens: (value: object, tokens: number) => void = Mark.setTokensOf;
