/**
 * Estimates the tokens of messages, tool specifications and requests, without a tokenizer.
 */
import { isCallBlock } from "./checks.ts";
import { Argument, knownTokens, setTokens } from "./frozen_data.ts";
import { isObject, type JsonObject } from "./json.ts";
import type { Message, ToolSpec } from "./messages.ts";
import { estimateTokens } from "./text_tokens.ts";

export { estimateTokens };

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
  return Array.isArray(content) && content.some(isCallBlock);
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
