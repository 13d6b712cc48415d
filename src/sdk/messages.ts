/** What goes to a model and comes back: content blocks, messages, requests, responses, usage (behaviour.md §4.6). */
import { fieldError, requireObject, requireOneOf, requireText } from "./checks.ts";
import { isObject, type JsonObject, type JsonSchema } from "./json.ts";
import { parseToolCall, type ToolCall } from "./tools.ts";

/** Who a message is from. */
export type Role = "system" | "developer" | "user" | "assistant" | "function" | "tool";

/** Text. */
export interface TextBlock {
  /** Kind of block. */
  type: "text";
  /** The text. */
  text: string;
  /** Whatever else the provider said. */
  [key: string]: unknown;
}

/** Reasoning the model shows. */
export interface ThinkingBlock {
  /** Kind of block. */
  type: "thinking";
  /** The reasoning. */
  thinking: string;
  /** The provider's proof that the reasoning is its own; sent back unchanged. */
  signature?: string;
  /** Whatever else the provider said. */
  [key: string]: unknown;
}

/** A tool call inside the content of an assistant message. */
export interface ToolCallBlock {
  /** Kind of block. */
  type: "tool_call";
  /** Id of the call. */
  id: string;
  /** Name of the tool. */
  name: string;
  /** Arguments of the call. */
  input: JsonObject;
  /** Whatever else the provider said. */
  [key: string]: unknown;
}

/** Any other block: redacted_thinking, tool_result, image, reasoning, and whatever a provider adds. */
export interface OtherBlock {
  /** Kind of block. */
  type: string;
  /** Its fields. */
  [key: string]: unknown;
}

/** One block of content. Unknown types and extra fields are kept. */
export type ContentBlock = TextBlock | ThinkingBlock | ToolCallBlock | OtherBlock;

/** A tool call as a stored assistant message carries it: both spellings (behaviour.md C1). */
export interface StoredToolCall {
  /** Id of the call. */
  id: string;
  /** Name of the tool. */
  name: string;
  /** The same name, as stored transcripts spell it. */
  tool: string;
  /** Arguments of the call. */
  arguments: JsonObject;
}

/** One message of a conversation. Extra fields are kept. */
export interface Message {
  /** Who it is from. */
  role: Role;
  /** Text, or content blocks. */
  content: string | ContentBlock[];
  /** Name of the speaker; on a tool message, of the tool. */
  name?: string;
  /** On a tool message: the call that it answers. */
  tool_call_id?: string;
  /** On an assistant message: the calls it makes. */
  tool_calls?: StoredToolCall[];
  /** What modules note about it, such as `source`. */
  metadata?: JsonObject;
  /** Whatever else a module keeps with it. */
  [key: string]: unknown;
}

/** A prompt: text, or content blocks. */
export type Prompt = string | ContentBlock[];

/** A tool as it is offered to a model. Extra fields pass to the provider (native tools). */
export interface ToolSpec {
  /** Name the model calls it by. */
  name: string;
  /** What it does and expects. */
  description?: string;
  /** JSON Schema of the input. */
  parameters: JsonSchema;
  /** Fields for the provider, such as a native tool's type. */
  [key: string]: unknown;
}

/** What form an answer must have. */
export type ResponseFormat =
  | { type: "text" }
  | { type: "json" }
  | { type: "json_schema"; schema: JsonSchema; strict?: boolean };

/** What `complete` is given. Extra fields are kept. */
export interface ChatRequest {
  /** The conversation, oldest first. */
  messages: Message[];
  /** Tools the model may call. */
  tools?: ToolSpec[];
  /** Form of the answer; see {@link ResponseFormat}. */
  response_format?: ResponseFormat;
  /** Randomness, from 0. */
  temperature?: number;
  /** Nucleus sampling, 0 to 1. */
  top_p?: number;
  /** Ceiling of the answer, in tokens. */
  max_output_tokens?: number;
  /** Model to use; default: the provider's own. */
  model?: string;
  /** `auto`, `none`, `required`, or the provider's own form. */
  tool_choice?: string | JsonObject;
  /** Texts that end the answer. */
  stop?: string[];
  /** How long to think, such as `low`, `medium`, `high`. */
  reasoning_effort?: string;
  /** Facts for hooks and logs. */
  metadata?: JsonObject;
  /** Fields for the provider. */
  [key: string]: unknown;
}

/** Tokens and money of one model call. `input_tokens` is gross: cache reads are in it. */
export interface Usage {
  /** Tokens sent, cache reads included. */
  input_tokens: number;
  /** Tokens answered, reasoning included. */
  output_tokens: number;
  /** Both together. */
  total_tokens: number;
  /** Of the answer: tokens of reasoning. */
  reasoning_tokens?: number;
  /** Of the request: tokens read from the provider's cache. */
  cache_read_tokens?: number;
  /** Tokens written to the provider's cache; billed apart. */
  cache_write_tokens?: number;
  /** US dollars as a decimal string; null when the price is not known, which is not zero. */
  cost_usd: string | null;
}

/** Says that a provider gave less than was asked, such as another model. */
export interface Degradation {
  /** What was asked for. */
  requested: string;
  /** What was given. */
  actual: string;
  /** Why. */
  reason: string;
}

/** What `complete` resolves to. Extra fields are kept. */
export interface ChatResponse {
  /** What the model said. */
  content: ContentBlock[];
  /** Tools it wants called; absent when none. */
  tool_calls?: ToolCall[];
  /** What the call took; absent when the provider does not say. */
  usage?: Usage;
  /** `stop`, `tool_calls`, `length`, `content_filter`, or the provider's own word. */
  finish_reason?: string;
  /** Set when the provider gave less than was asked. */
  degradation?: Degradation;
  /** Facts for hooks and logs. */
  metadata?: JsonObject;
  /** Whatever else the provider said. */
  [key: string]: unknown;
}

/** A piece of an answer as it arrives. */
export interface StreamDelta {
  /** Index of the block in the final content, from 0. */
  block_index: number;
  /** Kind of the block. */
  block_type: "text" | "thinking" | "tool_call";
  /** Text that is new since the last delta of this block. */
  delta: string;
  /** Id of a tool call, on its first delta. */
  id?: string;
  /** Name of a tool call, on its first delta. */
  name?: string;
}

const ROLES: readonly Role[] = ["system", "developer", "user", "assistant", "function", "tool"];

/**
 * Returns a message, checked; the requirements' constructor.
 *
 * @throws {TypeError} when the role is unknown, the content neither text nor blocks, or a tool message answers no call.
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
 * Returns a request with its messages checked; the requirements' constructor.
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
 * Returns a response from whatever a provider has, read by {@link toChatResponse}; the requirements' constructor.
 *
 * @throws {TypeError} when the value is neither an object nor a string, or its cost is a number.
 */
export function ChatResponse(fields: unknown): ChatResponse {
  return toChatResponse(fields);
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
  const { tool_calls, ...fields } = value; // left out, not deleted later: that would make the answer slow to copy
  const response: ChatResponse = {
    ...fields,
    content: toBlocks(value.content ?? value.content_blocks ?? value.text),
  };
  let calls: unknown = tool_calls;
  if (!Array.isArray(calls) || calls.length === 0) {
    calls = response.content.filter((block) => block.type === "tool_call" || block.type === "tool_use");
  }
  if ((calls as unknown[]).length === 0 && parseToolCalls) {
    // calls in a form of the provider's own are for its own parser
    calls = parseToolCalls(isAbsent(tool_calls) ? response : { ...value, content: response.content });
  }
  if (Array.isArray(calls) && calls.length > 0) response.tool_calls = calls.map(parseToolCall);
  if (isObject(value.usage)) response.usage = Usage(value.usage);
  return response;
}
