/** The shapes of an answer: what the log tells of it, what is stored of it (trace.md, entries 16 and 17). */
import { isObject, type JsonObject } from "../json.ts";
import type { ChatResponse, ContentBlock, Message, StoredToolCall } from "../messages.ts";
import type { ToolCall } from "../tools.ts";

/** Whether an answer without text ended on purpose: at the model's limit, or filtered. */
export function isCut(response: ChatResponse): boolean {
  return ["length", "max_tokens", "max_output_tokens", "content_filter"].includes(
    response.finish_reason ?? "",
  );
}

/** Returns content in which every call has a block, also one that the provider told beside the content only. */
export function withCallBlocks(content: ContentBlock[], calls: readonly ToolCall[]): ContentBlock[] {
  const missing = calls.filter((call) =>
    !content.some((block) => block.type === "tool_call" && block.id === call.id)
  );
  if (missing.length === 0) return content;
  const others = content.filter((block) => block.type !== "tool_use");
  return [
    ...others,
    ...missing.map((call) => ({ type: "tool_call", id: call.id, name: call.name, input: call.arguments })),
  ];
}

/** Returns an answer without its tool calls. */
export function withoutCalls({ tool_calls: _, ...response }: ChatResponse): ChatResponse {
  const content = response.content.filter((block) => block.type !== "tool_call" && block.type !== "tool_use");
  return { ...response, content };
}

/** Returns the `response` of `provider:response`: all that is needed to go on from it, and to replay it. */
export function responseData(response: ChatResponse): JsonObject {
  const { content, tool_calls, finish_reason, usage, metadata } = response;
  return { content, tool_calls: tool_calls?.map(toldCall), finish_reason, usage, metadata };
}

/** Arguments that could not be read are told too: who goes on from the log must not take them for an empty object. */
function toldCall(call: ToolCall): JsonObject {
  return call.invalid_arguments === undefined
    ? call as unknown as JsonObject // its own fields, which are JSON
    : { ...call, invalid_arguments: call.invalid_arguments };
}

/** Returns the message that an answer is stored as; its calls carry both spellings (ORCH-24). */
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
