/**
 * What a character costs in hundredths of a token, by what it is and what it follows. The numbers are written by
 * `tests/bench/estimator/fit.ts`: least squares against o200k, see there for the texts. Data only.
 */
import type { CharClass } from "./token_classes.ts";

/** What stood before a character. `mark` is one ASCII mark, `marks` two or more, `line` also stands for indentation. */
export type Before = "space" | "line" | "letter" | "digit" | "mark" | "marks" | "script";

/** Where a word began: after one space, after a mark or at the start of a line, inside another word. */
export type WordStart = "spaced" | "marked" | "inner";

/** Han characters by what o200k makes of them: part of a longer token mostly, sometimes, a token each, several tokens. */
export type HanClass = "han_common" | "han_usual" | "han_single" | "han";

type Costs = Readonly<Partial<Record<CharClass, number>>>;
type NoiseCosts = Readonly<Record<"lower" | "upper" | "digit", number>>;

/** All costs, in hundredths of a token. */
export interface Weights {
  /** Cost of an ASCII character that opens a run, by what stood before it. */
  readonly ENTER: Readonly<Record<Before, Costs>>;
  /** Cost of any other character that opens a run: after one space, another script, Han, kana, anything else. */
  readonly ENTER_SCRIPT: Readonly<Record<"space" | "script" | "han" | "kana" | "other", Costs>>;
  /** Cost of the second, third, … character of a run of one class; the last number holds for all that follow. */
  readonly CONTINUE: Readonly<Partial<Record<CharClass, readonly number[]>>>;
  /** Cost of a Han character (inner key) after another (outer key). */
  readonly HAN: Readonly<Record<HanClass, Readonly<Record<HanClass, number>>>>;
  /** Cost of a repeated mark, the first, second, … time. */
  readonly REPEAT: readonly number[];
  /** Cost of the digits of a number: second, third, and the first of the next three (o200k cuts numbers in threes). */
  readonly DIGITS: readonly number[];
  /** Cost of the second, third, … letter of a word, by where the word began; the last number holds for all that follow. */
  readonly WORD: Readonly<Record<WordStart, readonly number[]>>;
  /** Costs of single moves. `hump` is a capital inside a word, `after_capitals` a small letter after two capitals or more. */
  readonly MOVES: Readonly<
    Record<
      | "hump"
      | "after_capitals"
      | "accented_first"
      | "accented_in_word"
      | "cyrillic_other_first"
      | "cyrillic_other_marked"
      | "cyrillic_other_in_word"
      | "low_surrogate"
      | "mark_after_noise"
      | "unforeseen",
      number
    >
  >;
  /**
   * Letters and digits in an order no word has (base64, hexadecimal, ids): cost of one after another; `any` is the step in.
   * A run counts as noise from its {@link NOISE_FLIPS}th change from small to capital or between letter and digit.
   */
  readonly NOISE: Readonly<Record<"any" | "lower" | "upper" | "digit", NoiseCosts>>;
}

/** Changes of case or kind after which a run is noise; `getMessagesForRequest` has three. */
export const NOISE_FLIPS = 4;

// deno-fmt-ignore -- tables, written by the fitting script from here to the end
/** The fitted costs. */
export const WEIGHTS: Weights = {
  ENTER: {
    space: { lower: 0, upper: 41, digit: 204, newline: 127, tab: 47, quote: 36, open: 38, close: 9, stop: 76, underscore: 95, dash: 91, slash: 77, operator: 49 },
    line: { lower: 46, upper: 57, digit: 144, space: 61, newline: 60, tab: 95, quote: 149, open: 101, close: 35, stop: 88, underscore: 85, dash: 77, slash: 0, operator: 28 },
    letter: { digit: 113, space: 0, newline: 116, tab: 100, quote: 67, open: 0, close: 110, stop: 96, underscore: 42, dash: 80, slash: 10, operator: 91 },
    digit: { lower: 90, upper: 121, space: 17, newline: 75, tab: 0, quote: 107, open: 103, close: 107, stop: 77, underscore: 62, dash: 120, slash: 151, operator: 3 },
    mark: { lower: 45, upper: 80, digit: 131, space: 50, newline: 40, tab: 139, quote: 0, open: 0, close: 51, stop: 39, underscore: 11, dash: 40, slash: 35, operator: 30 },
    marks: { lower: 83, upper: 45, digit: 109, space: 8, newline: 41, tab: 78, quote: 0, open: 0, close: 13, stop: 44, underscore: 115, dash: 0, slash: 37, operator: 173 },
    script: { lower: 188, upper: 62, digit: 99, space: 41, newline: 124, tab: 96, quote: 64, open: 118, close: 0, stop: 72, underscore: 44, dash: 0, slash: 56, operator: 70 },
  },
  ENTER_SCRIPT: {
    space: { control: 100, greek: 0, cyrillic: 0, arabic: 47, indic: 0, han_common: 126, han_usual: 153, han_single: 249, han: 139, kana: 58, katakana: 21, hangul: 94, cjk_mark: 47, typographic: 152, symbol: 63, high_surrogate: 131 },
    script: { control: 100, greek: 95, cyrillic: 16, arabic: 70, indic: 52, han_common: 0, han_usual: 0, han_single: 210, han: 202, kana: 0, katakana: 57, hangul: 93, cjk_mark: 55, typographic: 0, symbol: 115, high_surrogate: 115 },
    han: { control: 100, greek: 96, cyrillic: 96, arabic: 74, indic: 80, han_common: 81, han_usual: 81, han_single: 81, han: 81, kana: 43, katakana: 65, hangul: 93, cjk_mark: 48, typographic: 32, symbol: 99, high_surrogate: 122 },
    kana: { control: 100, greek: 95, cyrillic: 95, arabic: 69, indic: 80, han_common: 61, han_usual: 10, han_single: 140, han: 191, kana: 40, katakana: 35, hangul: 93, cjk_mark: 48, typographic: 0, symbol: 99, high_surrogate: 122 },
    other: { control: 105, greek: 138, cyrillic: 41, arabic: 143, indic: 163, han_common: 0, han_usual: 87, han_single: 242, han: 75, kana: 35, katakana: 59, hangul: 233, cjk_mark: 203, typographic: 76, symbol: 97, high_surrogate: 169 },
  },
  CONTINUE: {
    control: [100],
    space: [138, 5],
    newline: [41],
    tab: [26],
    upper: [0, 15, 33],
    greek: [122, 39, 3, 6, 9, 17],
    cyrillic: [98, 0, 10, 0, 46, 0],
    arabic: [40, 0, 28],
    indic: [104, 1, 42],
    kana: [147, 55],
    katakana: [107, 62],
    hangul: [64, 12],
    cjk_mark: [0],
    typographic: [0],
    symbol: [115],
  },
  HAN: {
    han_common: { han_common: 69, han_usual: 2, han_single: 53, han: 91 },
    han_usual: { han_common: 90, han_usual: 29, han_single: 209, han: 183 },
    han_single: { han_common: 26, han_usual: 30, han_single: 60, han: 120 },
    han: { han_common: 91, han_usual: 88, han_single: 187, han: 99 },
  },
  REPEAT: [0, 28, 17],
  DIGITS: [0, 0, 75],
  WORD: {
    spaced: [85, 0, 7, 11, 3, 0, 22, 23],
    marked: [0, 0, 0, 57, 0, 2],
    inner: [16, 0, 0, 0],
  },
  MOVES: { hump: 74, after_capitals: 151, accented_first: 171, accented_in_word: 121, cyrillic_other_first: 89, cyrillic_other_marked: 102, cyrillic_other_in_word: 70, low_surrogate: 57, mark_after_noise: 136, unforeseen: 100 },
  NOISE: {
    any: { lower: 11, upper: 0, digit: 51 },
    lower: { lower: 16, upper: 108, digit: 95 },
    upper: { lower: 57, upper: 55, digit: 81 },
    digit: { lower: 95, upper: 115, digit: 26 },
  },
};
