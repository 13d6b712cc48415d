/** Converts answers of the Messages API, whole or streamed. */
import type { Anthropic } from "@anthropic-ai/sdk";
import {
  type ContentBlock,
  isObject,
  type JsonObject,
  LLMError,
  parseToolCall,
  type ToolCall,
  type ToolSpec,
} from "preamp/base";
import type { AnswerUsage, BackendAnswer, CallIo } from "preamp/provider";
import { withOwnNames } from "./property_names.ts";

const FINISH_REASONS: ReadonlyMap<unknown, string> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["tool_use", "tool_calls"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "content_filter"],
]);

/** Type of the block that keeps the container of an answer for the next request. */
export const CONTAINER = "anthropic_container";

type OnDelta = NonNullable<CallIo["onDelta"]>;

/** What the reader of a stream passes on. */
export interface StreamHandlers {
  onDelta: OnDelta;
  /** Receives the usage of the message so far. */
  onUsage(usage: JsonObject): void;
}

/** A message whose blocks are plain data. */
export interface WireMessage {
  id?: string;
  model?: string;
  content: JsonObject[];
  stop_reason: string | null;
  stop_details?: unknown;
  /** Where the API executed code for its own tools. */
  container?: { id: string } | null;
  usage: JsonObject;
}

/**
 * Returns the answer of one or more messages; later ones continue the first.
 *
 * @param tools Tools of the request.
 */
export function toAnswer(messages: readonly WireMessage[], tools: readonly ToolSpec[]): BackendAnswer {
  const last = messages.at(-1)!; // at least one
  const calls: ToolCall[] = [];
  const content = messages.flatMap((message) => message.content).map((block) => toBlock(block, calls, tools));
  const container = containerOf(messages);
  if (container !== undefined && calls.length > 0) content.push({ type: CONTAINER, id: container });
  const { id, model, stop_reason, stop_details } = last;
  return {
    content,
    tool_calls: calls,
    finish_reason: FINISH_REASONS.get(stop_reason) ?? String(stop_reason ?? "stop"),
    usage: usageOf(messages),
    model,
    metadata: { ...(id ? { response_id: id } : {}), ...(stop_details ? { stop_details } : {}) },
    raw: messages.length === 1 ? last : messages,
  };
}

/** Returns the container of messages, which the API reports once it is known; undefined without one. */
export function containerOf(messages: readonly WireMessage[]): string | undefined {
  return messages.findLast(({ container }) => container)?.container?.id;
}

function toBlock(block: JsonObject, calls: ToolCall[], tools: readonly ToolSpec[]): ContentBlock {
  if (block.type === "text") {
    const { text, citations } = block;
    return {
      type: "text",
      text: String(text ?? ""),
      ...(Array.isArray(citations) && citations.length > 0 ? { citations } : {}),
    };
  }
  if (block.type !== "tool_use") return block as ContentBlock; // it has a type
  const { id, name, input, caller } = block;
  const parsed = parseToolCall({ id, name, arguments: input });
  const schema = tools.find((tool) => tool.name === name)?.parameters ?? {};
  const call = parsed.invalid_arguments !== undefined
    ? parsed
    : parseToolCall({ id, name, arguments: withOwnNames(parsed.arguments, schema) });
  calls.push(call);
  const of_code = isObject(caller) && caller.type !== "direct" ? { caller } : {}; // that the API executes
  return { type: "tool_call", id: call.id, name: call.name, input: call.arguments, ...of_code };
}

/**
 * Returns the sum of the messages' tokens; undefined when the server reports none. The API's `input_tokens`
 * has neither cache reads nor writes.
 */
export function usageOf(messages: readonly WireMessage[]): AnswerUsage | undefined {
  if (messages.every(({ usage }) => usage.input_tokens === undefined)) return undefined;
  const sum = (read: (usage: JsonObject) => unknown) =>
    messages.reduce((total, { usage }) => total + (Number(read(usage)) || 0), 0);
  const cache_read_tokens = sum((usage) => usage.cache_read_input_tokens);
  const cache_write_tokens = sum((usage) => usage.cache_creation_input_tokens);
  const reasoning_tokens = sum((usage) =>
    isObject(usage.output_tokens_details) ? usage.output_tokens_details.thinking_tokens : 0
  );
  return {
    input_tokens: sum((usage) => usage.input_tokens) + cache_read_tokens,
    output_tokens: sum((usage) => usage.output_tokens),
    cache_read_tokens,
    cache_write_tokens,
    ...(reasoning_tokens > 0 ? { reasoning_tokens } : {}),
  };
}

/**
 * Resolves to the message of a stream, and passes its deltas and its usage on.
 *
 * @param offset Blocks of the answer before this message.
 * @throws {LLMError} `StreamError` when the stream ends before the message does.
 */
export async function readStream(
  events: AsyncIterable<Anthropic.RawMessageStreamEvent>,
  { onDelta, onUsage }: StreamHandlers,
  offset: number,
): Promise<WireMessage> {
  const message: WireMessage = { content: [], stop_reason: null, usage: {} };
  const inputs = new Map<JsonObject, string>();
  let ended = false;
  for await (const event of events) {
    switch (event.type) {
      case "message_start": {
        if (!isObject(event.message)) throw broken("message_start has no message");
        const { id, model, usage, container } = event.message;
        Object.assign(message, { id, model, usage: { ...usage }, container });
        onUsage(message.usage);
        break;
      }
      case "content_block_start": {
        const block: unknown = event.content_block;
        if (event.index !== message.content.length || !isObject(block)) {
          throw broken("its blocks are not in order");
        }
        message.content.push(block);
        startBlock(block, offset + event.index, onDelta);
        break;
      }
      case "content_block_delta": {
        const block = message.content[event.index];
        if (!block || !isObject(event.delta)) throw broken("a delta came before its block");
        addDelta(block, event.delta, { index: offset + event.index, inputs, onDelta });
        break;
      }
      case "message_delta":
        message.stop_reason = event.delta?.stop_reason ?? null;
        message.stop_details = event.delta?.stop_details;
        message.container = event.delta?.container ?? message.container ?? null;
        Object.assign(message.usage, withoutNulls({ ...event.usage }));
        onUsage(message.usage);
        break;
      case "message_stop":
        ended = true;
    }
  }
  if (!ended) throw broken("it has no message_stop");
  for (const [block, text] of inputs) {
    if (text !== "") block.input = block.type === "tool_use" ? text : parse(text); // else that of its start
  }
  return message;
}

function startBlock(block: JsonObject, block_index: number, onDelta: OnDelta): void {
  const { type, id, name } = block;
  if (type === "tool_use") {
    onDelta({ block_index, block_type: "tool_call", delta: "", id: String(id), name: String(name) });
  } else if ((type === "text" || type === "thinking") && block[type]) {
    onDelta({ block_index, block_type: type, delta: String(block[type]) });
  }
}

interface Target {
  index: number;
  inputs: Map<JsonObject, string>;
  onDelta: OnDelta;
}

function addDelta(
  block: JsonObject,
  delta: Anthropic.RawContentBlockDelta,
  { index, inputs, onDelta }: Target,
): void {
  const addText = (type: "text" | "thinking", text: unknown) => {
    if (block.type !== type || typeof text !== "string") throw broken("a delta does not fit its block");
    block[type] = `${block[type] ?? ""}${text}`;
    onDelta({ block_index: index, block_type: type, delta: text });
  };
  switch (delta.type) {
    case "text_delta":
      return addText("text", delta.text);
    case "thinking_delta":
      return addText("thinking", delta.thinking);
    case "signature_delta":
      block.signature = delta.signature;
      return;
    case "citations_delta":
      block.citations = [...(Array.isArray(block.citations) ? block.citations : []), delta.citation];
      return;
    case "input_json_delta":
      inputs.set(block, (inputs.get(block) ?? "") + delta.partial_json);
      if (block.type === "tool_use") {
        onDelta({ block_index: index, block_type: "tool_call", delta: delta.partial_json });
      }
  }
}

function withoutNulls(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  );
}

/** Returns the value of a text; an empty object when it is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function broken(fact: string): LLMError {
  return new LLMError("StreamError", `Cannot read the stream of the answer: ${fact}`);
}
