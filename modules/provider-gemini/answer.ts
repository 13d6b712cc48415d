/** Collects the chunks of a response into an answer. A response that is not streamed is one chunk. */
import {
  type ContentBlock,
  type JsonObject,
  LLMError,
  parseToolCall,
  type StreamDelta,
  type ToolCall,
} from "preamp/base";
import type { AnswerUsage, BackendAnswer } from "preamp/provider";
import type { GenerateContentResponse, Part } from "./client_types.ts";
import { finishOf } from "./finish.ts";

/** Block of text or thinking that later parts may extend. */
type OpenBlock = { type: "text"; text: string; thought_signature?: string } | {
  type: "thinking";
  thinking: string;
  signature?: string;
};

/** Options of {@link AnswerCollector}. */
export interface AnswerOptions {
  /** Names of the functions that the request offered. */
  readonly tools: readonly string[];
  /** Receives a delta for each part. */
  readonly onDelta?: ((delta: StreamDelta) => void) | undefined;
  /** Returns the end of the response as text. */
  tail(): string;
}

/** Collects an answer. */
export class AnswerCollector {
  readonly #options: AnswerOptions;
  readonly #content: ContentBlock[] = [];
  readonly #calls: ToolCall[] = [];
  readonly #ids = new Set<unknown>();
  /** The last block while it may be extended. */
  #open: OpenBlock | undefined;
  #finish_reason: string | undefined;
  #block_reason: string | undefined;
  #usage: AnswerUsage | undefined;
  #model: string | undefined;
  readonly #metadata: JsonObject = {};

  constructor(options: AnswerOptions) {
    this.#options = options;
  }

  /** Adds a chunk. */
  add(chunk: GenerateContentResponse): void {
    const [candidate] = chunk.candidates ?? [];
    for (const part of candidate?.content?.parts ?? []) this.#addPart(part);
    this.#finish_reason = candidate?.finishReason ?? this.#finish_reason;
    this.#block_reason = chunk.promptFeedback?.blockReason ?? this.#block_reason;
    this.#usage = usageOf(chunk) ?? this.#usage;
    this.#model = chunk.modelVersion ?? this.#model;
    if (chunk.responseId) this.#metadata.response_id = chunk.responseId;
    if (candidate?.groundingMetadata) this.#metadata.grounding = { ...candidate.groundingMetadata };
  }

  /**
   * Returns the answer.
   *
   * @throws {LLMError} `ContentFilterError` when the request or the whole answer was filtered, `StreamError`
   * when the response ended early or has no content.
   */
  finish(): BackendAnswer {
    if (this.#block_reason !== undefined) {
      throw new LLMError("ContentFilterError", `Gemini refused the request: ${this.#block_reason}`);
    }
    const { finish_reason, invalid_call } = finishOf({
      reason: this.#finish_reason,
      tail: this.#options.tail,
      has_output: this.#content.some(({ type }) => type !== "thinking"),
      has_calls: this.#calls.length > 0,
      tools: this.#options.tools,
    });
    if (invalid_call) this.#addCall(invalid_call);
    const answer: BackendAnswer = { content: this.#content, finish_reason, metadata: this.#metadata };
    if (this.#calls.length > 0) answer.tool_calls = this.#calls;
    if (this.#usage) answer.usage = this.#usage;
    if (this.#model !== undefined) answer.model = this.#model;
    return answer;
  }

  #addPart(part: Part): void {
    const { text, thought, thoughtSignature, functionCall } = part;
    if (functionCall) {
      const { id, name, args } = functionCall;
      return this.#addCall(
        { id, name, arguments: args ?? {} },
        thoughtSignature === undefined ? {} : { thought_signature: thoughtSignature },
      );
    }
    if (typeof text === "string") return this.#addText(text, thought === true, thoughtSignature);
    // such as code that the server ran, and its output: sent back as it came
    this.#open = undefined;
    this.#content.push({ type: "gemini_part", part: { ...part } });
  }

  #addText(text: string, is_thought: boolean, signature: string | undefined): void {
    if (text === "" && signature === undefined) return;
    // a signature of its own, without text, belongs to the block before it
    const kind = is_thought || (text === "" && this.#open?.type !== "text") ? "thinking" : "text";
    let block = this.#open;
    if (block?.type !== kind) {
      block = kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "" };
      this.#content.push(block);
      this.#open = block;
    }
    if (block.type === "text") block.text += text;
    else block.thinking += text;
    if (text !== "") this.#emit({ block_index: this.#content.length - 1, block_type: kind, delta: text });
    if (signature === undefined) return;
    if (block.type === "text") block.thought_signature = signature;
    else block.signature = signature;
    this.#open = undefined; // a signed block is complete
  }

  #addCall(fields: JsonObject, extra: JsonObject = {}): void {
    const repeated = this.#ids.has(fields.id);
    const call = parseToolCall(repeated ? { ...fields, id: undefined } : fields);
    this.#ids.add(call.id);
    this.#open = undefined;
    this.#calls.push(call);
    const { id, name, arguments: input } = call;
    this.#content.push({ type: "tool_call", id, name, input, ...extra });
    const delta = call.invalid_arguments ?? JSON.stringify(input);
    this.#emit({ block_index: this.#content.length - 1, block_type: "tool_call", delta, id, name });
  }

  #emit(delta: StreamDelta): void {
    this.#options.onDelta?.(delta);
  }
}

function usageOf({ usageMetadata: usage }: GenerateContentResponse): AnswerUsage | undefined {
  if (!usage || count(usage.promptTokenCount) === 0) return undefined;
  const reasoning_tokens = count(usage.thoughtsTokenCount);
  const cache_read_tokens = count(usage.cachedContentTokenCount);
  return {
    input_tokens: count(usage.promptTokenCount) + count(usage.toolUsePromptTokenCount),
    output_tokens: count(usage.candidatesTokenCount) + reasoning_tokens,
    ...(reasoning_tokens > 0 ? { reasoning_tokens } : {}),
    ...(cache_read_tokens > 0 ? { cache_read_tokens } : {}),
  };
}

function count(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;
}
