/**
 * Estimates the tokens of messages, tool specifications and requests, without a tokenizer.
 */
import { isCallBlock } from "./checks.ts";
import { knownTokens, setTokens } from "./frozen_data.ts";
import { imageTokens, MEDIA_BLOCK_TOKENS } from "./images.ts";
import { isObject, type JsonObject } from "./json.ts";
import type { Message, ToolSpec } from "./messages.ts";
import { estimateTokens } from "./text_tokens.ts";

export { estimateTokens, MEDIA_BLOCK_TOKENS };

/** Tokens of a message in addition to its content: role, separators. */
export const MESSAGE_OVERHEAD_TOKENS = 4;

/** Tokens around a tool call, the id of a result, or a tool specification; an assumed value. */
const ENVELOPE_TOKENS = 8;

const MEDIA: ReadonlySet<unknown> = new Set(
  "image image_url input_image audio input_audio video document file input_file".split(" "),
);

/**
 * Returns the estimated tokens of one message: content, tool calls (counted once), name, and {@link
 * MESSAGE_OVERHEAD_TOKENS}. An image in base64 costs 400, 1,600 or 3,000 tokens by its longest side: up to
 * 512 pixels, up to 1,100, more. Other media cost {@link MEDIA_BLOCK_TOKENS} each. Fields may be missing or
 * of the wrong type. A message of the log is counted once.
 */
export function messageTokens(message: Message): number {
  if (!isObject(message)) return countMessage(message);
  let tokens = knownTokens(message);
  if (tokens < 0) setTokens(message, tokens = countMessage(message));
  return tokens;
}

function countMessage(message: Message): number {
  if (!isObject(message)) return MESSAGE_OVERHEAD_TOKENS + contentTokens(message);
  const fields: JsonObject = message;
  let tokens = MESSAGE_OVERHEAD_TOKENS + contentTokens(fields.content);
  if (typeof fields.name === "string") tokens += estimateTokens(fields.name);
  if (typeof fields.tool_call_id === "string") tokens += ENVELOPE_TOKENS;
  if (Array.isArray(fields.tool_calls) && !hasCallBlocks(fields.content)) {
    for (const call of fields.tool_calls) tokens += callTokens(call);
  }
  return tokens;
}

function contentTokens(content: unknown): number {
  if (typeof content === "string") return estimateTokens(content);
  if (Array.isArray(content)) {
    return content.reduce((sum: number, block) => sum + blockTokens(block), 0);
  }
  return content === null || content === undefined ? 0 : blockTokens(content);
}

function blockTokens(block: unknown): number {
  if (typeof block === "string") return estimateTokens(block);
  if (!isObject(block)) return estimateTokens(String(block));
  switch (block.type) {
    case "text":
      return contentTokens(block.text);
    case "thinking":
      return contentTokens(block.thinking);
    case "tool_call":
    case "tool_use":
      return callTokens(block);
    case "tool_result":
      return ENVELOPE_TOKENS + contentTokens(block.output ?? block.content);
    case "image":
      return imageTokens(isObject(block.source) ? block.source.data : undefined);
    default:
      return MEDIA.has(block.type) ? MEDIA_BLOCK_TOKENS : estimateTokens(jsonText(block));
  }
}

function hasCallBlocks(content: unknown): boolean {
  return Array.isArray(content) && content.some(isCallBlock);
}

function callTokens(call: unknown): number {
  if (!isObject(call)) return ENVELOPE_TOKENS;
  const named = isObject(call.function) ? call.function : call;
  const input = named.arguments ?? named.input ?? {};
  return ENVELOPE_TOKENS + estimateTokens(String(named.name ?? named.tool ?? "")) +
    estimateTokens(typeof input === "string" ? input : jsonText(input));
}

function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return String(value); // a cycle or a BigInt
  }
}

const knownTools = new WeakMap<ToolSpec, number>();

/** Returns the estimated tokens of tool specifications. Each object is counted once. */
export function toolTokens(tools: readonly ToolSpec[] | undefined): number {
  let tokens = 0;
  for (const tool of tools ?? []) {
    let size = knownTools.get(tool);
    if (size === undefined) knownTools.set(tool, size = ENVELOPE_TOKENS + estimateTokens(jsonText(tool)));
    tokens += size;
  }
  return tokens;
}

/** Returns the estimated tokens of a request's messages. */
export function requestTokens(messages: readonly Message[]): number {
  let tokens = 0;
  for (const message of messages) tokens += messageTokens(message);
  return tokens;
}
