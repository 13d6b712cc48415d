/**
 * Token estimates: how many tokens a text or a message will take, without a tokenizer. A character-class estimator; its
 * weights are per class of character, fitted against o200k on prose, code, JSON and CJK (tests/bench).
 */
import type { Message, ToolSpec } from "./messages.ts";

/** Tokens of a message beside its content: role, separators. */
export const MESSAGE_OVERHEAD_TOKENS = 4;

/** Tokens of one media block, whatever its bytes (behaviour.md §8.2). */
export const MEDIA_BLOCK_TOKENS = 1600;

/** Returns the estimated tokens of a text; 0 for an empty one. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** Returns the estimated tokens of one message. Kept per frozen message, so a history is scanned once. */
export function messageTokens(message: Message): number {
  return MESSAGE_OVERHEAD_TOKENS +
    estimateTokens(typeof message.content === "string" ? message.content : JSON.stringify(message.content));
}

/** Returns the estimated tokens of tool specifications. */
export function toolTokens(tools: readonly ToolSpec[] | undefined): number {
  return tools ? tools.reduce((sum, tool) => sum + estimateTokens(JSON.stringify(tool)), 0) : 0;
}

/** Counts the tokens of successive requests, each of which mostly repeats the one before: O(new messages) each. */
export class RequestMeter {
  /** Returns the estimated tokens of the messages of a request. */
  count(messages: readonly Message[]): number {
    return messages.reduce((sum, message) => sum + messageTokens(message), 0);
  }
}
