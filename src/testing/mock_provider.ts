/** A provider with scripted answers: texts, tool calls, failures, delays, usage, streamed deltas. */
import type { Clock } from "../sdk/contracts.ts";
import { LLMError, type LLMErrorOptions, type LLMErrorType } from "../sdk/llm_errors.ts";
import { isObject, type JsonObject, toPlain } from "../sdk/json.ts";
import type { ContentBlock } from "../sdk/content_blocks.ts";
import { type ChatRequest, type ChatResponse, toChatResponse, Usage } from "../sdk/messages.ts";
import { type CompleteOptions, ModelInfo, type Provider, ProviderInfo } from "../sdk/providers.ts";
import { withSnakeCase } from "../sdk/snake_case_aliases.ts";
import type { ToolCall } from "../sdk/tools.ts";

/** A scripted failure. */
export interface ScriptedFailure extends LLMErrorOptions {
  /** Type of the failure; default `LLMError`. */
  type?: LLMErrorType;
  /** Message of the failure. */
  message: string;
}

/** A scripted answer; a plain text is `{text}`. */
export interface ScriptedResponse {
  /** Text of the answer. */
  text?: string;
  /** Reasoning before the text. */
  thinking?: string;
  /** Tool calls of the answer; ids default to `call_1`, `call_2`, …. */
  tool_calls?: { name: string; arguments?: JsonObject; id?: string }[];
  /** Usage of the call; default: 10 input and 5 output tokens. */
  usage?: Partial<Usage>;
  /** Default: `tool_calls` or `stop`. */
  finish_reason?: string;
  /** Delay of the answer in milliseconds, on the provider's clock. */
  delay_ms?: number;
  /** Error that is thrown instead of an answer. */
  error?: ScriptedFailure | Error;
}

/** A step of a script: an answer, its text, or a function of the request. */
export type ScriptStep = string | ScriptedResponse | ((request: ChatRequest) => string | ScriptedResponse);

/** Options of a {@link MockProvider}. */
export interface MockProviderOptions {
  /** Name; default `mock`. */
  name?: string;
  /** The same answer to every call. */
  response?: string;
  /** A script, one step per call. */
  responses?: readonly ScriptStep[];
  /** After the last step: `repeat` the last step (default), or fail. */
  after?: "repeat" | "error";
  /** Code points per streamed delta; default 20. */
  chunk_chars?: number;
  /** Lower is preferred. */
  priority?: number;
  /** Context window in tokens; default 100,000. */
  context_window?: number;
  /** Maximum tokens of an answer; default 4,096. */
  max_output_tokens?: number;
  /** Clock of `delay_ms`. */
  clock?: Clock;
}

/** A scripted provider. */
export class MockProvider implements Provider {
  readonly name: string;
  declare readonly priority?: number;
  /** Copies of the requests, in order. */
  readonly requests: ChatRequest[] = [];
  readonly #options: MockProviderOptions;
  readonly #script: readonly ScriptStep[];
  #calls = 0;

  /** Creates a provider from options or from a script. */
  constructor(options: MockProviderOptions | readonly ScriptStep[] = {}) {
    const settings: MockProviderOptions = Array.isArray(options)
      ? { responses: options }
      : options as MockProviderOptions; // not a list
    this.#options = settings;
    this.#script = settings.responses ?? [settings.response ?? "Mock response"];
    this.name = settings.name ?? "mock";
    if (settings.priority !== undefined) this.priority = settings.priority;
  }

  /** Number of calls. */
  get call_count(): number {
    return this.requests.length;
  }

  getInfo(): ProviderInfo {
    const { context_window = 100_000, max_output_tokens = 4096 } = this.#options;
    return ProviderInfo({
      id: this.name,
      display_name: "Mock Provider",
      capabilities: ["streaming", "tools"],
      defaults: { context_window, max_output_tokens },
    });
  }

  listModels(): Promise<ModelInfo[]> {
    const { context_window = 100_000, max_output_tokens = 4096 } = this.#options;
    const capabilities = ["streaming", "tools"];
    return Promise.resolve([
      ModelInfo({ id: "mock-model", context_window, max_output_tokens, capabilities }),
    ]);
  }

  /**
   * Answers with the next step of the script.
   *
   * @throws {LLMError} the failure of the script; `AbortError` when the signal aborted.
   */
  async complete(request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> {
    const index = this.requests.length;
    this.requests.push(toPlain(request) as unknown as ChatRequest); // a request is plain data
    if (options.signal?.aborted) throw aborted(this.name, options.signal);
    const step = this.#stepAt(index);
    const answer = typeof step === "function" ? step(request) : step;
    const scripted = typeof answer === "string" ? { text: answer } : answer;
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
        const { id, name, input } = block as { id: string; name: string; input: JsonObject }; // created by #answer
        onDelta({ block_index, block_type: "tool_call", delta: JSON.stringify(input), id, name });
        return;
      }
      const block_type = block.type === "thinking" ? "thinking" : "text";
      for (const delta of chunks(String(block[block_type]), this.#options.chunk_chars ?? 20)) {
        onDelta({ block_index, block_type, delta });
      }
    });
  }

  parseToolCalls(response: ChatResponse): ToolCall[] {
    return isObject(response) ? toChatResponse(response).tool_calls ?? [] : [];
  }
}

withSnakeCase(MockProvider);

function aborted(provider: string, signal: AbortSignal): LLMError {
  return new LLMError("AbortError", "The call was cancelled", { provider, cause: signal.reason });
}

function* chunks(text: string, size: number): Generator<string> {
  const points = [...text];
  for (let start = 0; start < points.length; start += size) yield points.slice(start, start + size).join("");
}
