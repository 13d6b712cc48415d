/** Reads an answer of the Responses API, whole or streamed. */
import type OpenAI from "openai";
import { isObject, type JsonObject, LLMError } from "preamp/base";
import type { AnswerBlocks, AnswerUsage, BackendAnswer } from "preamp/provider";
import { isStatedError, ServerError } from "./errors.ts";
import { statedCost } from "./stated_cost.ts";

type Event = OpenAI.Responses.ResponseStreamEvent;
type Response = OpenAI.Responses.Response;
type Item = OpenAI.Responses.ResponseOutputItem;

/** Reads the items of one answer. */
export class ResponsesAnswer {
  readonly #blocks: AnswerBlocks;
  readonly #states_cost: boolean;
  readonly #finished = new Set<string>();
  /** Key of an item → index of the last part of its summary. */
  readonly #summary_part = new Map<string, number>();
  #refused = false;
  #response: Response | undefined;

  /**
   * Creates a reader that adds to `blocks`.
   *
   * @param states_cost Whether `usage.cost` of the server is in US dollars.
   */
  constructor(blocks: AnswerBlocks, states_cost = false) {
    this.#blocks = blocks;
    this.#states_cost = states_cost;
  }

  /**
   * Reads a whole response, or the last one of a stream.
   *
   * @throws {LLMError} when the value is not a response.
   * @throws {ServerError} when the response has failed.
   */
  readWhole(value: unknown): void {
    if (!isObject(value)) throw unreadable();
    const response = value as unknown as Response; // its fields are checked where they are read
    if (response.status === "failed" || isStatedError(response.error)) throw failureOf(response);
    const output = Array.isArray(response.output) ? response.output : undefined;
    if (output === undefined && this.#finished.size === 0) throw unreadable();
    output?.forEach((item, index) => this.#finishItem(String(index), item));
    this.#response = response;
  }

  readEvent(value: unknown): void {
    if (!isObject(value)) return;
    const event = value as unknown as Event; // other types are ignored below
    switch (event.type) {
      case "response.output_item.added":
        return this.#startItem(keyOf(event), event.item);
      case "response.output_item.done":
        return this.#finishItem(keyOf(event), event.item);
      case "response.refusal.delta":
        this.#refused = true;
        return this.#blocks.append(partKey(event), "text", event.delta);
      case "response.output_text.delta":
        return this.#blocks.append(partKey(event), "text", event.delta);
      case "response.reasoning_summary_text.delta":
        return this.#appendSummary(keyOf(event), event.summary_index, event.delta);
      case "response.reasoning_text.delta":
        return this.#blocks.append(keyOf(event), "thinking", event.delta);
      case "response.function_call_arguments.delta":
        return this.#blocks.appendArguments(keyOf(event), event.delta);
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return this.readWhole(event.response);
      case "error":
        throw new ServerError(event as unknown as JsonObject); // the client throws it when the event is named, too
    }
  }

  /**
   * Returns the answer.
   *
   * @throws {LLMError} `StreamError` when the stream ended too early.
   */
  finish(): BackendAnswer {
    const response = this.#response;
    if (!response) throw new LLMError("StreamError", "The answer's stream ended before its last event");
    const tool_calls = this.#blocks.calls();
    return {
      content: this.#blocks.content(),
      tool_calls,
      finish_reason: this.#finishReason(response, tool_calls.length > 0),
      usage: usageOf(response.usage, this.#states_cost),
      model: response.model || undefined,
      ...(response.id ? { metadata: { response_id: response.id } } : {}),
      raw: response,
    };
  }

  #finishReason(response: Response, hasCalls: boolean): string {
    const { status, incomplete_details } = response;
    if (status === "incomplete" || incomplete_details?.reason) {
      const reason = incomplete_details?.reason ?? "length";
      return reason === "max_output_tokens" ? "length" : reason;
    }
    if (this.#refused) return "content_filter";
    return hasCalls ? "tool_calls" : "stop";
  }

  #startItem(key: string, item: Item): void {
    if (item?.type !== "function_call" || this.#blocks.argumentsOf(key) !== undefined) return;
    this.#blocks.startCall(key, item.call_id, item.name);
  }

  #appendSummary(key: string, part: number, delta: string): void {
    const last = this.#summary_part.get(key);
    this.#summary_part.set(key, part);
    this.#blocks.append(key, "thinking", last === undefined || last === part ? delta : `\n\n${delta}`);
  }

  /** Reads a finished item; a second time it is ignored. */
  #finishItem(key: string, item: Item): void {
    if (!isObject(item) || this.#finished.has(key)) return;
    this.#finished.add(key);
    switch (item.type) {
      case "message":
        return this.#finishMessage(key, item);
      case "reasoning":
        return this.#finishReasoning(key, item);
      case "function_call": {
        this.#startItem(key, item);
        const args: unknown = item.arguments ?? ""; // some servers send an object
        return this.#blocks.completeArguments(key, typeof args === "string" ? args : JSON.stringify(args));
      }
      default:
        return this.#blocks.add(key, item.type, { item: item as unknown as JsonObject });
    }
  }

  #finishMessage(key: string, item: OpenAI.Responses.ResponseOutputMessage): void {
    (item.content ?? []).forEach((part, index) => {
      const part_key = `${key}.${index}`;
      if (part.type === "refusal") {
        this.#refused = true;
        return this.#blocks.complete(part_key, "text", part.refusal);
      }
      this.#blocks.complete(part_key, "text", part.text ?? "");
      const { annotations } = part;
      const fields: JsonObject = {};
      if (item.phase) fields.phase = item.phase;
      if (Array.isArray(annotations) && annotations.length > 0) fields.annotations = annotations;
      this.#blocks.addFields(part_key, "text", fields);
    });
  }

  /**
   * Keeps the item: it is sent back with the next request. The API takes it only with its encrypted content.
   */
  #finishReasoning(key: string, item: OpenAI.Responses.ResponseReasoningItem): void {
    const texts = item.summary?.length ? item.summary : item.content ?? [];
    this.#blocks.complete(key, "thinking", texts.map((part) => part.text).join("\n\n"));
    const { id, summary = [], encrypted_content } = item;
    if (encrypted_content) {
      const kept = { type: "reasoning", id, summary, encrypted_content };
      this.#blocks.addFields(key, "thinking", { item: kept });
    }
  }
}

/** Other servers may leave out the index of an item, but not its id. */
function keyOf(event: { output_index?: number; item_id?: string }): string {
  return String(event.output_index ?? event.item_id ?? 0);
}

function partKey(event: { output_index?: number; item_id?: string; content_index?: number }): string {
  return `${keyOf(event)}.${event.content_index ?? 0}`;
}

function unreadable(): LLMError {
  return new LLMError(
    "InvalidRequestError",
    "Cannot read the server's answer: it is not one of the Responses API; check base_url and api",
  );
}

function failureOf({ error, id }: Response): ServerError {
  const stated: unknown = error;
  if (typeof stated === "string") return new ServerError(stated);
  return new ServerError({ message: `The response ${id} has failed`, ...(isObject(stated) ? stated : {}) });
}

/** Returns the usage by our convention. OpenAI counts tokens written to its cache as input, too. */
function usageOf(
  usage: OpenAI.Responses.ResponseUsage | null | undefined,
  states_cost: boolean,
): AnswerUsage | undefined {
  if (!isObject(usage)) return undefined;
  const { input_tokens = 0, output_tokens = 0, input_tokens_details, output_tokens_details } = usage;
  const written = input_tokens_details?.cache_write_tokens ?? 0;
  return {
    input_tokens: input_tokens - written,
    output_tokens,
    reasoning_tokens: output_tokens_details?.reasoning_tokens,
    cache_read_tokens: input_tokens_details?.cached_tokens,
    cache_write_tokens: written || undefined,
    cost_usd: states_cost ? statedCost({ ...usage }) : undefined,
  };
}
