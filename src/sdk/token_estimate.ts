/**
 * Estimates the tokens of texts, messages, tool specifications and requests, without a tokenizer. Splits a
 * text as tokenizers do; each part costs by its class and length. Pairs of letters that are rare in European
 * languages indicate random strings. The costs were fitted against o200k on prose in 70 languages, code, JSON
 * and random strings; tests/sdk/token_estimate_test.ts states the errors.
 */
import { Argument, knownTokens, setTokens } from "./frozen_data.ts";
import { isObject, type JsonObject } from "./json.ts";
import type { Message, ToolSpec } from "./messages.ts";

/** Tokens of a message in addition to its content: role, separators. */
export const MESSAGE_OVERHEAD_TOKENS = 4;

/** Tokens of one media block, independent of its size. */
export const MEDIA_BLOCK_TOKENS = 1600;

/** Tokens around a tool call, the id of a result, or a tool specification; an assumed value. */
const ENVELOPE_TOKENS = 8;

const MEDIA: ReadonlySet<unknown> = new Set(
  "image image_url input_image audio input_audio video document file input_file".split(" "),
);

/** Counts the tokens of a text. */
export type CountText = (text: string) => number;

/**
 * Returns the estimated tokens of one message: content, tool calls (counted once), name, and {@link
 * MESSAGE_OVERHEAD_TOKENS}. Media cost {@link MEDIA_BLOCK_TOKENS} each. Fields may be missing or of the wrong
 * type. A message of the log is counted once, unless `count` is another counter, such as a tokenizer.
 */
export function messageTokens(message: Message, count: CountText = estimateTokens): number {
  if (count !== estimateTokens || !isObject(message)) return countMessage(message, count);
  let tokens = knownTokens(message);
  if (tokens < 0) setTokens(message, tokens = countMessage(message, count));
  return tokens;
}

function countMessage(message: Message, count: CountText): number {
  if (!isObject(message)) return MESSAGE_OVERHEAD_TOKENS + contentTokens(message, count);
  const fields: JsonObject = message;
  let tokens = MESSAGE_OVERHEAD_TOKENS + contentTokens(fields.content, count);
  if (typeof fields.name === "string") tokens += count(fields.name);
  if (typeof fields.tool_call_id === "string") tokens += ENVELOPE_TOKENS;
  if (Array.isArray(fields.tool_calls) && !hasCallBlocks(fields.content)) {
    for (const call of fields.tool_calls) tokens += callTokens(call, count);
  }
  return tokens;
}

function contentTokens(content: unknown, count: CountText): number {
  if (typeof content === "string") return count(content);
  if (Array.isArray(content)) {
    return content.reduce((sum: number, block) => sum + blockTokens(block, count), 0);
  }
  return content === null || content === undefined ? 0 : blockTokens(content, count);
}

function blockTokens(block: unknown, count: CountText): number {
  if (typeof block === "string") return count(block);
  if (!isObject(block)) return count(String(block));
  switch (block.type) {
    case "text":
      return contentTokens(block.text, count);
    case "thinking":
      return contentTokens(block.thinking, count);
    case "tool_call":
    case "tool_use":
      return callTokens(block, count);
    case "tool_result":
      return ENVELOPE_TOKENS + contentTokens(block.output ?? block.content, count);
    default:
      return MEDIA.has(block.type) ? MEDIA_BLOCK_TOKENS : count(jsonText(block));
  }
}

function hasCallBlocks(content: unknown): boolean {
  return Array.isArray(content) &&
    content.some((block) => isObject(block) && (block.type === "tool_call" || block.type === "tool_use"));
}

function callTokens(call: unknown, count: CountText): number {
  if (!isObject(call)) return ENVELOPE_TOKENS;
  const named = isObject(call.function) ? call.function : call;
  const input = named.arguments ?? named.input ?? {};
  return ENVELOPE_TOKENS + count(String(named.name ?? named.tool ?? "")) +
    count(typeof input === "string" ? input : jsonText(input));
}

function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return String(value); // a cycle or a BigInt
  }
}

const knownTools = new WeakMap<CountText, WeakMap<ToolSpec, number>>();

/** Returns the estimated tokens of tool specifications. Each object is counted once per `count`. */
export function toolTokens(
  tools: readonly ToolSpec[] | undefined,
  count: CountText = estimateTokens,
): number {
  let counted = knownTools.get(count);
  if (!counted) knownTools.set(count, counted = new WeakMap());
  let tokens = 0;
  for (const tool of tools ?? []) {
    let size = counted.get(tool);
    if (size === undefined) {
      size = ENVELOPE_TOKENS + count(jsonText(tool));
      counted.set(tool, size);
    }
    tokens += size;
  }
  return tokens;
}

/** The tokens of a list of messages. perf: a request would count its whole history again. */
class CountedList extends Argument {
  readonly #tokens: number;
  readonly #length: number;
  /** Begins with the messages that were counted: a loop may replace some in the list that it receives. */
  readonly #counted: readonly Message[];

  constructor(messages: readonly Message[], tokens: number, counted: readonly Message[]) {
    super(messages);
    this.#tokens = tokens;
    this.#length = messages.length;
    this.#counted = counted;
  }

  static tokensOf(messages: readonly Message[]): number {
    if (!(#tokens in messages)) return -1;
    return messages.length === messages.#length && isStart(messages, messages.#counted)
      ? messages.#tokens
      : -1;
  }
}

/** perf: a plain loop, because each request compares its whole history. */
function isStart(messages: readonly Message[], counted: readonly Message[]): boolean {
  for (let index = 0; index < messages.length; index++) if (counted[index] !== messages[index]) return false;
  return true;
}

/**
 * Notes the estimated tokens of a new list of frozen messages; {@link RequestMeter} returns them while the
 * list contains the same messages.
 *
 * @param kept A list that begins with the same messages, and at whose end only messages are added. Default: a
 * copy.
 */
export function noteTokens(
  messages: readonly Message[],
  tokens: number,
  kept: readonly Message[] = messages.slice(),
): void {
  new CountedList(messages, tokens, kept);
}

/**
 * Notes the tokens of a new list that begins as `before` does, except for its last message. Does nothing if
 * the tokens of `before` were not noted.
 */
export function noteLonger(messages: readonly Message[], before: readonly Message[]): void {
  const noted = CountedList.tokensOf(before);
  const same = before.length - 1;
  if (noted < 0 || same < 0) return;
  noteTokens(messages, noted - messageTokens(before[same]!) + sumOf(messages, same));
}

/** Counts the tokens of requests. A view that its context has counted is not counted again. */
export class RequestMeter {
  /** Returns the estimated tokens of a request's messages. */
  count(messages: readonly Message[]): number {
    const noted = CountedList.tokensOf(messages);
    return noted < 0 ? sumOf(messages, 0) : noted;
  }
}

function sumOf(messages: readonly Message[], first: number): number {
  let tokens = 0;
  for (let index = first; index < messages.length; index++) tokens += messageTokens(messages[index]!);
  return tokens;
}

/** The letters that often follow each letter from a to z (at least 1 in 1,250 of all pairs). */
const FOLLOWERS =
  "bcdgiklmnprstuvy aeijlouy aehiklortu aeiosu abcdefgilmnpqrstvxy aeiortu aehinru aeiot abcdefglmnoprstv es aei adefilostuy abeimops acdefgilnostuy bcdfgiklmnoprstuvw aeiloprtuy u acdegimnorstuy acehiklopstuy aehioprstuy abcdeilmnprst aeio aehi pt pr e";

/** Cost of one character beyond Latin in hundredths of a token, up to and including the last code unit. */
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
const USUAL_MARKS =
  `": ", ," ], ." ): ); \${ [] ), () (" ") .# ', }, /* */ ". ./ "; ?: \`, => ). }" }' :/ '. '{ "^ /, \\" "{`;

/** Marks whose repetitions are one token, as in divider lines. */
const DIVIDERS = "#*-./=_+%~";

// perf: all costs below are looked up in tables of numbers, because every character of a run's history is
// counted

/** Class of each UTF-16 code unit; beyond Latin all are `OTHER`. */
const CLASSES = new Uint8Array(0x10000).fill(OTHER);
CLASSES.fill(MARK, 0x21, 0x7f).fill(DIGIT, 0x30, 0x3a).fill(UPPER, 0x41, 0x5b).fill(LOWER, 0x61, 0x7b);
CLASSES.fill(LOWER, 0xc0, 0x250); // accented letters
for (const code of [0x20, 0x09, 0xa0]) CLASSES[code] = SPACE;
for (const code of [0x0a, 0x0d]) CLASSES[code] = BREAK;

/** Number of each letter: 1 to 26 for a plain one, large or small; 0 for an accented one. */
const LETTERS = new Uint8Array(0x10000);
for (let number = 1; number <= 26; number++) LETTERS[0x40 + number] = LETTERS[0x60 + number] = number;

/** Cost of an accented letter. */
const ACCENTED = 71;

/** Cost of each pair of letters in a word, at 32 × number of the first + number of the second. */
const PAIRS = new Uint8Array(32 * 32);
for (const [index, followers] of FOLLOWERS.split(" ").entries()) {
  const row = 32 * (index + 1);
  PAIRS.fill(84, row, row + 27);
  for (const second of followers) PAIRS[row + LETTERS[second.charCodeAt(0)]!] = 0;
}
for (let first = 0; first <= 26; first++) PAIRS[32 * first] = ACCENTED;

/** Cost of each pair of marks, at 128 × first + second. */
const MARK_PAIRS = new Uint8Array(128 * 128).fill(75);
for (const pair of USUAL_MARKS.split(" ")) MARK_PAIRS[128 * pair.charCodeAt(0) + pair.charCodeAt(1)] = 0;
for (let code = 0; code < 128; code++) MARK_PAIRS[129 * code] = 50;
for (const divider of DIVIDERS) MARK_PAIRS[129 * divider.charCodeAt(0)] = 3;

/** Cost of each code unit that is a part of its own. */
const COSTS = new Uint16Array(0x10000);
let first = 0;
for (const [last, cost] of SCRIPTS) {
  COSTS.fill(cost, first, last + 1);
  first = last + 1;
}

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
        let last = 0;
        let next: number = part;
        if (letter === 0) sum += ACCENTED;
        while (++index < length) {
          code = text.charCodeAt(index);
          kind = CLASSES[code] as number;
          if (kind < LOWER || kind > next) break; // a capital after a small letter starts a word
          next = kind;
          const second = LETTERS[code] as number;
          // "aaaa…" is cheaper than other rare pairs
          sum += second === letter && letter === last ? 32 : PAIRS[32 * letter + second] as number;
          last = letter;
          letter = second;
        }
        const chars = index - start;
        sum += before <= BREAK ? 88 : (before === MARK ? 22 : 50) + (chars <= 2 ? 62 : 0);
        if (chars > 4) sum += 19 * (chars - 4);
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
          kind = CLASSES[code = text.charCodeAt(index)] as number;
          if (kind > BREAK) break;
          breaks |= kind;
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
