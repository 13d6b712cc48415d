/** Converts an answer to the data of the log and to the stored message. */
import { isObject, type JsonObject } from "../json.ts";
import type { ChatResponse, Message, StoredToolCall } from "../messages.ts";
import type { ToolCall } from "../tools.ts";

/** Returns whether an answer was cut off at the model's limit or filtered. */
export function isCut(response: ChatResponse): boolean {
  return ["length", "max_tokens", "max_output_tokens", "content_filter"].includes(
    response.finish_reason ?? "",
  );
}

/** Returns an answer without its tool calls. */
export function withoutCalls({ tool_calls: _, ...response }: ChatResponse): ChatResponse {
  const content = response.content.filter((block) => block.type !== "tool_call" && block.type !== "tool_use");
  return { ...response, content };
}

/** Returns the `response` of `provider:response`: all that resuming and replaying need. */
export function responseData(response: ChatResponse): JsonObject {
  const { content, tool_calls, finish_reason, usage, metadata } = response;
  return { content, tool_calls: tool_calls?.map(loggedCall), finish_reason, usage, metadata };
}

/**
 * Returns a call for the log, including arguments that could not be read: a resumed loop must not take them
 * for an empty object.
 */
function loggedCall(call: ToolCall): JsonObject {
  const { invalid_arguments } = call;
  return invalid_arguments === undefined ? { ...call } : { ...call, invalid_arguments };
}

/** Returns the stored message of an answer; its calls have `name` and `tool`. */
export function assistantMessage(
  response: Pick<ChatResponse, "content" | "tool_calls" | "metadata">,
): Message {
  const message: Message = { role: "assistant", content: response.content };
  if (response.tool_calls && response.tool_calls.length > 0) {
    message.tool_calls = response.tool_calls.map(storedCall);
  }
  if (isObject(response.metadata)) message.metadata = response.metadata;
  return message;
}

function storedCall({ id, name, arguments: args, invalid_arguments }: ToolCall): StoredToolCall {
  const stored = { id, name, tool: name, arguments: args };
  return invalid_arguments === undefined ? stored : Object.assign(stored, { invalid_arguments });
}

/** Maximum code points of `response_preview` in `prompt:complete`. */
const PREVIEW_LENGTH = 200;

/**
 * Returns the data of `prompt:complete`: the beginning of a text and its length in code points. Splits only the beginning, because the text
 * may be long.
 */
export function previewOf(text: string): JsonObject {
  const response_preview = text.length <= PREVIEW_LENGTH
    ? text
    : [...text.slice(0, 2 * PREVIEW_LENGTH)].slice(0, PREVIEW_LENGTH).join("");
  return { response_preview, length: text.length - surrogatePairs(text) };
}

/** Returns the number of characters of two code units. perf: a regular expression takes four times as long. */
function surrogatePairs(text: string): number {
  let pairs = 0;
  for (let index = 1; index < text.length; index++) {
    if ((text.charCodeAt(index) & 0xfc00) !== 0xdc00) continue;
    if ((text.charCodeAt(index - 1) & 0xfc00) === 0xd800) pairs++;
  }
  return pairs;
}
