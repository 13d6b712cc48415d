/** Which kind of character a UTF-16 code unit is, for token estimates. Data and one table made of it. */
import { COMMON_HAN, SINGLE_HAN, USUAL_HAN } from "./token_han.ts";

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
  "greek",
  "cyrillic",
  "cyrillic_other", // letters that Russian does not have
  "arabic",
  "indic",
  "han_common",
  "han_usual",
  "han_single",
  "han", // takes several tokens
  "kana",
  "katakana",
  "hangul",
  "cjk_mark",
  "typographic",
  "symbol",
  "high_surrogate",
  "low_surrogate",
] as const;

/** One kind of character. */
export type CharClass = typeof CLASSES[number];

/** Number of each class. */
export const CLASS_NUMBERS = Object.fromEntries(CLASSES.map((name, number) => [name, number])) as Record<
  CharClass, // fromEntries forgets the keys
  number
>;

/** First code unit of each stretch that has one class; Unicode 16 blocks, scripts that o200k treats alike in one class. */
const STRETCHES: readonly (readonly [number, CharClass])[] = [
  [0x0000, "control"],
  [0x00a0, "typographic"],
  [0x00c0, "accented"],
  [0x0250, "indic"],
  [0x0300, "accented"],
  [0x0370, "greek"],
  [0x0400, "cyrillic_other"],
  [0x0410, "cyrillic"],
  [0x0450, "cyrillic_other"],
  [0x0451, "cyrillic"],
  [0x0452, "cyrillic_other"],
  [0x0530, "arabic"],
  [0x0900, "indic"],
  [0x1100, "hangul"],
  [0x1200, "indic"],
  [0x1e00, "accented"],
  [0x1f00, "greek"],
  [0x2000, "typographic"],
  [0x2070, "symbol"],
  [0x2e80, "han"],
  [0x3000, "cjk_mark"],
  [0x3040, "kana"],
  [0x30a0, "katakana"],
  [0x3100, "han"],
  [0x3130, "hangul"],
  [0x3190, "han"],
  [0x31f0, "katakana"],
  [0x3200, "cjk_mark"],
  [0x3400, "han"],
  [0xa000, "indic"],
  [0xa960, "hangul"],
  [0xa980, "indic"],
  [0xac00, "hangul"],
  [0xd800, "high_surrogate"],
  [0xdc00, "low_surrogate"],
  [0xe000, "symbol"],
  [0xf900, "han"],
  [0xfb00, "arabic"],
  [0xfe00, "symbol"],
  [0xfe10, "cjk_mark"],
  [0xfe70, "arabic"],
  [0xff00, "cjk_mark"],
  [0xff66, "katakana"],
  [0xffa0, "hangul"],
  [0xffe0, "symbol"],
];

const CHARACTERS: readonly (readonly [CharClass, string])[] = [
  ["lower", "abcdefghijklmnopqrstuvwxyz"],
  ["upper", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"],
  ["digit", "0123456789"],
  ["space", " "],
  ["newline", "\n\r"],
  ["tab", "\t"],
  ["quote", "\"'`"],
  ["open", "([{<"],
  ["close", ")]}>"],
  ["stop", ".,;:!?"],
  ["underscore", "_"],
  ["dash", "-"],
  ["slash", "/\\"],
  ["operator", "#$%&*+=@^|~"],
  ["typographic", "\u00d7\u00f7"],
  ["han_common", COMMON_HAN],
  ["han_usual", USUAL_HAN],
  ["han_single", SINGLE_HAN],
];

/** Returns the class of every UTF-16 code unit. */
export function classTable(): Uint8Array {
  const table = new Uint8Array(0x10000);
  STRETCHES.forEach(([start, name], index) => {
    table.fill(CLASS_NUMBERS[name], start, STRETCHES[index + 1]?.[0] ?? table.length);
  });
  for (const [name, characters] of CHARACTERS) {
    for (let index = 0; index < characters.length; index++) {
      table[characters.charCodeAt(index)] = CLASS_NUMBERS[name];
    }
  }
  return table;
}
