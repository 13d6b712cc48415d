/** Collects the objects of a response into an answer. A response that is not streamed is one object. */
import {
  type ContentBlock,
  isObject,
  type JsonObject,
  LLMError,
  parseToolCall,
  type StreamDelta,
  type ToolCall,
} from "preamp/base";
import type { AnswerUsage, BackendAnswer } from "preamp/provider";

/** Collects an answer. */
export class AnswerCollector {
  readonly #onDelta: ((delta: StreamDelta) => void) | undefined;
  readonly #content: ContentBlock[] = [];
  readonly #calls: ToolCall[] = [];
  readonly #ids = new Set<unknown>();
  /** The last object; it has the counters. */
  #last: JsonObject | undefined;
  #model: string | undefined;

  /** @param onDelta Receives a delta for each part of the answer. */
  constructor(onDelta: ((delta: StreamDelta) => void) | undefined) {
    this.#onDelta = onDelta;
  }

  /** Adds an object of the response. */
  add(object: JsonObject): void {
    const { message, model, done } = object;
    if (typeof model === "string") this.#model = model;
    if (isObject(message)) {
      this.#addText("thinking", message.thinking);
      this.#addText("text", message.content);
      const calls: unknown[] = Array.isArray(message.tool_calls) ? message.tool_calls : [];
      for (const call of calls) if (isObject(call)) this.addCall(call);
    }
    if (done === true) this.#last = object;
  }

  /** Adds a call: `{id?, function: {name, arguments}}`. */
  addCall({ id, function: fields }: JsonObject): void {
    const { name, arguments: args } = isObject(fields) ? fields : {};
    const call = parseToolCall({ id: this.#ids.has(id) ? undefined : id, name, arguments: args });
    this.#ids.add(call.id);
    this.#calls.push(call);
    const block = { type: "tool_call", id: call.id, name: call.name, input: call.arguments };
    this.#content.push(block);
    this.#onDelta?.({
      block_index: this.#content.length - 1,
      block_type: "tool_call",
      delta: call.invalid_arguments ?? JSON.stringify(block.input),
      id: block.id,
      name: block.name,
    });
  }

  /**
   * Returns the answer.
   *
   * @throws {LLMError} `StreamError` when the response ended before the answer did.
   */
  finish(): BackendAnswer {
    if (!this.#last) {
      throw new LLMError("StreamError", "The response of Ollama ended before the answer was done");
    }
    const { done_reason, total_duration, load_duration } = this.#last;
    const reason = typeof done_reason === "string" && done_reason ? done_reason : "stop";
    const usage = usageOf(this.#last);
    return {
      content: this.#content,
      ...(this.#calls.length > 0 ? { tool_calls: this.#calls } : {}),
      finish_reason: reason === "stop" && this.#calls.length > 0 ? "tool_calls" : reason,
      ...(usage ? { usage } : {}),
      ...(this.#model === undefined ? {} : { model: this.#model }),
      metadata: { total_duration, load_duration },
      raw: this.#last,
    };
  }

  #addText(kind: "text" | "thinking", text: unknown): void {
    if (typeof text !== "string" || text === "") return;
    const open = this.#content.at(-1);
    if (open?.type === kind) open[kind] += text;
    else this.#content.push({ type: kind, [kind]: text });
    this.#onDelta?.({ block_index: this.#content.length - 1, block_type: kind, delta: text });
  }
}

/** Returns the tokens; the server leaves `prompt_eval_count` out when it counted nothing. */
function usageOf({ prompt_eval_count, eval_count }: JsonObject): AnswerUsage | undefined {
  return isCount(prompt_eval_count)
    ? { input_tokens: prompt_eval_count, output_tokens: isCount(eval_count) ? eval_count : 0 }
    : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
