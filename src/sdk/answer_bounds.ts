/**
 * Checks the size of a provider's answer: each tool call and each block costs time on the thread that all
 * runs share.
 */
import { PreampError } from "./errors.ts";
import { isObject } from "./json.ts";

/** Limits of one answer. */
export interface AnswerBounds {
  readonly max_answer_tool_calls: number;
  readonly max_answer_blocks: number;
}

/**
 * Checks an answer before any other processing.
 *
 * @throws {PreampError} `provider_bad_response` when it has too many tool calls or blocks.
 */
export function checkAnswerBounds(answer: unknown, bounds: AnswerBounds): void {
  if (!isObject(answer)) return;
  check(answer.content ?? answer.content_blocks, "content blocks", "max_answer_blocks", bounds);
  check(answer.tool_calls, "tool calls", "max_answer_tool_calls", bounds);
}

function check(list: unknown, items: string, name: keyof AnswerBounds, bounds: AnswerBounds): void {
  if (!Array.isArray(list) || list.length <= bounds[name]) return;
  throw new PreampError(
    "provider_bad_response",
    `Cannot read the provider's answer: it may have at most ${
      bounds[name]
    } ${items} (limits.${name}): received ${list.length}`,
  );
}
