/**
 * Glob → matcher, in time linear in the text whatever pattern and text are: all places in the pattern that the text so far
 * may have reached are one bit set (Baeza-Yates and Gonnet, "A New Approach to Text Searching", CACM 1992), so nothing is
 * ever tried twice. No regular expression: a pattern comes from a plan, a text from a model.
 *
 * `*` is any run of characters, `?` is one, `\` takes the next character as it is. The whole text must match, with case.
 */

/** Characters a glob may have; our choice. It bounds the bit set at nine words. */
export const MAX_GLOB_CHARS = 256;

/** Tells whether a text matches. */
export type Glob = (text: string) => boolean;

interface Pattern {
  /** The bits of each character that the pattern names; all others have those of `any`. */
  rows: Map<number, Uint32Array>;
  any: Uint32Array;
  /** Places before a `*`: once reached, they stay reached. */
  stays: Uint32Array;
  /** Characters that the pattern asks for; the place behind the last is the end. */
  length: number;
}

/** Returns the matcher of a pattern of at most {@link MAX_GLOB_CHARS} characters. */
export function compileGlob(pattern: string): Glob {
  if (!/[*?\\]/.test(pattern)) return (text) => text === pattern;
  const compiled = parse(pattern);
  return (text) => run(compiled, text);
}

function parse(pattern: string): Pattern {
  const size = (pattern.length >> 5) + 1;
  const elements: (number | "any")[] = [];
  const stays = new Uint32Array(size);
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern.charAt(at);
    if (character === "*") setBit(stays, elements.length);
    else if (character === "?") elements.push("any");
    else {
      if (character === "\\" && at + 1 < pattern.length) at++;
      elements.push(pattern.charCodeAt(at));
    }
  }
  const any = new Uint32Array(size);
  const rows = new Map<number, Uint32Array>();
  for (const [place, element] of elements.entries()) if (element === "any") setBit(any, place);
  for (const [place, element] of elements.entries()) {
    if (element === "any") continue;
    const row = rows.get(element) ?? any.slice();
    setBit(row, place);
    rows.set(element, row);
  }
  return { rows, any, stays, length: elements.length };
}

function run({ rows, any, stays, length }: Pattern, text: string): boolean {
  const reached = new Uint32Array(stays.length);
  reached[0] = 1;
  for (let at = 0; at < text.length; at++) {
    const row = rows.get(text.charCodeAt(at)) ?? any;
    let carry = 0;
    let alive = 0;
    for (let word = 0; word < reached.length; word++) {
      const before = reached[word] ?? 0;
      const stepped = before & (row[word] ?? 0);
      const after = (stepped << 1) | carry | (before & (stays[word] ?? 0));
      carry = stepped >>> 31;
      reached[word] = after;
      alive |= after;
    }
    if (alive === 0) return false;
  }
  return ((reached[length >> 5] ?? 0) & (1 << (length & 31))) !== 0;
}

function setBit(set: Uint32Array, place: number): void {
  set[place >> 5] = (set[place >> 5] ?? 0) | (1 << (place & 31));
}
