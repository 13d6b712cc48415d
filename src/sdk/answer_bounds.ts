/** How much one answer of a provider may hold: each call and each block of it is work for the thread that all runs share. Pure. */
import { PreampError } from "./errors.ts";
import { isObject } from "./json.ts";

/** Bounds of one answer. */
export interface AnswerBounds {
  readonly max_answer_tool_calls: number;
  readonly max_answer_blocks: number;
}

/**
 * Checks an answer before anything else is done with it.
 * @throws {PreampError} `provider_bad_response` when it holds too much.
 */
export function checkAnswerBounds(answer: unknown, bounds: AnswerBounds): void {
  if (!isObject(answer)) return;
  check(answer.content ?? answer.content_blocks, "content blocks", "max_answer_blocks", bounds);
  check(answer.tool_calls, "tool calls", "max_answer_tool_calls", bounds);
}

function check(list: unknown, what: string, name: keyof AnswerBounds, bounds: AnswerBounds): void {
  if (!Array.isArray(list) || list.length <= bounds[name]) return;
  throw new PreampError(
    "provider_bad_response",
    `Cannot read the answer of the provider: it may have ${
      bounds[name]
    } ${what} (limits.${name}): received ${list.length}`,
  );
}
