/**
 * Estimates the tokens of a text without a tokenizer: words, numbers and runs of marks in ASCII, and a cost
 * per character in all other scripts. The usage that a provider reports corrects the estimate.
 */

/** Kinds of code units; the others are characters of `COSTS`. */
const SPACE = 1, DIGIT = 2, MARK = 3, LOWER = 4, UPPER = 5;

const KINDS = new Uint8Array(0x80).fill(SPACE).fill(MARK, 0x21).fill(DIGIT, 0x30, 0x3a)
  .fill(MARK, 0x3a).fill(UPPER, 0x41, 0x5b).fill(MARK, 0x5b).fill(LOWER, 0x61, 0x7b).fill(MARK, 0x7b);

/**
 * Hundredths of a token for a code unit, up to and including `last`. Scripts of which tokenizers know words
 * cost what their prose takes; the others about one token for each byte of UTF-8.
 */
const RANGES: readonly (readonly [last: number, cost: number])[] = [
  [0x17f, 65], // accented Latin
  [0x2ff, 130],
  [0x36f, 80], // accents
  [0x3ff, 42], // Greek
  [0x44f, 36], // Cyrillic
  [0x482, 60],
  [0x52f, 75],
  [0x58f, 48], // Armenian
  [0x5cf, 120], // Hebrew vowels, letters
  [0x5ff, 48],
  [0x64a, 40], // Arabic letters, vowels, letters
  [0x670, 95],
  [0x6ff, 42],
  [0x8ff, 220],
  [0x9ff, 42], // Devanagari, Bengali
  [0xaff, 55], // Gurmukhi, Gujarati
  [0xb7f, 115], // Odia
  [0xd7f, 40], // Tamil, Telugu, Kannada, Malayalam
  [0xdff, 70], // Sinhala
  [0xe7f, 45], // Thai
  [0xeff, 185], // Lao
  [0xfff, 150], // Tibetan
  [0x109f, 70], // Burmese
  [0x10ff, 42], // Georgian
  [0x11ff, 300],
  [0x137f, 210], // Ethiopic
  [0x177f, 300],
  [0x17ff, 60], // Khmer
  [0x1dff, 300],
  [0x1eff, 15], // Vietnamese
  [0x1fff, 220], // polytonic Greek
  [0x206f, 100], // punctuation
  [0x24ff, 190],
  [0x259f, 45], // lines and boxes
  [0x2bff, 190],
  [0x2fff, 300],
  [0x30ff, 78], // kana
  [0x4dff, 250],
  [0x9fff, 88], // Han
  [0xabff, 300],
  [0xd7a3, 70], // Hangul
  [0xdfff, 110], // halves of characters beyond 16 bits
  [0xfdff, 250],
  [0xffff, 100], // wide forms of punctuation
];

/**
 * Costs beyond ASCII, and of a repeated mark; those of divider lines are cheap. perf: looked up, because
 * every character of a run's history is counted.
 */
const COSTS = new Uint16Array(0x10000).fill(50);
for (const divider of "#*-./=_+%~") COSTS[divider.charCodeAt(0)] = 6;
for (const [index, [last, cost]] of RANGES.entries()) {
  COSTS.fill(cost, index > 0 ? RANGES[index - 1]![0] + 1 : 0x80, last + 1);
}

/** Returns the estimated tokens of a text: 0 for an empty one, never less than an eighth of its length. */
export function estimateTokens(text: string): number {
  const { length } = text;
  let sum = 0; // hundredths of a token
  let before = SPACE;
  for (let index = 0; index < length;) {
    const start = index;
    const code = text.charCodeAt(index++);
    const kind = kindOf(code);
    switch (kind) {
      case LOWER:
      case UPPER: {
        // a word of tokenizers: capitals, then small letters
        let next: number = kind;
        for (; index < length; index++) {
          const found = kindOf(text.charCodeAt(index));
          if (found < LOWER || found > next) break;
          next = found;
          if (found === UPPER) sum += 34;
        }
        const letters = index - start;
        sum += before === SPACE ? 95 : before === MARK ? 75 : before === 0 ? 60 : 135;
        if (letters > 4) sum += 19 * (letters - 4);
        if (letters > 20) sum += 35 * (letters - 20); // no word, but a key or data
        break;
      }
      case DIGIT:
        while (index < length && index < start + 3 && kindOf(text.charCodeAt(index)) === DIGIT) index++;
        sum += before === SPACE ? 140 : 110;
        break;
      case MARK:
        sum += before === SPACE
          ? 100
          : before === MARK
          ? text.charCodeAt(start - 1) === code ? COSTS[code]! : 55
          : 65;
        break;
      case SPACE:
        while (index < length && kindOf(text.charCodeAt(index)) === SPACE) index++;
        sum += index - start > 1 ? 20 + 12 * (index - start) : code === 0x0a ? 20 : 0;
        break;
      default:
        sum += COSTS[code]!;
    }
    before = kind;
  }
  return Math.ceil(Math.max(sum / 100, length / 8));
}

/** Returns the kind of a code unit; 0 beyond ASCII. */
function kindOf(code: number): number {
  return code < 0x80 ? KINDS[code]! : 0;
}
