/**
 * Which bytes are text, and in which encoding. A file is written in the encoding in which it was read. Bytes
 * whose encoding is not certain are no text, because a wrong guess would damage them.
 */
import { FileError } from "./access.ts";

/** An encoding with the byte order mark that a file begins with. */
export interface Encoding {
  /** Name in the Encoding Standard, such as `utf-8` or `windows-1252`. */
  readonly name: string;
  /** The bytes of the mark; empty without one. */
  readonly mark: readonly number[];
}

export const UTF_8: Encoding = { name: "utf-8", mark: [] };
const MARKED: readonly Encoding[] = [
  { name: "utf-8", mark: [0xef, 0xbb, 0xbf] },
  { name: "utf-16le", mark: [0xff, 0xfe] },
  { name: "utf-16be", mark: [0xfe, 0xff] },
];

/** Characters in which a NUL means that a file is no text. */
const SNIFFED_CHARS = 8192;
/** Control characters that texts do not have. */
// deno-lint-ignore no-control-regex -- they are what is searched
const CONTROLS = /[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]/;
/** Share of the bytes of UTF-16 without a mark that are zero. */
const MIN_UTF_16_ZEROS = 0.3;
/** Letters with accents that are taken for Western ones without asking the detector. */
const MIN_LETTERS = 4;
/** Share of the best confidence that Western text must have: the detector often prefers rarer languages. */
const MIN_SHARE = 2 / 3;
/** Bytes beyond ASCII, and the confidence, from which on the detector is believed. */
const MIN_EVIDENCE = 8;
const MIN_CONFIDENCE = 0.1;
/** Names of the detector that the Encoding Standard has under another one. */
const STANDARD_NAMES: Readonly<Record<string, string>> = { cp932: "shift_jis", cp949: "euc-kr" };

/**
 * Resolves to the text of a file and its encoding; null when it is no text, or its encoding is not sure.
 *
 * @param isPart Whether the bytes are only the beginning of the file.
 */
export async function decodeText(
  bytes: Uint8Array,
  isPart = false,
): Promise<{ text: string; encoding: Encoding } | null> {
  const decoded = ({ name, mark }: Encoding) => {
    try {
      const decoder = new TextDecoder(name, { fatal: true, ignoreBOM: true });
      const text = decoder.decode(bytes.subarray(mark.length), { stream: isPart });
      if (text.slice(0, SNIFFED_CHARS).includes("\0")) return null;
      return { text, encoding: { name: decoder.encoding, mark } };
    } catch {
      return null; // bytes that the encoding does not have, or a name that TextDecoder does not know
    }
  };
  const marked = MARKED.find(({ mark }) => mark.every((byte, at) => bytes[at] === byte));
  if (marked) return decoded(marked);
  const name = unmarkedUtf16(bytes);
  const wide = name === null ? null : decoded({ name, mark: [] });
  if (name !== null) return wide === null || CONTROLS.test(wide.text) ? null : wide;
  const text = decoded(UTF_8);
  if (text !== null) return text;
  const other = await singleOrDoubleByte(bytes);
  return other === null ? null : decoded({ name: other, mark: [] });
}

/** Returns the kind of UTF-16 in which the letters of most languages have a NUL as their high byte. */
function unmarkedUtf16(bytes: Uint8Array): string | null {
  const zeros = [0, 0];
  const head = bytes.subarray(0, SNIFFED_CHARS);
  head.forEach((byte, at) => zeros[at % 2]! += byte === 0 ? 1 : 0);
  const [even, odd] = zeros as [number, number];
  if (
    Math.min(even, odd) > Math.max(even, odd) / 10 || Math.max(even, odd) <= head.length * MIN_UTF_16_ZEROS
  ) return null;
  return odd > even ? "utf-16le" : "utf-16be";
}

async function singleOrDoubleByte(bytes: Uint8Array): Promise<string | null> {
  const western = new TextDecoder("windows-1252").decode(bytes);
  if (CONTROLS.test(western)) return null;
  const isWestern = !NOT_WESTERN.test(western);
  const letters = western.match(WIDE_LETTERS)?.length ?? 0;
  if (isWestern && letters < MIN_LETTERS) return "windows-1252";
  const { detectAll } = await import("jschardet");
  const all = detectAll(bytes, { minimumThreshold: 0 });
  const [best] = all;
  if (!best) return null;
  const own = all.find(({ encoding }) => encoding?.toLowerCase() === "windows-1252")?.confidence ?? 0;
  if (isWestern && own >= best.confidence * MIN_SHARE) return "windows-1252";
  const wide = bytes.reduce((count, byte) => byte < 0x80 ? count : count + 1, 0);
  if (wide < MIN_EVIDENCE || best.confidence < MIN_CONFIDENCE) return null;
  const name = best.encoding?.toLowerCase() ?? "";
  return STANDARD_NAMES[name] ?? name;
}

const WIDE = String.raw`(?![\x00-\x7f])\p{L}`;
const WIDE_LETTERS = new RegExp(WIDE, "gu");
/** What the text of another encoding has when it is read as `windows-1252`, and no Western text has. */
const NOT_WESTERN = new RegExp(
  [
    String.raw`[\x80-\x9fÐÝÞðýþ]`, // no character, or a Turkish one more often than an Icelandic one
    `(?:${WIDE}){3}`, // a word of Greek, Russian or Hebrew letters
    String.raw`(?<!\p{L})(?:${WIDE}){2}(?!\p{L})`,
    String.raw`\p{Ll}(?![\x00-\x7f])\p{Lu}`,
    String.raw`\p{L}[¡-©«-³µ¶¸¹»-¿×÷ƒ†‡ˆ˜]\p{L}`, // a sign within a word
    String.raw`[¢-ª¬-¶¸-º¼-¾×÷ƒˆ˜]{2}`,
  ].join("|"),
  "u",
);

/**
 * Returns a text as the bytes of a file.
 *
 * @throws {FileError} when the encoding has no bytes for one of its characters.
 */
export function encodeText(text: string, { name, mark }: Encoding, path: string): Uint8Array {
  const missing = (character: string): never => {
    throw new FileError(
      `${path} is encoded as ${name}, which has no ${JSON.stringify(character)}: leave that out, ` +
        "or convert the file first",
    );
  };
  if (!text.isWellFormed()) missing("half of a character");
  if (name === "utf-8") return joined(mark, new TextEncoder().encode(text));
  if (name.startsWith("utf-16")) return joined(mark, utf16(text, name === "utf-16le"));
  const table = tableOf(name);
  const bytes = new Uint8Array(text.length * 2);
  let length = 0;
  for (const character of text) {
    for (const byte of table.get(character) ?? missing(character)) bytes[length++] = byte;
  }
  return bytes.slice(0, length);
}

function joined(mark: readonly number[], bytes: Uint8Array): Uint8Array {
  const all = new Uint8Array(mark.length + bytes.length);
  all.set(mark);
  all.set(bytes, mark.length);
  return all;
}

function utf16(text: string, isLittle: boolean): Uint8Array {
  const view = new DataView(new ArrayBuffer(text.length * 2));
  for (let at = 0; at < text.length; at++) view.setUint16(at * 2, text.charCodeAt(at), isLittle);
  return new Uint8Array(view.buffer);
}

/** Returns the bytes of each character that an encoding writes with one or two. */
function tableOf(name: string): Map<string, readonly number[]> {
  const decoder = new TextDecoder(name);
  const table = new Map<string, readonly number[]>();
  const add = (...bytes: number[]) => {
    const text = decoder.decode(new Uint8Array(bytes));
    const isOne = text.length === 1 && text !== "\ufffd";
    if (isOne && !table.has(text)) table.set(text, bytes);
    return isOne;
  };
  for (let first = 0; first < 256; first++) {
    if (add(first)) continue;
    for (let second = 0x40; second < 0xff; second++) add(first, second);
  }
  return table;
}
