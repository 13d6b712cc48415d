/**
 * Shortens and counts messages; the same message gives the same text. The tool `context_recall` returns
 * messages from the full history that a view shortened or left out.
 */
import {
  type ContentBlock,
  isObject,
  type JsonObject,
  type Message,
  messageTokens,
  textOf,
  toBlocks,
  type Tool,
  toolFailure,
} from "../base.ts";
import { frozenMessage } from "./request_message.ts";

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

/** A message and its index in the history; negative when it is not in the history. */
interface Placed {
  readonly index: number;
  readonly message: Message;
}

/** Sizes of a tool result before and after the cap. */
export interface Capped {
  readonly tool_call_id: string;
  readonly original_bytes: number;
  readonly kept_bytes: number;
}

/** Shortens and counts the messages of one context. */
export class MessageVariants {
  readonly #recall: boolean;

  /** Creates the variants; with `recall`, markers name a handle for the tool `context_recall`. */
  constructor(recall: boolean) {
    this.#recall = recall;
  }

  /** Returns the handle in markers, or null. */
  #handle(index: number): string | null {
    return this.#recall && index >= 0 ? handleOf(index) : null;
  }

  /**
   * Returns a tool result whose content is a marker, its first `chars` characters, "..." and a part of its
   * end. Media are left out. Returns null when that saves nothing, and for messages of other roles.
   */
  truncated({ message, index }: Placed, chars: number): Message | null {
    if (message.role !== "tool") return null;
    const text = textOf(message.content);
    const tail = Math.floor(chars * TAIL_SHARE);
    const is_short = text.length <= chars + tail;
    if (is_short && mediaCount(message.content) === 0) return null;
    const handle = this.#handle(index);
    const advice = handle === null
      ? "call tool again if needed"
      : `context_recall("${handle}") reads all of it`;
    const marker = `[truncated: ~${grouped(messageTokens(message))} tokens - ${advice}] `;
    const body = is_short ? text : `${headOf(text, chars)}...${tailOf(text, tail)}`;
    return smaller(message, `${marker}${body}`);
  }

  /**
   * Returns a user message whose content is a stub that quotes its beginning; null when that saves nothing.
   */
  stubbed({ message, index }: Placed): Message | null {
    const text = textOf(message.content);
    const media = mediaCount(message.content);
    if (media === 0 && text.length <= SHORT_USER_CHARS) return null;
    const quote = headOf(text, QUOTED_CHARS).replaceAll("\r", " ").replaceAll("\n", " ");
    const attached = media === 0 ? "" : ` and ${media} attachment${media === 1 ? "" : "s"}`;
    const handle = this.#handle(index);
    const where = handle === null ? "" : ` - context_recall("${handle}") reads all of it`;
    return smaller(message, `[User message compacted - original: "${quote}..."${attached}${where}]`);
  }

  /**
   * Returns the message with texts of at most `max_bytes`, and the sizes before and after; null when it is
   * not a tool result or not longer.
   */
  capped({ message, index }: Placed, max_bytes: number): { message: Message; capped: Capped } | null {
    if (message.role !== "tool") return null;
    let original_bytes = 0;
    const shorten = (text: string) => {
      const short = cappedText(text, max_bytes, this.#handle(index));
      original_bytes += short?.original_bytes ?? 0;
      return short?.text ?? text;
    };
    const content = typeof message.content === "string"
      ? shorten(message.content)
      : message.content.map((block) =>
        typeof block.text === "string" ? { ...block, text: shorten(block.text) } : block
      );
    if (original_bytes === 0) return null;
    return {
      message: frozenMessage({ ...message, content }),
      capped: { tool_call_id: String(message.tool_call_id ?? ""), original_bytes, kept_bytes: max_bytes },
    };
  }
}

function smaller(message: Message, content: string): Message | null {
  const short = frozenMessage({ ...message, content });
  return messageTokens(short) < messageTokens(message) ? short : null;
}

/**
 * Returns text with at most `max_bytes` bytes in UTF-8, plus a marker for the removed middle, and its
 * original size. Returns null when the text is not longer than that.
 */
function cappedText(
  text: string,
  max_bytes: number,
  handle: string | null,
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

/** Maximum characters of one result; a longer text is read in parts, by `offset`. */
const MOST_CHARS = 20_000;

/** Returns the handle of a message by its index in the history. */
function handleOf(index: number): string {
  return `m${index}`;
}

/** Returns the handles of the last six ranges, such as `m3-m40, m52`. */
export function handlesOf(stretches: readonly (readonly [number, number])[]): string {
  return stretches.slice(-6).map(([first, last]) =>
    first === last ? handleOf(first) : `${handleOf(first)}-${handleOf(last)}`
  ).join(", ");
}

/** Returns the tool; `historyOf` returns the current full history. */
export function recallTool(historyOf: () => readonly Message[]): Tool {
  return {
    name: "context_recall",
    description:
      "Reads back earlier messages of this conversation that were shortened or left out. Takes the handle given in a marker or note: one message (m12) or a range (m3-m9). Long texts come in pieces: repeat with the next_offset of the answer.",
    input_schema: {
      type: "object",
      properties: {
        handle: { type: "string", description: "A handle such as m12 or m3-m9" },
        offset: { type: "integer", minimum: 0, description: "First character to read; default 0" },
      },
      required: ["handle"],
    },
    idempotent: true,
    execute: (input) => Promise.resolve(recall(historyOf(), input)),
  };
}

function recall(history: readonly Message[], input: JsonObject): unknown {
  const { handle, offset = 0 } = input;
  const range = typeof handle === "string" ? rangeOf(handle.trim(), history.length) : null;
  if (!range) {
    const message = `Cannot recall ${JSON.stringify(handle)}: a handle is m0 to m${
      Math.max(0, history.length - 1)
    }, or a range of two joined by "-"`;
    return toolFailure(message, { type: "tool_input_invalid" });
  }
  const start = typeof offset === "number" && Number.isSafeInteger(offset) && offset > 0 ? offset : 0;
  const messages = history.slice(range[0], range[1] + 1);
  const text = messages.length === 1 ? contentOf(messages[0]) : messages.map((message, at) => {
    const role = isObject(message) ? String(message.role) : "unknown";
    return `[${handleOf(range[0] + at)} ${role}]\n${contentOf(message)}`;
  }).join("\n\n");
  const most = start + MOST_CHARS;
  const is_split = text.codePointAt(most - 1)! > 0xffff; // a character of two code units stays whole
  const end = Math.min(text.length, is_split ? most - 1 : most);
  const answer: JsonObject = { handle, total_chars: text.length, text: text.slice(start, end) };
  if (end < text.length) answer.next_offset = end;
  const images = messages.length === 1 && start === 0 ? imagesOf(toBlocks(messages[0]?.content)) : [];
  if (images.length === 0) return { success: true, output: answer };
  return {
    success: true,
    output: answer,
    content: [{ type: "text", text: JSON.stringify(answer) }, ...images],
  };
}

/** Returns the images in base64 of content. */
function imagesOf(blocks: readonly ContentBlock[]): unknown[] {
  return blocks.filter(({ type, source }) =>
    type === "image" && isObject(source) && source.type === "base64"
  );
}

function rangeOf(handle: string, count: number): [number, number] | null {
  const [, first, last = first] = /^m(\d+)(?:-m(\d+))?$/.exec(handle) ?? [];
  const end = Math.min(Number(last), count - 1);
  return Number(first) <= end ? [Number(first), end] : null;
}

/** Returns the text and calls of a message; its content as JSON if it has neither, its images in words. */
function contentOf(message: Message | undefined): string {
  if (!isObject(message)) return JSON.stringify(message) ?? "";
  const images = imagesOf(toBlocks(message.content)).length;
  const note = images === 0 ? "" : `[${images} image${images === 1 ? "" : "s"}]`;
  const text = [textOf(message.content), note].filter((part) => part !== "").join("\n");
  const calls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0
    ? JSON.stringify(message.tool_calls)
    : "";
  if (text !== "" || calls !== "") return [text, calls].filter((part) => part !== "").join("\n");
  return JSON.stringify(message.content) ?? "";
}
