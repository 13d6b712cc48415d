/** Data models of model calls: content blocks, messages, requests, responses, usage. */
import { fieldError, isCallBlock, requireObject, requireOneOf, requireText } from "./checks.ts";
import type { ContentBlock } from "./content_blocks.ts";
import { isObject, type JsonObject, type JsonSchema } from "./json.ts";
import { parseToolCall, type ToolCall } from "./tools.ts";

/** Role of a message. */
export type Role = "system" | "developer" | "user" | "assistant" | "function" | "tool";

/** A tool call in a stored assistant message; the tool's name is there as `name` and as `tool`. */
export interface StoredToolCall {
  /** Id of the call. */
  id: string;
  /** Name of the tool. */
  name: string;
  /** Equal to `name`; Amplifier's transcripts have this field. */
  tool: string;
  /** Arguments of the call. */
  arguments: JsonObject;
}

/** One message of a conversation. Extra fields are kept. */
export interface Message {
  /** Role of the message. */
  role: Role;
  /** Text, or content blocks. */
  content: string | ContentBlock[];
  /** Name of the speaker; on a tool message, of the tool. */
  name?: string;
  /** In a tool message: id of the call that it answers. */
  tool_call_id?: string;
  /** In an assistant message: the calls it makes. */
  tool_calls?: StoredToolCall[];
  /** Notes of modules about the message, such as `source`. */
  metadata?: JsonObject;
  /** Other fields of a module. */
  [key: string]: unknown;
}

/** A prompt: text, or content blocks. */
export type Prompt = string | ContentBlock[];

/** A tool as it is offered to a model. Extra fields pass to the provider (native tools). */
export interface ToolSpec {
  /** Name that the model uses to call it. */
  name: string;
  /** Description for the model: what the tool does and expects. */
  description?: string;
  /** JSON Schema of the input. */
  parameters: JsonSchema;
  /** Fields for the provider, such as a native tool's type. */
  [key: string]: unknown;
}

/** Required form of an answer. */
export type ResponseFormat =
  | { type: "text" }
  | { type: "json" }
  | { type: "json_schema"; schema: JsonSchema; strict?: boolean };

/** Request of `complete`. Extra fields are kept. */
export interface ChatRequest {
  /** The conversation, oldest first. */
  messages: Message[];
  /** Tools the model may call. */
  tools?: ToolSpec[];
  /** Form of the answer; see {@link ResponseFormat}. */
  response_format?: ResponseFormat;
  /** Sampling temperature, from 0. */
  temperature?: number;
  /** Nucleus sampling, 0 to 1. */
  top_p?: number;
  /** Maximum tokens of the answer. */
  max_output_tokens?: number;
  /** Model to use; default: the provider's own. */
  model?: string;
  /** `auto`, `none`, `required`, or the provider's own form. */
  tool_choice?: string | JsonObject;
  /** Texts that end the answer. */
  stop?: string[];
  /** Reasoning effort, such as `low`, `medium`, `high`. */
  reasoning_effort?: string;
  /** Facts for hooks and logs. */
  metadata?: JsonObject;
  /** Fields for the provider. */
  [key: string]: unknown;
}

/** Tokens and cost of one model call. `input_tokens` includes cache reads and cache writes. */
export interface Usage {
  /** Tokens sent, with those read from the provider's cache and those written to it. */
  input_tokens: number;
  /** Tokens answered, reasoning included. */
  output_tokens: number;
  /** All tokens: the sum of `input_tokens` and `output_tokens`. */
  total_tokens: number;
  /** Tokens of reasoning within `output_tokens`. */
  reasoning_tokens?: number;
  /** Tokens read from the provider's cache, within `input_tokens`. */
  cache_read_tokens?: number;
  /** Tokens written to the provider's cache, within `input_tokens`. */
  cache_write_tokens?: number;
  /** Cost in US dollars as a decimal string; null when the price is unknown, which is not zero. */
  cost_usd: string | null;
  /** Whether the provider reported no tokens of the request: these are estimates, which calibrate nothing. */
  estimated?: boolean;
}

/** Reports that a provider delivered something else than requested, such as another model. */
export interface Degradation {
  /** The requested value. */
  requested: string;
  /** The delivered value. */
  actual: string;
  /** Reason. */
  reason: string;
}

/** Response of `complete`. Extra fields are kept. */
export interface ChatResponse {
  /** Content of the answer. */
  content: ContentBlock[];
  /** Tool calls of the answer; absent without calls. */
  tool_calls?: ToolCall[];
  /** Usage of the call; absent when the provider does not report it. */
  usage?: Usage;
  /** `stop`, `tool_calls`, `length`, `content_filter`, or the provider's own word. */
  finish_reason?: string;
  /** Set when the provider delivered something else than requested. */
  degradation?: Degradation;
  /** Facts for hooks and logs. */
  metadata?: JsonObject;
  /** Other fields of the provider. */
  [key: string]: unknown;
}

/** A delta of a streamed answer. */
export interface StreamDelta {
  /** Index of the block in the final content, from 0. */
  block_index: number;
  /** Kind of the block. */
  block_type: "text" | "thinking" | "tool_call";
  /** New text since the last delta of this block. */
  delta: string;
  /** Id of a tool call, on its first delta. */
  id?: string;
  /** Name of a tool call, on its first delta. */
  name?: string;
}

const ROLES: readonly Role[] = ["system", "developer", "user", "assistant", "function", "tool"];

/**
 * Returns a message after checking it.
 *
 * @throws {TypeError} when the role is unknown, the content neither text nor blocks, or a tool message
 * answers no call.
 */
export function Message(fields: Message): Message {
  requireObject("Message", "the value", fields);
  requireOneOf("Message", "role", fields.role, ROLES);
  const { content } = fields;
  if (typeof content !== "string" && !(Array.isArray(content) && content.every(isBlock))) {
    throw fieldError("Message", "content", "must be text or a list of content blocks", content);
  }
  if (fields.role === "tool") requireText("Message", "tool_call_id", fields.tool_call_id);
  return { ...fields };
}

/**
 * Returns a request after checking its messages.
 *
 * @throws {TypeError} when `messages` is no list of messages or a tool has no name.
 */
export function ChatRequest(fields: ChatRequest): ChatRequest {
  requireObject("ChatRequest", "the value", fields);
  if (!Array.isArray(fields.messages)) {
    throw fieldError("ChatRequest", "messages", "must be a list of messages", fields.messages);
  }
  for (const tool of fields.tools ?? []) requireText("ChatRequest", "tools[].name", tool?.name);
  return { ...fields, messages: fields.messages.map(Message) };
}

/**
 * Returns a response, read by {@link toChatResponse}.
 *
 * @throws {TypeError} when the value is neither an object nor a string, or its cost is a number.
 */
export function ChatResponse(fields: unknown): ChatResponse {
  return toChatResponse(fields);
}

/** Returns the response itself if it has no field `tool_calls`, else a copy without it. */
function withoutCalls(response: ChatResponse): ChatResponse {
  if (!("tool_calls" in response)) return response;
  const { tool_calls: _, ...rest } = response; // perf: not deleted, because that makes the object slow to copy
  return rest as ChatResponse; // only an optional field was left out
}

function isAbsent(calls: unknown): boolean {
  return calls === undefined || Array.isArray(calls) && calls.length === 0;
}

function isBlock(value: unknown): boolean {
  return isObject(value) && typeof value.type === "string";
}

/** Returns content as blocks: a string becomes one text block, an empty one none. */
export function toBlocks(content: unknown): ContentBlock[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) {
    return isObject(content) && typeof content.type === "string" ? [content as ContentBlock] : [];
  }
  const items: unknown[] = [...content]; // with undefined in place of a hole
  if (items.every(isBlock)) return items as ContentBlock[];
  const blocks: ContentBlock[] = [];
  for (const item of items) {
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
 * Returns a usage object with whole, non-negative numbers. Absent numbers are 0, and an absent total is
 * computed. `cost_usd` must be a decimal string or null: a float has already lost precision.
 *
 * @throws {TypeError} when `cost_usd` is a number.
 */
export function Usage(fields: unknown): Usage {
  const values = isObject(fields) ? fields : {};
  const { reasoning_tokens, cache_read_tokens, cache_write_tokens } = values;
  const [stated, answered, total, read, written] = [
    values.input_tokens,
    values.output_tokens,
    values.total_tokens,
    cache_read_tokens,
    cache_write_tokens,
  ].map(count) as [number, number, number, number, number];
  const is_write_outside = read + written > stated || total === stated + written + answered;
  const input_tokens = stated + (read > stated ? read : 0) + (is_write_outside ? written : 0);
  const output_tokens = Math.max(answered, total - input_tokens);
  const usage: Usage = {
    input_tokens,
    output_tokens,
    total_tokens: input_tokens + output_tokens,
    cost_usd: null,
  };
  if ((reasoning_tokens ?? null) !== null) usage.reasoning_tokens = count(reasoning_tokens);
  if ((cache_read_tokens ?? null) !== null) usage.cache_read_tokens = count(cache_read_tokens);
  if ((cache_write_tokens ?? null) !== null) usage.cache_write_tokens = count(cache_write_tokens);
  usage.cost_usd = decimal(values.cost_usd);
  if (values.estimated === true) usage.estimated = true;
  return usage;
}

/** Returns the tokens of a request that the provider reported with its answer; 0 for estimates. */
export function sentTokens(usage: unknown): number {
  const { input_tokens, estimated } = isObject(usage) ? usage : {};
  return estimated === true ? 0 : count(input_tokens);
}

function count(value: unknown): number {
  if (typeof value !== "number" || !(value > 0) || !Number.isFinite(value)) return 0;
  return Math.min(Math.trunc(value), Number.MAX_SAFE_INTEGER);
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
 * Returns the result of a provider as a {@link ChatResponse}. String content becomes a text block. Missing
 * `tool_calls` are taken from tool_call blocks, else from `parseToolCalls`. Usage is completed.
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
  const { tool_calls } = value;
  const response: ChatResponse = {
    ...value,
    content: toBlocks(value.content ?? value.content_blocks ?? value.text),
  };
  let calls: unknown = tool_calls;
  if (!Array.isArray(calls) || calls.length === 0) {
    calls = response.content.filter(isCallBlock);
  }
  if ((calls as unknown[]).length === 0 && parseToolCalls) {
    // a provider parses calls in its own format
    calls = parseToolCalls(isAbsent(tool_calls) ? withoutCalls(response) : response);
  }
  if (isObject(value.usage)) response.usage = Usage(value.usage);
  if (!Array.isArray(calls) || calls.length === 0) return withoutCalls(response);
  response.tool_calls = calls.map(parseToolCall);
  return response;
}
