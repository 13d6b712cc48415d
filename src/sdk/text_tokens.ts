/**
 * Estimates the tokens of a text without a tokenizer. Splits a text as tokenizers do; each part costs by its
 * class and length. Pairs of letters that are rare in European languages indicate random strings. The costs
 * were fitted against o200k on prose in 70 languages, code, JSON and random strings;
 * tests/sdk/token_estimate_test.ts states the errors.
 */

/** The letters that often follow each letter from a to z (at least 1 in 1,250 of all pairs). */
const FOLLOWERS =
  "bcdgiklmnprstuvy aeijlouy aehiklortu aeiosu abcdefgilmnpqrstvxy aeiortu aehinru aeiot abcdefglmnoprstv es aei adefilostuy abeimops acdefgilnostuy bcdfgiklmnoprstuvw aeiloprtuy u acdegimnorstuy acehiklopstuy aehioprstuy abcdeilmnprst aeio aehi pt pr e";

/** Cost of one character beyond Latin in hundredths of a token, up to and including the code unit. */
const SCRIPTS: readonly (readonly [last: number, cost: number])[] = [
  [0x24f, 100], // control characters, signs of Latin-1
  [0x36f, 60], // phonetic letters, combining marks
  [0x45f, 39], // Greek, Cyrillic
  [0x58f, 33], // Armenian
  [0x5ff, 47], // Hebrew
  [0x9ff, 41], // Arabic, Devanagari, Bengali
  [0xa7f, 62], // Gurmukhi
  [0xbff, 38], // Gujarati, Tamil
  [0xc7f, 49], // Telugu
  [0xd7f, 35], // Kannada, Malayalam
  [0xdff, 62], // Sinhala
  [0xeff, 44], // Thai, Lao
  [0xfff, 144], // Tibetan
  [0x109f, 56], // Myanmar
  [0x10ff, 33], // Georgian
  [0x13ff, 204], // Ethiopic
  [0x177f, 284],
  [0x17ff, 61], // Khmer
  [0x1dff, 284],
  [0x1eff, 70], // Vietnamese
  [0x206f, 80], // dashes, typographic quotes
  [0x2fff, 70], // symbols
  [0x30ff, 78], // CJK punctuation, kana
  [0x33ff, 120],
  [0x4dff, 297], // rare Han
  [0x9fff, 92], // Han
  [0xabff, 276],
  [0xd7ff, 72], // Hangul
  [0xdfff, 131], // half of a character beyond 16 bits, such as an emoji
  [0xf8ff, 270],
  [0xffff, 97],
];

const SPACE = 0, BREAK = 1, DIGIT = 2, MARK = 3, LOWER = 4, UPPER = 5, OTHER = 6;

/** Pairs of punctuation marks that are one token in code, JSON and prose. */
const USUAL_MARKS = new Set(
  `": ", ," ], ." ): ); \${ [] ), () (" ") .# ', }, /* */ ". ./ "; ?: \`, => ). }" }' :/ '. '{ "^ /, \\" "{`
    .split(" "),
);

/** Marks whose repetitions are one token, as in divider lines. */
const DIVIDERS = "#*-./=_+%~";

/** Class of each UTF-16 code unit; beyond Latin all are `OTHER`. */
const CLASSES = new Uint8Array(0x10000).fill(OTHER);
for (let code = 0; code < 0x250; code++) CLASSES[code] = classOf(code);

function classOf(code: number): number {
  if (code === 0x0a || code === 0x0d) return BREAK;
  if (code === 0x20 || code === 0x09 || code === 0xa0) return SPACE;
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  if (code >= 0x41 && code <= 0x5a) return UPPER;
  if (code >= 0x61 && code <= 0x7a) return LOWER;
  return code >= 0xc0 ? LOWER : code > 0x20 && code < 0x7f ? MARK : OTHER;
}

/** Cost of each pair of plain letters in a word, at 32 × first + second, where `a` and `A` are 1. */
const PAIRS = new Uint8Array(32 * 32);
for (const [first, followers] of FOLLOWERS.split(" ").entries()) {
  for (let second = 1; second <= 26; second++) {
    const usual = followers.includes(String.fromCharCode(0x60 + second));
    PAIRS[32 * (first + 1) + second] = usual ? 0 : 84;
  }
}

/** Returns the estimated tokens of a text: 0 for an empty one, never less than an eighth of its length. */
export function estimateTokens(text: string): number {
  const { length } = text;
  let sum = 0; // hundredths of a token
  let before = SPACE;
  for (let index = 0; index < length;) {
    const start = index;
    let code = text.charCodeAt(index++);
    const kind = CLASSES[code] as number; // every code unit has a class
    switch (kind) {
      case LOWER:
      case UPPER: {
        // a word of tokenizers: capitals, then small letters
        let letter = plainLetter(code);
        let last = 0;
        let next: number = kind;
        if (letter === 0) sum += 71;
        for (; index < length; index++) {
          code = text.charCodeAt(index);
          const following = CLASSES[code] as number;
          if (following < LOWER || following > next) break; // a capital after a small letter starts a word
          next = following;
          const second = plainLetter(code);
          if (second === letter && letter === last) sum += 32; // "aaaa…" is cheaper than other rare pairs
          else sum += second === 0 ? 71 : PAIRS[32 * letter + second] as number;
          last = letter;
          letter = second;
        }
        const chars = index - start;
        sum += before <= BREAK ? 88 : (before === MARK ? 22 : 50) + (chars <= 2 ? 62 : 0);
        if (chars > 4) sum += 19 * (chars - 4);
        break;
      }
      case DIGIT:
        while (index < length && index < start + 3 && classAt(text, index) === DIGIT) index++;
        sum += 150;
        break;
      case MARK:
        sum += before <= BREAK ? 136 : 66;
        for (; index < length && classAt(text, index) === MARK; index++) {
          const next = text.charCodeAt(index);
          if (next === code) sum += DIVIDERS.includes(text.charAt(index)) ? 3 : 50;
          else if (!USUAL_MARKS.has(text.slice(index - 1, index + 1))) sum += 75;
          code = next;
        }
        break;
      case SPACE:
      case BREAK: {
        let breaks = kind;
        for (; index < length && classAt(text, index) <= BREAK; index++) breaks |= classAt(text, index);
        sum += (breaks === BREAK ? 12 : 0) + 12 * (index - start - 1);
        break;
      }
      default:
        sum += scriptCost(code);
    }
    before = kind;
  }
  return Math.ceil(Math.max(sum / 100, length / 8));
}

function classAt(text: string, index: number): number {
  return CLASSES[text.charCodeAt(index)] as number;
}

/** Returns 1 to 26 for a plain letter, 0 for an accented one. */
function plainLetter(code: number): number {
  return code < 0x80 ? code & 0x1f : 0;
}

function scriptCost(code: number): number {
  return SCRIPTS.find(([last]) => code <= last)?.[1] ?? 100;
}
