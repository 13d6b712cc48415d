/** Collects the chunks of a response into an answer. A response that is not streamed is one chunk. */
import { type JsonObject, LLMError, type StreamDelta } from "preamp/base";
import { AnswerBlocks, type AnswerUsage, type BackendAnswer } from "preamp/provider";
import type { GenerateContentResponse, Part } from "./client_types.ts";
import type { RequestContext } from "./request.ts";

export interface AnswerOptions {
  /** Names of the functions that the request offered, with the names of their tools. */
  readonly tools: RequestContext;
  /** Receives a delta for each part. */
  readonly onDelta?: ((delta: StreamDelta) => void) | undefined;
  /** Receives the usage so far. */
  readonly onUsage?: ((usage: AnswerUsage) => void) | undefined;
  /** Returns the end of the response as text: the client leaves `finishMessage` out. */
  tail(): string;
}

const FILTERED: ReadonlySet<string> = new Set(
  ("SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT " +
    "IMAGE_RECITATION").split(" "),
);

/** The model wrote a call that the API could not read. */
const MALFORMED: ReadonlySet<string> = new Set(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"]);

export class AnswerCollector {
  readonly #options: AnswerOptions;
  readonly #blocks: AnswerBlocks;
  /** Kind of the last block while it may be extended. */
  #open: "text" | "thinking" | undefined;
  #has_output = false;
  #finish_reason: string | undefined;
  #block_reason: string | undefined;
  #usage: AnswerUsage | undefined;
  #model: string | undefined;
  readonly #metadata: JsonObject = {};

  constructor(options: AnswerOptions) {
    this.#options = options;
    this.#blocks = new AnswerBlocks([], options.onDelta);
  }

  /** Whether no chunk had an output or a reason of the end. */
  get is_empty(): boolean {
    return !this.#has_output && this.#finish_reason === undefined && this.#block_reason === undefined;
  }

  add(chunk: GenerateContentResponse): void {
    const [candidate] = chunk.candidates ?? [];
    for (const part of candidate?.content?.parts ?? []) this.#addPart(part);
    this.#finish_reason = candidate?.finishReason ?? this.#finish_reason;
    this.#block_reason = chunk.promptFeedback?.blockReason ?? this.#block_reason;
    const usage = usageOf(chunk);
    if (usage) this.#options.onUsage?.(usage);
    this.#usage = usage ?? this.#usage;
    this.#model = chunk.modelVersion ?? this.#model;
    if (chunk.responseId) this.#metadata.response_id = chunk.responseId;
    if (candidate?.groundingMetadata) this.#metadata.grounding = { ...candidate.groundingMetadata };
  }

  /**
   * Returns the answer. A call that the API could not read is a call with the text that the model wrote, so
   * that the model gets an error that it can correct.
   *
   * @throws {LLMError} `ContentFilterError` when the request or the whole answer was filtered, `StreamError`
   * when the response ended early or has no content.
   */
  finish(): BackendAnswer {
    if (this.#block_reason !== undefined) {
      throw new LLMError("ContentFilterError", `Gemini refused the request: ${this.#block_reason}`);
    }
    const finish_reason = this.#finishReason();
    return {
      content: this.#blocks.content(),
      tool_calls: this.#blocks.calls(),
      finish_reason,
      usage: this.#usage,
      model: this.#model,
      metadata: this.#metadata,
    };
  }

  #finishReason(): string {
    const reason = this.#finish_reason;
    if (reason === undefined) {
      throw new LLMError("StreamError", "The response of Gemini ended without a finish reason");
    }
    const has_calls = this.#blocks.calls().length > 0;
    if (MALFORMED.has(reason) && !has_calls) {
      const message = messageIn(this.#options.tail());
      const name = calledFunction(message, this.#options.tools);
      if (name !== undefined) {
        this.#addCall({ name, arguments: message });
        return "tool_calls";
      }
    }
    if (FILTERED.has(reason)) {
      if (this.#has_output) return "content_filter";
      const message = messageIn(this.#options.tail());
      throw new LLMError("ContentFilterError", `Gemini filtered the answer: ${reason}${suffix(message)}`);
    }
    if (reason === "MAX_TOKENS" || reason === "CONTINUATION") return "length";
    if (has_calls) return "tool_calls";
    if (reason === "STOP") return "stop";
    if (this.#has_output) return reason.toLowerCase();
    const message = messageIn(this.#options.tail());
    throw new LLMError("StreamError", `Gemini ended without an answer: ${reason}${suffix(message)}`);
  }

  #addPart(part: Part): void {
    const { text, thought, thoughtSignature, functionCall } = part;
    if (functionCall) {
      const { id, name, args } = functionCall;
      const fields = thoughtSignature === undefined ? {} : { thought_signature: thoughtSignature };
      return this.#addCall({ id, name, arguments: args }, fields);
    }
    if (typeof text === "string") return this.#addText(text, thought === true, thoughtSignature);
    // such as code that the server ran, and its output: sent back as it came
    this.#open = undefined;
    this.#has_output = true;
    this.#blocks.add(this.#blocks.keyFor("gemini_part"), "gemini_part", { part: { ...part } });
  }

  #addText(text: string, is_thought: boolean, signature: string | undefined): void {
    if (text === "" && signature === undefined) return;
    // a signature of its own, without text, belongs to the block before it
    const kind = is_thought || (text === "" && this.#open !== "text") ? "thinking" : "text";
    const key = this.#blocks.keyFor(kind);
    this.#blocks.append(key, kind, text);
    this.#open = kind;
    if (kind === "text") this.#has_output = true;
    if (signature === undefined) return;
    this.#blocks.addFields(key, kind, kind === "text" ? { thought_signature: signature } : { signature });
    this.#open = undefined; // a signed block is complete
  }

  #addCall(call: JsonObject, fields: JsonObject = {}): void {
    this.#open = undefined;
    this.#has_output = true;
    const name = this.#options.tools.get(String(call.name)) ?? call.name;
    this.#blocks.addCall({ ...call, name }, fields);
  }
}

/** Returns `finishMessage` of a response, or an empty text. */
function messageIn(tail: string): string {
  const [, text] = /"finishMessage":\s*("(?:[^"\\]|\\.)*")/.exec(tail) ?? [];
  return text === undefined ? "" : String(JSON.parse(text));
}

/**
 * Returns the function that is named in the message of an unreadable call, such as `print(default_api.add(`.
 */
function calledFunction(message: string, tools: RequestContext): string | undefined {
  const [, call = ""] = /^(?:Malformed function call:)?(.*)/is.exec(message) ?? [];
  return call.match(/[\w-]+/g)?.find((word) => tools.has(word));
}

function suffix(message: string): string {
  return message === "" ? "" : `: ${message.slice(0, 300)}`;
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
