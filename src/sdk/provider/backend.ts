/**
 * The part of a provider that a vendor's module implements: conversion to and from the wire, errors, models.
 * All other parts of a provider are in {@link mountProvider}.
 */
import { errorMessage, errorName } from "../errors.ts";
import type { JsonObject } from "../json.ts";
import { LLMError } from "../llm_errors.ts";
import type { ContentBlock } from "../content_blocks.ts";
import type { Degradation, ResponseFormat, StreamDelta, ToolSpec } from "../messages.ts";
import type { ModelInfo } from "../providers.ts";
import type { ToolCall } from "../tools.ts";
import type { Conversation } from "./conversation.ts";

/** A vendor's API. */
export interface Backend {
  /** Returns the request body for a call. Has no side effects. */
  toRequest(call: CallSettings): WireRequest;
  /**
   * Makes one attempt, without retries of its own. Streams when `io.onDelta` is set. Rejects with whatever
   * the vendor's client throws.
   */
  send(request: WireRequest, io: CallIo): Promise<BackendAnswer>;
  /**
   * Returns an error of {@link Backend.send} or {@link Backend.listModels} that is no LLMError as one. A
   * request that is too long is a `ContextLengthError` with the vendor's message.
   */
  toError(error: unknown): LLMError;
  /** Resolves to the models of the account. A size that the vendor does not report is 0. */
  listModels(io: CallIo): Promise<ListedModel[]>;
}

/** A model as a vendor lists it; {@link ModelInfo} with optional sizes. */
export type ListedModel = { id: string } & Partial<ModelInfo>;

/** A request body and what it cannot express. */
export interface WireRequest {
  /** Body, in the vendor's format. */
  body: JsonObject;
  /** Set when the API cannot do what was requested, such as a response format. */
  degradation?: Degradation | undefined;
  /** Facts for {@link Backend.send} that are not part of the body. */
  context?: unknown;
}

/** What a call asks for; settings of the plan and of the request are merged. */
export interface CallSettings {
  /** Model. */
  readonly model: string;
  /** The history, repaired and normalised. */
  readonly conversation: Conversation;
  /** Tools the model may call, with the fields of native tools. */
  readonly tools: readonly ToolSpec[];
  /** Maximum tokens of the answer; within the model's maximum when that is known. */
  readonly max_output_tokens: number;
  /** Whether the answer is streamed. */
  readonly stream: boolean;
  /** `auto`, `none`, `required`, the name of a tool, or the vendor's own form. */
  readonly tool_choice?: string | JsonObject;
  /** Form of the answer. */
  readonly response_format?: ResponseFormat;
  /** Sampling temperature. */
  readonly temperature?: number;
  /** Nucleus sampling, 0 to 1. */
  readonly top_p?: number;
  /** Texts that end the answer. */
  readonly stop?: readonly string[];
  /** Reasoning effort, such as `low`. */
  readonly reasoning_effort?: string;
  /** Tokens for reasoning; 0 = none. */
  readonly thinking_budget?: number;
}

/** Streams of one attempt. */
export interface CallIo {
  /** Aborts at a cancellation and at the provider's timeouts. */
  readonly signal: AbortSignal;
  /**
   * `fetch` for the vendor's client. It restarts the idle timeout with every received chunk, and stops a
   * response with too many bytes, or with a page of HTML where the status says success. Of a success, the
   * media type is one of JSON exactly when the body begins with `{` or `[`, whatever the server says.
   */
  readonly fetch: typeof fetch;
  /** Receives the deltas of a streamed answer; absent when the answer is not streamed. */
  readonly onDelta?: (delta: StreamDelta) => void;
  /** Receives the tokens that the server has counted so far: the usage of an answer that breaks off. */
  readonly onUsage?: (usage: AnswerUsage) => void;
  /** Emits `provider:retry` for a request that is sent again at once without what the server refused. */
  readonly onRefusal?: (error: unknown) => Promise<unknown>;
  /** Emits a `user:notification`, such as of a tool that the server refuses and the request leaves out. */
  readonly onWarning?: (message: string) => Promise<unknown>;
}

/** Tokens of an answer, by the convention of `Usage`: `input_tokens` includes cache reads and writes. */
export interface AnswerUsage {
  /** Tokens sent, with cache reads and cache writes. */
  input_tokens: number;
  /** Tokens answered, with reasoning. */
  output_tokens: number;
  /** Tokens of reasoning within `output_tokens`. */
  reasoning_tokens?: number | undefined;
  /** Tokens read from the cache, within `input_tokens`. */
  cache_read_tokens?: number | undefined;
  /** Tokens written to the cache, within `input_tokens`. */
  cache_write_tokens?: number | undefined;
  /** Cost in US dollars as a decimal string, of a vendor that states it; known prices take precedence. */
  cost_usd?: string | undefined;
}

/** Answer of one attempt. */
export interface BackendAnswer {
  /** Blocks in order; a tool call is a `tool_call` block. */
  content: ContentBlock[];
  /** Calls of the answer; default: those of the content. Set it for calls with `invalid_arguments`. */
  tool_calls?: ToolCall[];
  /** `stop`, `tool_calls`, `length`, `content_filter`, or the vendor's own word. */
  finish_reason: string;
  /** Tokens; absent when the server does not report them: they are then estimated. */
  usage?: AnswerUsage | undefined;
  /** Model that answered. */
  model?: string | undefined;
  /**
   * Set when the vendor delivered something else than requested; replaces that of the request, which
   * {@link Degradations} takes to report both.
   */
  degradation?: Degradation | undefined;
  /** Facts for hooks and logs, such as the vendor's id of the request. */
  metadata?: JsonObject;
  /** The vendor's answer, for `raw: true`. */
  raw?: unknown;
}

/** Collects what a request or its answer leaves out or replaces, and returns it as one degradation. */
export class Degradations {
  readonly #list: Degradation[];

  /**
   * Creates a collection.
   *
   * @param first What is in it already, such as that of the request. Default: nothing.
   */
  constructor(first?: Degradation) {
    this.#list = first ? [first] : [];
  }

  /**
   * Adds one.
   *
   * @param requested What was requested.
   * @param reason Why it is not in the request.
   * @param actual What is in its place.
   */
  add(requested: string, reason: string, actual = "left out"): void {
    this.#list.push({ requested, actual, reason });
  }

  /**
   * Adds a file or an image that the API does not take; returns the note to send in its place.
   *
   * @param what Kind and name, such as `image cat.gif`.
   * @param reason What the API takes.
   */
  addUnreadable(what: string, reason: string): string {
    this.add(what, reason, "a note in its place");
    return `[The ${what} cannot be shown to this model.]`;
  }

  /** Returns all of them as one, with `; ` between their texts; undefined without any. */
  merged(): Degradation | undefined {
    if (this.#list.length === 0) return undefined;
    const join = (field: keyof Degradation) => [...new Set(this.#list.map((one) => one[field]))].join("; ");
    return { requested: join("requested"), actual: join("actual"), reason: join("reason") };
  }
}

/** Address of a server on this machine. */
const LOCAL_ADDRESS = /https?:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?/;

/** Maximum code units of the reason in a {@link connectionError}. */
const MAX_REASON_CHARS = 500;

/**
 * Returns the failure of a connection, with the innermost cause as the reason: the outer ones only say that a
 * request failed. It may pass, unless the process itself may not connect to the server. A server on this
 * machine that does not run is not asked again, but another provider may be.
 *
 * @param fact Beginning of the message, such as `Cannot reach the API`.
 */
export function connectionError(error: unknown, fact: string): LLMError {
  let root = error;
  while (root instanceof Error && root.cause instanceof Error) root = root.cause;
  const [address] = LOCAL_ADDRESS.exec(errorMessage(root)) ?? [];
  if (address !== undefined && /refused/i.test(errorMessage(root))) { // it does not start by itself
    const message = `${fact}: nothing listens at ${address}; is the server running?`;
    return new LLMError("NetworkError", message, { cause: error, delay_multiplier: 0 });
  }
  const type = errorName(root) === "NotCapable" ? "ConfigurationError" : "NetworkError";
  return new LLMError(type, `${fact}: ${errorMessage(root).slice(0, MAX_REASON_CHARS)}`, { cause: error });
}

/**
 * Returns a response whose body calls `onChunk` with each chunk before it is read; an error in it ends the
 * body.
 *
 * @param signal Ends the body, and the connection. The signal of the request does not when nothing has a
 * reference to the original response any more: it is then collected as garbage, and its signal with it.
 * @param begin Chunks that were read from the body already; they come first, without `onChunk`.
 */
export function withWatchedBody(
  response: Response,
  onChunk: (chunk: Uint8Array) => void,
  signal?: AbortSignal,
  begin: readonly Uint8Array<ArrayBuffer>[] = [],
): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  let end: (() => void) | undefined;
  const cancel = (reason: unknown) => {
    end?.();
    return reader.cancel(reason);
  };
  // perf: a pull for each chunk; a TransformStream makes a dozen promises for each
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const chunk of begin) controller.enqueue(chunk);
      if (!signal) return;
      const abort = () => {
        controller.error(signal.reason);
        cancel(signal.reason).catch(() => {}); // the reader has the reason
      };
      if (signal.aborted) return abort();
      signal.addEventListener("abort", abort, { once: true });
      end = () => signal.removeEventListener("abort", abort);
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          onChunk(value);
          return controller.enqueue(value);
        }
        end?.();
        if (!signal?.aborted) controller.close();
      } catch (error) {
        cancel(error).catch(() => {});
        throw error;
      }
    },
    cancel,
  }, { highWaterMark: 0 });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
