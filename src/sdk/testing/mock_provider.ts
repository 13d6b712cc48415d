/** A provider that answers by script: texts, tool calls, failures, delays, usage, streamed deltas. */
import type { Clock } from "../contracts.ts";
import { LLMError, type LLMErrorOptions, type LLMErrorType } from "../errors.ts";
import { isObject, type JsonObject, toPlain } from "../json.ts";
import {
  type ChatRequest,
  type ChatResponse,
  type ContentBlock,
  toChatResponse,
  Usage,
} from "../messages.ts";
import { type CompleteOptions, ModelInfo, type Provider, ProviderInfo } from "../providers.ts";
import { withSnakeCase } from "../snake_case_aliases.ts";
import type { ToolCall } from "../tools.ts";

/** A failure of the script. */
export interface ScriptedFailure extends LLMErrorOptions {
  /** Which failure; default `LLMError`. */
  type?: LLMErrorType;
  /** Its message. */
  message: string;
}

/** One answer of the script; a plain text is `{text}`. */
export interface ScriptedResponse {
  /** Text of the answer. */
  text?: string;
  /** Reasoning before it. */
  thinking?: string;
  /** Tools it wants called; ids default to `call_1`, `call_2`, …. */
  tool_calls?: { name: string; arguments?: JsonObject; id?: string }[];
  /** What the call took; default 10 tokens in, 5 out. */
  usage?: Partial<Usage>;
  /** Default: `tool_calls` or `stop`. */
  finish_reason?: string;
  /** Milliseconds until the answer, on the provider's clock. */
  delay_ms?: number;
  /** Thrown instead of an answer. */
  error?: ScriptedFailure | Error;
}

/** One step of a script: an answer, its text alone, or a function of the request. */
export type ScriptStep = string | ScriptedResponse | ((request: ChatRequest) => string | ScriptedResponse);

/** How a {@link MockProvider} behaves. */
export interface MockProviderOptions {
  /** Name; default `mock`. */
  name?: string;
  /** One answer for ever, as in the requirements. */
  response?: string;
  /** A script, one step per call. */
  responses?: readonly ScriptStep[];
  /** When the script is used up: `repeat` its last step (default), or fail. */
  after?: "repeat" | "error";
  /** Code points per streamed delta; default 20. */
  chunk_chars?: number;
  /** Lower is preferred. */
  priority?: number;
  /** Tokens of the window; default 100,000. */
  context_window?: number;
  /** Tokens of an answer; default 4,096. */
  max_output_tokens?: number;
  /** Time in which `delay_ms` passes. */
  clock?: Clock;
}

/** A scripted provider. */
export class MockProvider implements Provider {
  /** Name it is mounted under. */
  readonly name: string;
  /** Lower is preferred; absent: 100. */
  declare readonly priority?: number;
  /** Copies of the requests, in order. */
  readonly requests: ChatRequest[] = [];
  readonly #options: MockProviderOptions;
  readonly #script: readonly ScriptStep[];
  #calls = 0;

  /** Creates a provider; a list is a script. */
  constructor(options: MockProviderOptions | readonly ScriptStep[] = {}) {
    const given: MockProviderOptions = isScript(options) ? { responses: options } : options;
    this.#options = given;
    this.#script = given.responses ?? [given.response ?? "Mock response"];
    this.name = given.name ?? "mock";
    if (given.priority !== undefined) this.priority = given.priority;
  }

  /** How often it was called. */
  get call_count(): number {
    return this.requests.length;
  }

  /** Returns the provider's metadata. */
  getInfo(): ProviderInfo {
    const { context_window = 100_000, max_output_tokens = 4096 } = this.#options;
    return ProviderInfo({
      id: this.name,
      display_name: "Mock Provider",
      capabilities: ["streaming", "tools"],
      defaults: { context_window, max_output_tokens },
    });
  }

  /** Resolves to its one model. */
  listModels(): Promise<ModelInfo[]> {
    const { context_window = 100_000, max_output_tokens = 4096 } = this.#options;
    const capabilities = ["streaming", "tools"];
    return Promise.resolve([
      ModelInfo({ id: "mock-model", context_window, max_output_tokens, capabilities }),
    ]);
  }

  /**
   * Plays the next step of the script.
   *
   * @throws {LLMError} what the script says; `AbortError` when the signal aborted.
   */
  async complete(request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> {
    const index = this.requests.length;
    this.requests.push(toPlain(request) as unknown as ChatRequest); // a request is data: its copy is one
    if (options.signal?.aborted) throw aborted(this.name, options.signal);
    const step = this.#stepAt(index);
    const given = typeof step === "function" ? step(request) : step;
    const scripted = typeof given === "string" ? { text: given } : given;
    await this.#wait(scripted.delay_ms, options.signal);
    if (scripted.error) throw this.#failure(scripted.error);
    const response = this.#answer(scripted);
    if (options.onDelta) this.#stream(response, options.onDelta);
    return response;
  }

  #stepAt(index: number): ScriptStep {
    const step = this.#script[index] ?? (this.#options.after === "error" ? undefined : this.#script.at(-1));
    if (step !== undefined) return step;
    const fact = `the script has ${this.#script.length} steps`;
    throw new LLMError("LLMError", `Cannot answer: ${fact}: received call ${index + 1}`, {
      provider: this.name,
    });
  }

  async #wait(ms: number | undefined, signal: AbortSignal | undefined): Promise<void> {
    if (ms === undefined || !this.#options.clock) return;
    try {
      await this.#options.clock.after(ms, signal);
    } catch (error) {
      throw signal?.aborted ? aborted(this.name, signal) : error;
    }
  }

  #failure(error: ScriptedFailure | Error): Error {
    if (error instanceof Error) return error;
    const { type = "LLMError", message, ...facts } = error;
    return new LLMError(type, message, { provider: this.name, ...facts });
  }

  #answer(scripted: ScriptedResponse): ChatResponse {
    const content: ContentBlock[] = [];
    if (scripted.thinking) content.push({ type: "thinking", thinking: scripted.thinking });
    if (scripted.text) content.push({ type: "text", text: scripted.text });
    for (const { name, arguments: input = {}, id } of scripted.tool_calls ?? []) {
      content.push({ type: "tool_call", id: id ?? `call_${++this.#calls}`, name, input });
    }
    const response = toChatResponse({ content });
    response.finish_reason = scripted.finish_reason ?? (response.tool_calls ? "tool_calls" : "stop");
    response.usage = Usage(scripted.usage ?? { input_tokens: 10, output_tokens: 5 });
    return response;
  }

  #stream({ content }: ChatResponse, onDelta: NonNullable<CompleteOptions["onDelta"]>): void {
    content.forEach((block, block_index) => {
      if (block.type === "tool_call") {
        const { id, name, input } = block as { id: string; name: string; input: JsonObject }; // made by #answer
        onDelta({ block_index, block_type: "tool_call", delta: JSON.stringify(input), id, name });
        return;
      }
      const block_type = block.type === "thinking" ? "thinking" : "text";
      for (const delta of chunks(String(block[block_type]), this.#options.chunk_chars ?? 20)) {
        onDelta({ block_index, block_type, delta });
      }
    });
  }

  /** Returns the tool calls of a response. */
  parseToolCalls(response: ChatResponse): ToolCall[] {
    return isObject(response) ? toChatResponse(response).tool_calls ?? [] : [];
  }
}

withSnakeCase(MockProvider);

function isScript(options: MockProviderOptions | readonly ScriptStep[]): options is readonly ScriptStep[] {
  return Array.isArray(options);
}

function aborted(provider: string, signal: AbortSignal): LLMError {
  return new LLMError("AbortError", "The call was cancelled", { provider, cause: signal.reason });
}

function* chunks(text: string, size: number): Generator<string> {
  const points = [...text];
  for (let start = 0; start < points.length; start += size) yield points.slice(start, start + size).join("");
}
