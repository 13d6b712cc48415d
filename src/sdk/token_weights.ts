/**
 * What a character costs in hundredths of a token, by what it is and what it follows. Fitted by least squares against
 * o200k on 17 million characters of prose in some 25 languages, source code, markup, JSON, logs, tables, base64 and hexadecimal
 * (our choice of text); a fifth of it was kept out of the fit and gave the errors stated in tokens.ts. Data only.
 */

/** Kinds of character that can open a run of their own, in the order of their numbers. */
export const CLASSES = [
  "control",
  "lower",
  "upper",
  "digit",
  "space",
  "newline",
  "tab",
  "quote",
  "open",
  "close",
  "stop",
  "underscore",
  "dash",
  "slash",
  "operator",
  "same", // an ASCII mark or a symbol that repeats the one before it
  "accented",
  "cyrillic",
  "arabic",
  "indic",
  "han",
  "kana",
  "hangul",
  "cjk_mark",
  "typographic",
  "symbol",
  "high_surrogate",
  "low_surrogate",
] as const;

/** One kind of character. */
export type CharClass = typeof CLASSES[number];

/** What stood before a character. `mark` is one ASCII mark, `marks` two or more, `line` also stands for indentation. */
export type Before = "space" | "line" | "letter" | "digit" | "mark" | "marks" | "script";

type Costs = Readonly<Partial<Record<CharClass, number>>>;

// deno-fmt-ignore -- a table is read by column
/** Cost of an ASCII character that opens a run, by what stood before it. */
export const ENTER: Readonly<Record<Before, Costs>> = {
  space:  { lower: 0, upper: 31, digit: 181, newline: 127, tab: 47, quote: 68, open: 57, close: 33, stop: 108, underscore: 94, dash: 96, slash: 88, operator: 58 },
  line:   { lower: 85, upper: 96, digit: 197, space: 30, newline: 60, tab: 95, quote: 105, open: 3, close: 22, stop: 90, underscore: 85, dash: 95, slash: 11, operator: 2 },
  letter: { digit: 79, space: 16, newline: 178, tab: 100, quote: 80, open: 18, close: 108, stop: 52, underscore: 36, dash: 73, slash: 55, operator: 96 },
  digit:  { lower: 101, upper: 127, space: 44, newline: 102, tab: 0, quote: 35, open: 97, close: 150, stop: 78, underscore: 57, dash: 68, slash: 162, operator: 3 },
  mark:   { lower: 59, upper: 96, digit: 109, space: 62, newline: 52, tab: 139, quote: 2, open: 32, close: 34, stop: 48, underscore: 2, dash: 48, slash: 40, operator: 44 },
  marks:  { lower: 52, upper: 113, digit: 149, space: 26, newline: 66, tab: 78, quote: 22, open: 0, close: 130, stop: 26, underscore: 43, dash: 0, slash: 46, operator: 156 },
  script: { lower: 100, upper: 58, digit: 70, space: 0, newline: 151, tab: 96, quote: 28, open: 3, close: 67, stop: 41, underscore: 39, dash: 0, slash: 54, operator: 55 },
};

// deno-fmt-ignore -- a table is read by column
/** Cost of any other character that opens a run: after one space, after another script, after anything else. */
export const ENTER_SCRIPT: Readonly<Record<"space" | "script" | "other", Costs>> = {
  space:  { control: 100, cyrillic: 0, arabic: 52, indic: 0, han: 123, kana: 24, hangul: 35, cjk_mark: 45, typographic: 158, symbol: 56, high_surrogate: 138 },
  script: { control: 100, cyrillic: 95, arabic: 69, indic: 80, han: 81, kana: 49, hangul: 93, cjk_mark: 52, typographic: 0, symbol: 99, high_surrogate: 122 },
  other:  { control: 105, cyrillic: 137, arabic: 141, indic: 0, han: 69, kana: 67, hangul: 79, cjk_mark: 173, typographic: 38, symbol: 100, high_surrogate: 194 },
};

/** Cost of the second, third, … character of a run of one class; the last number holds for all that follow. */
export const CONTINUE: Readonly<Partial<Record<CharClass, readonly number[]>>> = {
  control: [100],
  space: [140, 3],
  newline: [73],
  tab: [26],
  upper: [0, 16, 14],
  cyrillic: [134, 44, 0, 0, 2, 8],
  arabic: [55, 0, 34],
  indic: [0, 148, 43],
  han: [85],
  kana: [107, 60],
  hangul: [109, 58],
  cjk_mark: [51],
  typographic: [10],
  symbol: [121],
};

/** Cost of a repeated mark, the first, second, … time. */
export const REPEAT = [8, 7, 12] as const;

/** Cost of the digits of a number: second, third, and the first of the next three (o200k cuts numbers in threes). */
export const DIGITS = [0, 0, 88] as const;

/** Where a word began: after one space, after a mark or at the start of a line, inside another word. */
export type WordStart = "spaced" | "marked" | "inner";

/** Cost of the second, third, … letter of a word, by where the word began; the last number holds for all that follow. */
export const WORD: Readonly<Record<WordStart, readonly number[]>> = {
  spaced: [53, 0, 0, 40, 0, 14, 17, 29],
  marked: [9, 12, 0, 23, 0, 11],
  inner: [26, 16, 0, 0],
};

/** Costs of single moves. `hump` is a capital inside a word, `after_capitals` a small letter after two capitals or more. */
export const MOVES = {
  hump: 48,
  after_capitals: 132,
  accented_first: 0,
  accented_in_word: 89,
  low_surrogate: 100,
  mark_after_noise: 154,
} as const;

/**
 * Letters and digits in an order no word has (base64, hexadecimal, ids): cost of one after another; `any` is the step in.
 * A run counts as noise from its {@link NOISE_FLIPS}th change from small to capital or between letter and digit.
 */
export const NOISE = {
  any: { lower: 0, upper: 25, digit: 46 },
  lower: { lower: 0, upper: 106, digit: 91 },
  upper: { lower: 70, upper: 65, digit: 74 },
  digit: { lower: 104, upper: 101, digit: 26 },
} as const;

/** Changes of case or kind after which a run is noise; `getMessagesForRequest` has three. */
export const NOISE_FLIPS = 4;
