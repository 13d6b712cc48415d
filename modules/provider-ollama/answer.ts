/** Collects the objects of a response into an answer. A response that is not streamed is one object. */
import { isObject, type JsonObject, LLMError, type StreamDelta } from "preamp/base";
import { AnswerBlocks, type AnswerUsage, type BackendAnswer } from "preamp/provider";

export class AnswerCollector {
  readonly #blocks: AnswerBlocks;
  /** The last object; it has the counters. */
  #last: JsonObject | undefined;
  #model: string | undefined;

  /** @param onDelta Receives a delta for each part of the answer. */
  constructor(onDelta: ((delta: StreamDelta) => void) | undefined) {
    this.#blocks = new AnswerBlocks([], onDelta);
  }

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
    this.#blocks.addCall({ ...(isObject(fields) ? fields : {}), id });
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
    const tool_calls = this.#blocks.calls();
    return {
      content: this.#blocks.content(),
      tool_calls,
      finish_reason: reason === "stop" && tool_calls.length > 0 ? "tool_calls" : reason,
      usage: usageOf(this.#last),
      model: this.#model,
      metadata: { total_duration, load_duration },
      raw: this.#last,
    };
  }

  #addText(kind: "text" | "thinking", text: unknown): void {
    if (typeof text === "string") this.#blocks.append(this.#blocks.keyFor(kind), kind, text);
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
