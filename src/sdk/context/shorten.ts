/** Shortens tool results and user messages. Pure: the same message gives the same text. */
import { isObject, type Message, messageTokens, textOf } from "../base.ts";
import { frozenMessage } from "./frozen_message.ts";

/** Characters of a user message that are quoted in its stub. */
const QUOTED_CHARS = 50;

/** Maximum characters of a user message that is never shortened. */
const SHORT_USER_CHARS = 80;

/**
 * Share of the kept beginning that is also kept from the end of a tool result: errors are often at the end.
 */
const TAIL_SHARE = 0.4;

/** Share of a capped result that is kept from its end. */
const CAPPED_TAIL_SHARE = 0.25;

/**
 * Returns a tool message whose content is a marker (with `handle`, if given), its first `chars` characters,
 * "..." and a part of its end. Media are left out. Returns null when that saves nothing, and for messages of
 * other roles.
 */
export function truncated(message: Message, chars: number, handle: string | null = null): Message | null {
  if (message.role !== "tool") return null;
  const text = textOf(message.content);
  const media = mediaCount(message.content);
  const tail = Math.floor(chars * TAIL_SHARE);
  if (media === 0 && text.length <= chars + tail) return null;
  const original = messageTokens(message);
  const advice = handle === null
    ? "call tool again if needed"
    : `context_recall("${handle}") reads all of it`;
  const marker = `[truncated: ~${grouped(original)} tokens - ${advice}] `;
  const body = text.length <= chars + tail ? text : `${headOf(text, chars)}...${tailOf(text, tail)}`;
  const short = frozenMessage({ ...message, content: `${marker}${body}` });
  return messageTokens(short) < original ? short : null;
}

/** Returns a user message whose content is a stub that quotes its beginning; null when that saves nothing. */
export function stubbed(message: Message, handle: string | null = null): Message | null {
  const text = textOf(message.content);
  const media = mediaCount(message.content);
  if (media === 0 && text.length <= SHORT_USER_CHARS) return null;
  const quote = headOf(text, QUOTED_CHARS).replaceAll("\r", " ").replaceAll("\n", " ");
  const attached = media === 0 ? "" : ` and ${media} attachment${media === 1 ? "" : "s"}`;
  const where = handle === null ? "" : ` - context_recall("${handle}") reads all of it`;
  const content = `[User message compacted - original: "${quote}..."${attached}${where}]`;
  const stub = frozenMessage({ ...message, content });
  return messageTokens(stub) < messageTokens(message) ? stub : null;
}

/**
 * Returns text with at most `max_bytes` bytes in UTF-8, plus a marker for the removed middle, and its
 * original size. Returns null when the text is not longer than that.
 */
export function capped(
  text: string,
  max_bytes: number,
  handle: string | null = null,
): { text: string; original_bytes: number } | null {
  if (text.length * 3 <= max_bytes) return null; // a UTF-16 code unit is at most three bytes
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= max_bytes) return null;
  const head = Math.floor(max_bytes * (1 - CAPPED_TAIL_SHARE));
  let start = bytes.length - (max_bytes - head);
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start++; // inside a character: skip to the next
  // with `stream`, the decoder drops a character that is cut off at the end
  const first = new TextDecoder().decode(bytes.subarray(0, head), { stream: true });
  const last = new TextDecoder().decode(bytes.subarray(start));
  const where = handle === null ? "" : `, context_recall("${handle}") reads them`;
  const marker = `[... tool result shortened: ${grouped(bytes.length)} bytes in all${where} ...]`;
  return { text: `${first}\n${marker}\n${last}`, original_bytes: bytes.length };
}

/** Returns a whole number with thousands separators. `toLocaleString` takes a hundred times as long. */
function grouped(number: number): string {
  let text = String(number);
  for (let at = text.length - 3; at > 0; at -= 3) text = `${text.slice(0, at)},${text.slice(at)}`;
  return text;
}

/** Returns the first `chars` UTF-16 code units, one less if that would split a character. */
function headOf(text: string, chars: number): string {
  const last = text.charCodeAt(chars - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? chars - 1 : chars);
}

function tailOf(text: string, chars: number): string {
  const start = text.length - chars;
  const first = text.charCodeAt(start);
  return text.slice(first >= 0xdc00 && first < 0xe000 ? start + 1 : start);
}

function mediaCount(content: unknown): number {
  if (!Array.isArray(content)) return 0;
  return content.filter((block) => isObject(block) && block.type !== "text").length;
}
