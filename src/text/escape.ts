/** Text that is safe to show: on one line, in a terminal, in a log, in a message. Knows nothing of HTTP. */

/** ASCII without control characters: nearly all there is. */
const PLAIN = /^[ -~]*$/;

/**
 * Returns text whose unprintable characters are written as JSON's `\uXXXX` (a pair of them above U+FFFF). Applied to the
 * text of a JSON document it gives the text of the same document (threats.md T40).
 */
export function escapeUnprintable(text: string): string {
  if (PLAIN.test(text)) return text;
  // Control, format (bidi, zero width), line and paragraph separator, lone surrogate. Here, because making it takes 0.7 ms.
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, escapeUnits);
}

function escapeUnits(character: string): string {
  let escaped = "";
  for (let index = 0; index < character.length; index++) {
    escaped += `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
  }
  return escaped;
}

/** Returns text as one printable line of at most `maxBytes` bytes of UTF-8; what was cut is marked by `…`. */
export function escapeAndTruncate(text: string, maxBytes: number): string {
  // Escapes grow the text sixfold at most, so nothing beyond maxBytes characters can ever be kept.
  const line = escapeUnprintable(text.slice(0, maxBytes + 1).replaceAll(/[\r\n\t]+/g, " "));
  const encoder = new TextEncoder();
  if (line.length <= maxBytes && encoder.encode(line).length <= maxBytes) return line;
  const room = new Uint8Array(maxBytes - 3); // "…" takes three bytes
  const { read } = encoder.encodeInto(line, room);
  return `${line.slice(0, read)}…`;
}
