/** Maps the API's `finishReason`. */
import { type JsonObject, LLMError } from "preamp/base";

/** How a response ended. */
export interface Ending {
  /** `finishReason` of the API; undefined when the response ended without one. */
  readonly reason: string | undefined;
  /** Returns the end of the response as text: the client leaves `finishMessage` out. */
  tail(): string;
  /** Whether the answer has more than thoughts. */
  readonly has_output: boolean;
  readonly has_calls: boolean;
  /** Names of the functions that the request offered. */
  readonly tools: readonly string[];
}

const FILTERED: ReadonlySet<string> = new Set([
  "SAFETY",
  "RECITATION",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
]);

/** The model wrote a call that the API could not read. */
const MALFORMED: ReadonlySet<string> = new Set(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"]);

/**
 * Returns the finish reason of an answer. A call that the API could not read is returned as `invalid_call`, so
 * that the model gets an error that it can correct.
 *
 * @throws {LLMError} `StreamError` when the response is incomplete or empty, `ContentFilterError` when all of
 * the answer was filtered.
 */
export function finishOf(ending: Ending): { finish_reason: string; invalid_call?: JsonObject } {
  const { reason, has_output, has_calls, tools } = ending;
  if (reason === undefined) {
    throw new LLMError("StreamError", "The response of Gemini ended without a finish reason");
  }
  if (MALFORMED.has(reason) && !has_calls) {
    const message = messageIn(ending.tail());
    const name = calledTool(message, tools);
    if (name !== undefined) {
      return { finish_reason: "tool_calls", invalid_call: { name, arguments: message } };
    }
  }
  if (FILTERED.has(reason)) {
    if (has_output) return { finish_reason: "content_filter" };
    const message = messageIn(ending.tail());
    throw new LLMError("ContentFilterError", `Gemini filtered the answer: ${reason}${suffix(message)}`);
  }
  if (reason === "MAX_TOKENS" || reason === "CONTINUATION") return { finish_reason: "length" };
  if (has_calls) return { finish_reason: "tool_calls" };
  if (reason === "STOP") return { finish_reason: "stop" };
  if (has_output) return { finish_reason: reason.toLowerCase() };
  const message = messageIn(ending.tail());
  throw new LLMError("StreamError", `Gemini ended without an answer: ${reason}${suffix(message)}`);
}

/** Returns `finishMessage` of a response, or an empty text. */
function messageIn(tail: string): string {
  const [, text] = /"finishMessage":\s*("(?:[^"\\]|\\.)*")/.exec(tail) ?? [];
  return text === undefined ? "" : String(JSON.parse(text));
}

/** Returns the function that is named in the message of an unreadable call, such as `print(default_api.add(`. */
function calledTool(message: string, tools: readonly string[]): string | undefined {
  const [, call = ""] = /^(?:Malformed function call:)?(.*)/is.exec(message) ?? [];
  return call.match(/[\w-]+/g)?.find((word) => tools.includes(word));
}

function suffix(message: string): string {
  return message === "" ? "" : `: ${message.slice(0, 300)}`;
}
