/** Converts an answer to log data and to the stored message; finds the answer at which a turn resumes. */
import { isCallBlock } from "../checks.ts";
import { isObject, type JsonObject, toFrozenOwn } from "../json.ts";
import { type ChatResponse, type Message, type StoredToolCall, textOf } from "../messages.ts";
import { parseToolCall, type ToolCall } from "../tools.ts";

/** Finish reasons of an answer that the limit of output tokens cut. */
const LENGTHS: ReadonlySet<unknown> = new Set(["length", "max_tokens", "max_output_tokens"]);

/** Returns whether an answer was cut off at the model's limit or filtered. */
export function isCut({ finish_reason }: ChatResponse): boolean {
  return LENGTHS.has(finish_reason) || finish_reason === "content_filter";
}

/** Returns the id of the last call if the limit of output tokens cut its arguments. */
export function cutCallOf(calls: readonly ToolCall[], finish_reason: unknown): string | undefined {
  const last = calls.at(-1);
  return LENGTHS.has(finish_reason) && last?.invalid_arguments !== undefined ? last.id : undefined;
}

/** Returns an answer without its tool calls. */
export function withoutCalls({ tool_calls: _, ...response }: ChatResponse): ChatResponse {
  return { ...response, content: response.content.filter((block) => !isCallBlock(block)) };
}

/** Returns the `response` of `provider:response`: all that resuming and replaying need. */
export function responseData(
  { content, tool_calls, finish_reason, usage, metadata }: ChatResponse,
): JsonObject {
  const data: JsonObject = { content };
  if (tool_calls) data.tool_calls = tool_calls.map((call) => withUnreadable(call, { ...call }));
  if (finish_reason !== undefined) data.finish_reason = finish_reason;
  if (usage !== undefined) data.usage = usage;
  if (metadata !== undefined) data.metadata = metadata;
  return data;
}

/**
 * Returns the stored message of an answer; its calls have `name` and `tool`. The metadata has the
 * `finish_reason` of an answer whose last call was cut.
 */
export function assistantMessage(
  { content, tool_calls, metadata, finish_reason }: Pick<
    ChatResponse,
    "content" | "tool_calls" | "metadata" | "finish_reason"
  >,
): Message {
  const message: Message = { role: "assistant", content };
  if (tool_calls && tool_calls.length > 0) message.tool_calls = tool_calls.map(storedCall);
  const is_cut = tool_calls !== undefined && cutCallOf(tool_calls, finish_reason) !== undefined;
  if (isObject(metadata) || is_cut) message.metadata = is_cut ? { ...metadata, finish_reason } : metadata!;
  return message;
}

function storedCall(call: ToolCall): StoredToolCall {
  const { id, name, arguments: args } = call;
  return withUnreadable(call, { id, name, tool: name, arguments: args }) as unknown as StoredToolCall; // the same fields
}

/**
 * Returns the frozen fields of a call, with the text of arguments that could not be read: a resumed loop must
 * not take them for an empty object.
 */
function withUnreadable({ invalid_arguments }: ToolCall, fields: JsonObject): JsonObject {
  if (invalid_arguments !== undefined) fields.invalid_arguments = invalid_arguments;
  return toFrozenOwn(fields);
}

/** Maximum code points of `response_preview` in `prompt:complete`. */
const PREVIEW_LENGTH = 200;

/**
 * Returns the data of `prompt:complete`: the beginning of a text and its length in code points. Splits only
 * the beginning, because the text may be long.
 */
export function previewOf(text: string): JsonObject {
  const response_preview = text.length <= PREVIEW_LENGTH
    ? text
    : [...text.slice(0, 2 * PREVIEW_LENGTH)].slice(0, PREVIEW_LENGTH).join("");
  return { response_preview, length: text.length - surrogatePairs(text) };
}

/** Returns the number of surrogate pairs. perf: a regular expression takes four times as long. */
function surrogatePairs(text: string): number {
  let pairs = 0;
  for (let index = 1; index < text.length; index++) {
    if ((text.charCodeAt(index) & 0xfc00) !== 0xdc00) continue;
    if ((text.charCodeAt(index - 1) & 0xfc00) === 0xd800) pairs++;
  }
  return pairs;
}

/** Point at which a turn resumes. */
export interface Standing {
  /** Unanswered calls of the last assistant message, in call order. */
  open_calls: ToolCall[];
  /** Id of the call among them that the limit of output tokens cut. */
  cut_call?: string;
  /** Text of the last message if it is an answer without calls; null when the model must be called. */
  answer: string | null;
}

/** Returns the resume point of the last turn in a history. */
export function standingOf(messages: readonly Message[]): Standing {
  const answered = new Set<string>();
  for (const message of messages.toReversed()) {
    if (message.role === "tool") answered.add(String(message.tool_call_id));
    if (message.role !== "assistant") {
      if (message.role === "user" && message.metadata?.source !== "hook") break;
      continue;
    }
    const open_calls = callsOf(message).filter((call) => !answered.has(call.id));
    const cut_call = cutCallOf(open_calls, message.metadata?.finish_reason);
    const last = message === messages.at(-1) && callsOf(message).length === 0 &&
      message.metadata?.broken_off !== true;
    return {
      open_calls,
      ...(cut_call === undefined ? {} : { cut_call }),
      answer: last ? textOf(message.content) : null,
    };
  }
  return { open_calls: [], answer: null };
}

/** Returns the calls of an assistant message: from `tool_calls`, else from its content blocks. */
export function callsOf(message: Message): ToolCall[] {
  if (Array.isArray(message.tool_calls)) return message.tool_calls.filter(isObject).map(parseToolCall);
  if (!Array.isArray(message.content)) return [];
  return message.content.filter(isCallBlock).map(parseToolCall);
}
