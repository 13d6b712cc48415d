/**
 * Estimates the tokens of a text without a tokenizer. Splits it as tokenizers do, into words, digits, marks,
 * white space and single characters of other scripts; each part costs what character_costs.ts states. Pairs
 * of letters that are rare in all languages indicate random strings. tests/sdk/text_tokens_test.ts states the
 * errors.
 */
import {
  AFRICAN_AND_OTHER,
  COMMON,
  COMMON_CYRILLIC,
  CYRILLIC_PAIRS,
  EUROPEAN,
  LATIN_PAIRS,
  RARE,
  VIETNAMESE,
} from "./character_costs.ts";

// perf: all costs are looked up in tables of numbers, because every character of a run's history is counted

const SPACE = 0, BREAK = 1, DIGIT = 2, MARK = 3, LOWER = 4, UPPER = 5, OTHER = 6;

/** Class of each UTF-16 code unit; `OTHER` beyond the alphabets whose words are costed by pairs. */
const CLASSES = new Uint8Array(0x10000).fill(OTHER);
CLASSES.fill(MARK, 0x21, 0x7f).fill(DIGIT, 0x30, 0x3a).fill(UPPER, 0x41, 0x5b).fill(LOWER, 0x61, 0x7b);
CLASSES.fill(LOWER, 0xc0, 0x370).fill(LOWER, 0x1e00, 0x1f00); // accented and phonetic letters, accents
CLASSES.fill(UPPER, 0x400, 0x430).fill(LOWER, 0x430, 0x530); // Cyrillic
for (const sign of "×÷҂") CLASSES[sign.charCodeAt(0)] = OTHER;
for (const space of " \t\xa0") CLASSES[space.charCodeAt(0)] = SPACE;
for (const lineBreak of "\n\r") CLASSES[lineBreak.charCodeAt(0)] = BREAK;

/**
 * Numbers of letters, besides 1 to 26 from a to z and 32 to 63 from а to я. Capitals of a to z and of
 * Cyrillic have the same numbers, plus `CAPITAL`.
 */
const ACCENTED = 0,
  VIETNAMESE_ACCENTED = 27,
  OTHER_CYRILLIC = 28,
  RARE_CYRILLIC = 29,
  OTHER_ACCENTED = 30,
  RARE_ACCENTED = 31,
  CYRILLIC = 32,
  CAPITAL = 64;

/** Stands for the letter before the first one of a word. */
const WORD_START = 64;

/** Number of each letter. */
const LETTERS = new Uint8Array(0x10000);
LETTERS.fill(RARE_ACCENTED, 0xc0, 0x370).fill(RARE_ACCENTED, 0x1e00, 0x1f00);
for (const letter of EUROPEAN) LETTERS[letter.charCodeAt(0)] = ACCENTED;
for (const letter of VIETNAMESE) LETTERS[letter.charCodeAt(0)] = VIETNAMESE_ACCENTED;
for (const letter of AFRICAN_AND_OTHER) LETTERS[letter.charCodeAt(0)] = OTHER_ACCENTED;
LETTERS.fill(RARE_CYRILLIC, 0x430, 0x530).fill(RARE_CYRILLIC + CAPITAL, 0x400, 0x430);
for (const letter of COMMON_CYRILLIC) {
  const code = letter.charCodeAt(0);
  LETTERS[code] = OTHER_CYRILLIC + (CLASSES[code] === UPPER ? CAPITAL : 0);
}
for (let index = 0; index < 32; index++) {
  LETTERS[0x430 + index] = CYRILLIC + index;
  LETTERS[0x410 + index] = CYRILLIC + index + CAPITAL;
}
for (let number = 1; number <= 26; number++) {
  LETTERS[0x60 + number] = number;
  LETTERS[0x40 + number] = number + CAPITAL;
}

/** Letters whose cost does not depend on the one before: that cost, and that of a plain letter after them. */
const SINGLE_COSTS: ReadonlyMap<number, readonly [own: number, after: number]> = new Map([
  [ACCENTED, [94, 30]],
  [VIETNAMESE_ACCENTED, [14, 2]],
  [OTHER_ACCENTED, [145, 30]],
  [RARE_ACCENTED, [250, 30]],
  [OTHER_CYRILLIC, [26, 69]],
  [RARE_CYRILLIC, [250, 69]],
]);

/** Cost of a letter of another script than the one before. */
const OTHER_SCRIPT = 90;

/** Additional cost of a capital after another one, in Latin and Cyrillic: words in capitals are rare. */
const LATIN_CAPITAL = 18, CYRILLIC_CAPITAL = 54;

/** Cost of each letter after each other one in a word, at 128 × first + second number. */
const PAIRS = new Uint16Array(128 * 128).fill(OTHER_SCRIPT);
for (const [alphabet, first] of [[LATIN_PAIRS, 1], [CYRILLIC_PAIRS, CYRILLIC]] as const) {
  for (const [index, digits] of alphabet.trim().split(/\s+/).entries()) {
    for (let column = 0; column < digits.length; column++) {
      PAIRS[128 * (first + index) + first + column] = 12 * Number(digits[column]);
    }
  }
}
for (const [letter, [, after]] of SINGLE_COSTS) PAIRS.fill(after, 128 * letter, 128 * letter + CAPITAL);
for (const [letter, [own]] of SINGLE_COSTS) {
  for (let first = 0; first < CAPITAL; first++) PAIRS[128 * first + letter] = own;
}
for (let first = 0; first < CAPITAL; first++) {
  const row = 128 * first;
  for (let letter = 0; letter < CAPITAL; letter++) {
    PAIRS[row + CAPITAL + letter] = PAIRS[row + letter]! +
      (letter < OTHER_CYRILLIC ? LATIN_CAPITAL : CYRILLIC_CAPITAL);
  }
  PAIRS.copyWithin(row + 128 * CAPITAL, row, row + 128);
}
PAIRS.fill(0, 128 * WORD_START, 128 * WORD_START + 128);
for (const [letter, [own]] of SINGLE_COSTS) {
  PAIRS[128 * WORD_START + letter] = PAIRS[128 * WORD_START + CAPITAL + letter] = Math.min(own, 200);
}

/** Cost of each letter after two equal ones: "aaaa…" is cheaper than other rare pairs. */
const REPEATED = new Uint16Array(128);
for (let letter = 0; letter < 128; letter++) {
  REPEATED[letter] = SINGLE_COSTS.has(letter % CAPITAL) ? PAIRS[129 * letter]! : 51;
}

/** Pairs of punctuation marks that are one token in code, JSON and prose. */
const USUAL_MARKS =
  `": ", ," ], ." ): ); \${ [] ), () (" ") .# ', }, /* */ ". ./ "; ?: \`, => ). }" }' :/ '. '{ "^ /, \\" "{`;

/** Marks whose repetitions are one token, as in divider lines. */
const DIVIDERS = "#*-./=_+%~";

/** Cost of each pair of marks, at 128 × first + second. */
const MARK_PAIRS = new Uint8Array(128 * 128).fill(75);
for (const pair of USUAL_MARKS.split(" ")) MARK_PAIRS[128 * pair.charCodeAt(0) + pair.charCodeAt(1)] = 0;
for (let code = 0; code < 128; code++) MARK_PAIRS[129 * code] = 50;
for (const divider of DIVIDERS) MARK_PAIRS[129 * divider.charCodeAt(0)] = 3;

/** Cost of each code unit of the class `OTHER`. */
const COSTS = new Uint16Array(0x10000);
let first = 0;
for (const [last, cost] of RARE) {
  COSTS.fill(cost, first, last + 1);
  first = last + 1;
}
for (const [cost, characters] of COMMON) {
  for (const character of characters) COSTS[character.charCodeAt(0)] = cost;
}

/** Additional cost of a word of one or two letters. */
const SHORT_WORD = 67;

/** Cost of a change of the kind of white space after a space or a tab. */
const SPACE_CHANGE = 90;

/** Returns the estimated tokens of a text: 0 for an empty one, never less than an eighth of its length. */
export function estimateTokens(text: string): number {
  const { length } = text;
  let sum = 0; // hundredths of a token
  let before = SPACE;
  let index = 0;
  let code = length > 0 ? text.charCodeAt(0) : 0;
  let kind = CLASSES[code] as number; // every code unit has a class
  // each round takes one part; `code` and `kind` are then those of the character after it
  while (index < length) {
    const start = index;
    const part = kind;
    switch (part) {
      case LOWER:
      case UPPER: {
        // a word of tokenizers: capitals, then small letters
        let letter = LETTERS[code] as number;
        let last = WORD_START;
        let next: number = part;
        sum += PAIRS[128 * WORD_START + letter] as number;
        while (++index < length) {
          code = text.charCodeAt(index);
          kind = CLASSES[code] as number;
          if (kind < LOWER || kind > next) break; // a capital after a small letter starts a word
          next = kind;
          const second = LETTERS[code] as number;
          sum += (second === letter && letter === last
            ? REPEATED[letter]
            : PAIRS[128 * letter + second]) as number;
          last = letter;
          letter = second;
        }
        sum += before <= BREAK ? 32 : before === MARK ? 0 : 45;
        if (index - start <= 2) sum += SHORT_WORD;
        break;
      }
      case DIGIT:
        while (++index < length) {
          kind = CLASSES[code = text.charCodeAt(index)] as number;
          if (kind !== DIGIT || index === start + 3) break;
        }
        sum += 150;
        break;
      case MARK:
        sum += before <= BREAK ? 136 : 66;
        while (++index < length) {
          const first = code;
          kind = CLASSES[code = text.charCodeAt(index)] as number;
          if (kind !== MARK) break;
          sum += MARK_PAIRS[128 * first + code] as number;
        }
        break;
      case SPACE:
      case BREAK: {
        let breaks: number = part;
        while (++index < length) {
          const last = code;
          const lastKind = kind;
          kind = CLASSES[code = text.charCodeAt(index)] as number;
          if (kind > BREAK) break;
          breaks |= kind;
          if (code !== last && lastKind === SPACE) sum += SPACE_CHANGE;
        }
        sum += (breaks === BREAK ? 12 : 0) + 12 * (index - start - 1);
        break;
      }
      default:
        sum += COSTS[code] as number;
        if (++index < length) kind = CLASSES[code = text.charCodeAt(index)] as number;
    }
    before = part;
  }
  return Math.ceil(Math.max(sum / 100, length / 8));
}
