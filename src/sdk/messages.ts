/** What goes to a model and comes back: content blocks, messages, requests, responses, usage (behaviour.md §4.6). */
import { isObject, type JsonObject, type JsonSchema } from "./json.ts";
import { parseToolCall, type ToolCall } from "./tools.ts";

/** Who a message is from. */
export type Role = "system" | "developer" | "user" | "assistant" | "function" | "tool";

/** Text. */
export interface TextBlock {
  type: "text";
  text: string;
  [key: string]: unknown;
}

/** Reasoning the model shows. */
export interface ThinkingBlock {
  type: "thinking";
  thinking: string;
  signature?: string;
  [key: string]: unknown;
}

/** A tool call inside the content of an assistant message. */
export interface ToolCallBlock {
  type: "tool_call";
  id: string;
  name: string;
  input: JsonObject;
  [key: string]: unknown;
}

/** Any other block: redacted_thinking, tool_result, image, reasoning, and whatever a provider adds. */
export interface OtherBlock {
  type: string;
  [key: string]: unknown;
}

/** One block of content. Unknown types and extra fields are kept. */
export type ContentBlock = TextBlock | ThinkingBlock | ToolCallBlock | OtherBlock;

/** A tool call as a stored assistant message carries it: both spellings (behaviour.md C1). */
export interface StoredToolCall {
  id: string;
  name: string;
  tool: string;
  arguments: JsonObject;
}

/** One message of a conversation. Extra fields are kept. */
export interface Message {
  role: Role;
  content: string | ContentBlock[];
  name?: string;
  /** On a tool message: the call that it answers. */
  tool_call_id?: string;
  /** On an assistant message: the calls it makes. */
  tool_calls?: StoredToolCall[];
  metadata?: JsonObject;
  [key: string]: unknown;
}

/** A prompt: text, or content blocks. */
export type Prompt = string | ContentBlock[];

/** A tool as it is offered to a model. Extra fields pass to the provider (native tools). */
export interface ToolSpec {
  name: string;
  description?: string;
  parameters: JsonSchema;
  [key: string]: unknown;
}

/** What `complete` is given. Extra fields are kept. */
export interface ChatRequest {
  messages: Message[];
  tools?: ToolSpec[];
  response_format?: JsonObject;
  temperature?: number;
  top_p?: number;
  /** Ceiling of the answer, in tokens. */
  max_output_tokens?: number;
  model?: string;
  tool_choice?: string | JsonObject;
  stop?: string[];
  reasoning_effort?: string;
  metadata?: JsonObject;
  [key: string]: unknown;
}

/** Tokens and money of one model call. `input_tokens` is gross: cache reads are in it. */
export interface Usage {
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  reasoning_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  /** US dollars as a decimal string; null when the price is not known, which is not zero. */
  cost_usd: string | null;
}

/** What `complete` resolves to. Extra fields are kept. */
export interface ChatResponse {
  content: ContentBlock[];
  tool_calls?: ToolCall[];
  usage?: Usage;
  /** `stop`, `tool_calls`, `length`, `content_filter`, or the provider's own word. */
  finish_reason?: string;
  metadata?: JsonObject;
  [key: string]: unknown;
}

/** A piece of an answer as it arrives. */
export interface StreamDelta {
  /** Index of the block in the final content, from 0. */
  block_index: number;
  block_type: "text" | "thinking" | "tool_call";
  /** Text that is new since the last delta of this block. */
  delta: string;
  /** Id of a tool call, on its first delta. */
  id?: string;
  /** Name of a tool call, on its first delta. */
  name?: string;
}

/** Returns content as blocks: a string becomes one text block, an empty one none. */
export function toBlocks(content: unknown): ContentBlock[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) {
    return isObject(content) && typeof content.type === "string" ? [content as ContentBlock] : [];
  }
  const blocks: ContentBlock[] = [];
  for (const item of content) {
    if (typeof item === "string") blocks.push({ type: "text", text: item });
    else if (isObject(item) && typeof item.type === "string") blocks.push(item as ContentBlock);
  }
  return blocks;
}

/** Returns the text of content: its text blocks joined by a blank line. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const texts: string[] = [];
  for (const block of content) {
    if (typeof block === "string") texts.push(block);
    else if (isObject(block) && block.type === "text" && typeof block.text === "string" && block.text) {
      texts.push(block.text);
    }
  }
  return texts.join("\n\n");
}

/**
 * Returns a usage object with whole, non-negative numbers; what is absent is 0, and the total is computed when it is
 * absent. `cost_usd` must be a decimal string or null: a float has lost the money already (behaviour.md §4.10).
 *
 * @throws {TypeError} when `cost_usd` is a number.
 */
export function Usage(fields: unknown): Usage {
  const given = isObject(fields) ? fields : {};
  const input_tokens = count(given.input_tokens);
  const output_tokens = count(given.output_tokens);
  const usage: Usage = {
    input_tokens,
    output_tokens,
    total_tokens: given.total_tokens === undefined || given.total_tokens === null
      ? input_tokens + output_tokens
      : count(given.total_tokens),
    cost_usd: null,
  };
  for (const key of ["reasoning_tokens", "cache_read_tokens", "cache_write_tokens"] as const) {
    if (given[key] !== undefined && given[key] !== null) usage[key] = count(given[key]);
  }
  usage.cost_usd = decimal(given.cost_usd);
  return usage;
}

function count(value: unknown): number {
  return typeof value === "number" && value > 0 && Number.isFinite(value) ? Math.trunc(value) : 0;
}

function decimal(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string" && /^\d{1,15}(\.\d{1,18})?$/.test(value)) return value;
  throw new TypeError(
    `Cannot read cost_usd: must be a decimal string or null: received ${
      typeof value === "string" ? JSON.stringify(value) : typeof value
    }`,
  );
}

/**
 * Returns what a provider resolved to as a {@link ChatResponse} (behaviour.md C9): string content becomes a text block;
 * missing `tool_calls` are taken from tool_call blocks, then from `parseToolCalls`; usage is completed.
 *
 * @throws {TypeError} when the value is neither an object nor a string.
 */
export function toChatResponse(
  value: unknown,
  parseToolCalls?: (response: ChatResponse) => unknown,
): ChatResponse {
  if (typeof value === "string") value = { content: value };
  if (!isObject(value)) {
    throw new TypeError(
      `Cannot read a provider response: must be an object: received ${
        value === null ? "null" : typeof value
      }`,
    );
  }
  const response: ChatResponse = {
    ...value,
    content: toBlocks(value.content ?? value.content_blocks ?? value.text),
  };
  let calls: unknown = value.tool_calls;
  if (!Array.isArray(calls) || calls.length === 0) {
    calls = response.content.filter((block) => block.type === "tool_call" || block.type === "tool_use");
  }
  if ((calls as unknown[]).length === 0 && parseToolCalls) calls = parseToolCalls(response);
  if (Array.isArray(calls) && calls.length > 0) response.tool_calls = calls.map(parseToolCall);
  else delete response.tool_calls;
  if (isObject(value.usage)) response.usage = Usage(value.usage);
  return response;
}
