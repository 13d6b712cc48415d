/**
 * Checks without a schema library, because they run on every call: of the fields of data models, of content
 * blocks, and of the size of a provider's answer.
 */
import { PreampError } from "./errors.ts";
import { isObject } from "./json.ts";
import { describe, describeKind } from "./value_path.ts";

/** Returns the error of a factory: `Cannot make a <model>: <field> <rule>: received <value>`. */
export function fieldError(model: string, field: string, rule: string, value: unknown): TypeError {
  return new TypeError(`Cannot make a ${model}: ${field} ${rule}: received ${describe(value)}`);
}

/** Returns {@link fieldError} with the kind of the value only, because the value is content. */
export function kindError(model: string, field: string, rule: string, value: unknown): TypeError {
  return new TypeError(`Cannot make a ${model}: ${field} ${rule}: received ${describeKind(value)}`);
}

/** Throws unless a field is a non-empty string. */
export function requireText(model: string, field: string, value: unknown): void {
  if (typeof value !== "string" || value === "") {
    throw fieldError(model, field, "must be a non-empty string", value);
  }
}

/** Throws unless a field is a list of strings. */
export function requireTexts(model: string, field: string, value: unknown): void {
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) {
    throw fieldError(model, field, "must be a list of strings", value);
  }
}

/** Throws unless a field is an object. */
export function requireObject(model: string, field: string, value: unknown): void {
  if (!isObject(value)) throw fieldError(model, field, "must be an object", value);
}

/** Throws unless a field is a whole number of at least `minimum`. */
export function requireWhole(model: string, field: string, value: unknown, minimum: number): void {
  if (!Number.isSafeInteger(value) || (value as number) < minimum) {
    throw fieldError(model, field, `must be a whole number of at least ${minimum}`, value);
  }
}

/** Throws unless a field is one of the words. */
export function requireOneOf(model: string, field: string, value: unknown, words: readonly string[]): void {
  if (!words.includes(value as string)) {
    throw fieldError(model, field, `must be one of ${words.join(", ")}`, value);
  }
}

/** Limits of one answer: each tool call and each block costs time on the thread that all runs share. */
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
  requireAtMost(answer.content ?? answer.content_blocks, "content blocks", "max_answer_blocks", bounds);
  requireAtMost(answer.tool_calls, "tool calls", "max_answer_tool_calls", bounds);
}

function requireAtMost(list: unknown, items: string, name: keyof AnswerBounds, bounds: AnswerBounds): void {
  if (!Array.isArray(list) || list.length <= bounds[name]) return;
  throw new PreampError(
    "provider_bad_response",
    `Cannot read the provider's answer: it may have at most ${
      bounds[name]
    } ${items} (limits.${name}): received ${list.length}`,
  );
}

/** Returns whether a content block is a tool call. */
export function isCallBlock(block: unknown): boolean {
  return isObject(block) && (block.type === "tool_call" || block.type === "tool_use");
}
