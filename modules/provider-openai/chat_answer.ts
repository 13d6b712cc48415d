/** Reads an answer of the Chat Completions API, whole or streamed, also of servers that only resemble it. */
import { isObject, type JsonObject, LLMError } from "preamp/base";
import type { AnswerBlocks, AnswerUsage, BackendAnswer } from "preamp/provider";
import { isStatedError, ServerError } from "./errors.ts";
import { statedCost } from "./stated_cost.ts";

/** Fields in which servers send reasoning; the first one with text is read. */
const REASONING = ["reasoning_content", "reasoning", "reasoning_text"] as const;

const FINISH_REASONS: ReadonlyMap<string, string> = new Map([
  ["function_call", "tool_calls"],
  ["max_tokens", "length"],
  ["model_length", "length"], // Mistral: the window is full
  ["model_context_window_exceeded", "length"], // Z.AI
  ["sensitive", "content_filter"], // Z.AI
]);

/** Reasons with which a server, such as that of DeepSeek or Z.AI, ends an answer that it could not finish. */
const FAILURES: ReadonlySet<unknown> = new Set(["insufficient_system_resource", "network_error", "error"]);

interface OpenCall {
  readonly key: string;
  readonly id: string | undefined;
  named: boolean;
}

/** Reads the message of one answer. */
export class ChatAnswer {
  readonly #blocks: AnswerBlocks;
  readonly #states_cost: boolean;
  /** The calls by their index, and without one by their order. */
  readonly #calls = new Map<number, OpenCall>();
  #last_call: OpenCall | undefined;
  #call_count = 0;
  #reasoning: string | undefined;
  readonly #details: JsonObject[] = [];
  #refused = false;
  #finish_reason: string | undefined;
  #usage: JsonObject | undefined;
  #model: string | undefined;
  #id: string | undefined;

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
   * Reads a whole answer.
   *
   * @throws {LLMError} when the value is not an answer, or says that the server failed.
   */
  readWhole(answer: unknown): void {
    if (isObject(answer) && isStatedError(answer.error)) throw new ServerError(answer.error);
    if (!isObject(answer) || !Array.isArray(answer.choices) || !isObject(answer.choices[0])) {
      throw unreadable();
    }
    this.#readHead(answer);
    const { message, finish_reason } = answer.choices[0] as JsonObject;
    if (isObject(message)) this.#readMessage(message);
    this.#setFinish(finish_reason ?? "stop");
  }

  readEvent(chunk: unknown): void {
    if (!isObject(chunk)) return;
    this.#readHead(chunk);
    const choices: unknown[] = Array.isArray(chunk.choices) ? chunk.choices : []; // empty in the chunk of the usage
    for (const choice of choices) {
      if (!isObject(choice) || Number(choice.index ?? 0) !== 0) continue;
      const message = choice.delta ?? choice.message;
      if (isObject(message)) this.#readMessage(message);
      this.#setFinish(choice.finish_reason);
    }
  }

  /**
   * Returns the answer.
   *
   * @throws {LLMError} `StreamError` when the stream ended too early.
   */
  finish(): BackendAnswer {
    if (this.#finish_reason === undefined) {
      throw new LLMError("StreamError", "The answer's stream ended before its finish_reason");
    }
    if (this.#details.length > 0) {
      this.#blocks.addFields("thinking", "thinking", { details: this.#details });
    }
    const tool_calls = this.#blocks.calls();
    return {
      content: this.#blocks.content(),
      tool_calls,
      finish_reason: this.#finishReason(tool_calls.length > 0),
      usage: usageOf(this.#usage, this.#states_cost),
      model: this.#model,
      ...(this.#id ? { metadata: { response_id: this.#id } } : {}),
    };
  }

  #finishReason(hasCalls: boolean): string {
    const reason = this.#finish_reason!; // checked by `finish`
    if (this.#refused && reason === "stop") return "content_filter";
    return hasCalls && reason === "stop" ? "tool_calls" : reason;
  }

  #setFinish(reason: unknown): void {
    if (typeof reason !== "string" || reason === "") return;
    if (FAILURES.has(reason)) {
      throw new LLMError("ProviderUnavailableError", `The server could not finish the answer: ${reason}`);
    }
    this.#finish_reason = FINISH_REASONS.get(reason) ?? reason;
  }

  #readHead({ id, model, usage }: JsonObject): void {
    if (typeof id === "string" && id) this.#id = id;
    if (typeof model === "string" && model) this.#model = model;
    if (isObject(usage) && typeof usage.prompt_tokens === "number") this.#usage = usage;
  }

  #readMessage(message: JsonObject): void {
    this.#readReasoning(message);
    this.#blocks.append("text", "text", textOf(message.content));
    if (typeof message.refusal === "string" && message.refusal !== "") {
      this.#refused = true;
      this.#blocks.append("text", "text", message.refusal);
    }
    const calls: unknown[] = Array.isArray(message.tool_calls) ? message.tool_calls : [];
    for (const call of calls) if (isObject(call)) this.#readCall(call);
  }

  #readReasoning(message: JsonObject): void {
    const field = this.#reasoning ??
      REASONING.find((name) => typeof message[name] === "string" && message[name] !== "");
    const text = field === undefined ? undefined : message[field];
    if (field !== undefined && typeof text === "string" && text !== "") {
      this.#blocks.append("thinking", "thinking", text);
      if (this.#reasoning === undefined) this.#blocks.addFields("thinking", "thinking", { field });
      this.#reasoning = field;
    }
    if (Array.isArray(message.reasoning_details)) addDetails(this.#details, message.reasoning_details);
    if (this.#reasoning === undefined && Array.isArray(message.content)) {
      this.#blocks.append("thinking", "thinking", thinkingOf(message.content));
    }
  }

  #readCall(delta: JsonObject): void {
    const called = isObject(delta.function) ? delta.function : {};
    const id = typeof delta.id === "string" && delta.id !== "" ? delta.id : undefined;
    const name = typeof called.name === "string" && called.name !== "" ? called.name : undefined;
    const index = typeof delta.index === "number" ? delta.index : undefined;
    const open = index === undefined ? this.#last_call : this.#calls.get(index);
    const call = open && !this.#isNew(open, id, name) ? open : this.#startCall(index, id, name);
    if (!call.named && name !== undefined) {
      call.named = true;
      this.#blocks.addFields(call.key, "tool_call", { name });
    }
    const args = called.arguments;
    if (typeof args === "string") this.#blocks.appendArguments(call.key, args);
    else if (isObject(args)) this.#blocks.completeArguments(call.key, JSON.stringify(args));
    if (delta.extra_content !== undefined) {
      this.#blocks.addFields(call.key, "tool_call", { extra_content: delta.extra_content });
    }
  }

  /**
   * Returns whether a delta belongs to another call than the open one with the same index, or without an
   * index: some servers send every call with index 0 or none. Such a delta has a name, and another id or,
   * without ids, follows complete arguments.
   */
  #isNew(open: OpenCall, id: string | undefined, name: string | undefined): boolean {
    if (name === undefined || !open.named) return false;
    if (id !== undefined || open.id !== undefined) return id !== undefined && id !== open.id;
    return isComplete(this.#blocks.argumentsOf(open.key) ?? "");
  }

  #startCall(index: number | undefined, id: string | undefined, name: string | undefined): OpenCall {
    const call: OpenCall = { key: `call.${this.#call_count++}`, id, named: name !== undefined };
    if (index !== undefined) this.#calls.set(index, call);
    this.#last_call = call;
    this.#blocks.startCall(call.key, id, name);
    return call;
  }
}

/** Returns the text of content; Mistral sends it as parts. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.filter(isObject).map(({ type, text }) =>
    type === "text" && typeof text === "string" ? text : ""
  )
    .join("");
}

/** Returns the reasoning among parts of content. */
function thinkingOf(content: readonly unknown[]): string {
  return content.filter(isObject).map(({ type, thinking }) => type === "thinking" ? textOf(thinking) : "")
    .join("");
}

function isComplete(json: string): boolean {
  try {
    return isObject(JSON.parse(json));
  } catch {
    return false; // more arguments follow
  }
}

/** Adds streamed parts of OpenRouter's `reasoning_details`: texts of parts with the same index are joined. */
function addDetails(details: JsonObject[], deltas: readonly unknown[]): void {
  for (const delta of deltas.filter(isObject)) {
    const known = details.find(({ index, type }) =>
      index !== undefined && index === delta.index && type === delta.type
    );
    if (!known) {
      details.push({ ...delta });
      continue;
    }
    for (const [key, value] of Object.entries(delta)) {
      const before = known[key];
      const joins = ["text", "summary", "data"].includes(key) && typeof before === "string";
      if (value !== null && value !== undefined) known[key] = joins ? `${before}${value}` : value;
    }
  }
}

function unreadable(): LLMError {
  return new LLMError(
    "InvalidRequestError",
    "Cannot read the server's answer: it is not one of Chat Completions; check base_url and api",
  );
}

/** Returns the usage by our convention. DeepSeek has its own field for cache reads. */
function usageOf(usage: JsonObject | undefined, states_cost: boolean): AnswerUsage | undefined {
  if (!usage) return undefined;
  const prompt = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  const completion = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {};
  const written = numberOf(prompt.cache_write_tokens) ?? 0;
  const sent = numberOf(usage.prompt_tokens) ?? 0;
  const answered = numberOf(usage.completion_tokens) ?? 0;
  return {
    input_tokens: sent - written,
    // xAI and Gemini count reasoning in the total only
    output_tokens: Math.max(answered, (numberOf(usage.total_tokens) ?? 0) - sent),
    reasoning_tokens: numberOf(completion.reasoning_tokens),
    cache_read_tokens: numberOf(prompt.cached_tokens) ?? numberOf(usage.prompt_cache_hit_tokens),
    cache_write_tokens: written || undefined,
    cost_usd: states_cost ? statedCost(usage) : undefined,
  };
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
