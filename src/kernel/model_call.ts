/**
 * One model call of the loop: its attempts, the blocks of the answer as they arrive, and the events that
 * report it. `guard_provider.ts` makes the attempts, and decides whether one may be made and what it counts.
 */
import type { ContextOverflow } from "../sdk/context_overflow.ts";
import { errorMessage, errorName } from "../sdk/errors.ts";
import { type JsonObject, toFrozenOwn, toPlain } from "../sdk/json.ts";
import { overflowOf } from "../sdk/llm_errors.ts";
import { responseData } from "../sdk/loop/assistant_message.ts";
import {
  factsOf,
  isBrokenStream,
  isPassing,
  overflowError,
  unfitError,
} from "../sdk/loop/provider_errors.ts";
import { RetryConfig, retryDelay, withRetry } from "../sdk/retry.ts";
import type { ChatRequest, CompleteOptions, ContentBlock, StreamDelta, Usage } from "../sdk/types.ts";
import type { SessionContext } from "./session_context.ts";
import type { Answer } from "./answer.ts";

/** An attempt that failed. */
export class FailedAttempt {
  /**
   * @param failure Data of `provider:error`; null when a guard stopped the call.
   * @param part Usage of the part of an answer that arrived; it counts with the event that reports it.
   * @param is_ended Whether a cancellation or the end of the time ended it.
   */
  constructor(
    readonly error: unknown,
    readonly failure: JsonObject | null,
    readonly part: Usage | null,
    readonly is_ended: boolean,
  ) {}
}

/** What a call needs. */
export interface ModelCallParts {
  /** Name of the provider. */
  readonly provider: string;
  /** Number of the request in the turn, from 1. */
  readonly iteration: number;
  /** Attempts after the first one. */
  readonly max_retries: number;
  readonly shorten: CompleteOptions["shorten"] | undefined;
  /** Makes one attempt. Rejects when none may be made. */
  attempt(request: ChatRequest, onDelta: (delta: StreamDelta) => void): Promise<Answer | FailedAttempt>;
}

/** One call, for one request and at most one shortened request. */
export class ModelCall {
  readonly #session: SessionContext;
  readonly #turn: SessionContext["turn"];
  readonly #step: SessionContext["step"];
  readonly #parts: ModelCallParts;
  #attempts = 0;
  #broken_streams = 0;
  /** Blocks of the last attempt. */
  #blocks: AnswerBlocks | null = null;

  constructor(session: SessionContext, parts: ModelCallParts) {
    this.#session = session;
    this.#turn = session.turn;
    this.#step = session.step;
    this.#parts = parts;
  }

  /** Resolves to the answer after its events; rejects with the last failure after `provider:error`. */
  async answer(request: ChatRequest): Promise<Answer> {
    const { provider, iteration } = this.#parts;
    const first = await this.#attempt(request);
    const answer = first instanceof FailedAttempt ? await this.#recovered(first, request) : first;
    await this.#blocks!.finish(answer.content); // of the attempt that was answered
    await this.#emit("provider:response", {
      provider,
      iteration,
      usage: answer.usage as unknown as JsonObject, // the same fields
      tool_calls: answer.tool_calls !== undefined,
      response: toFrozenOwn(responseData(answer)),
    });
    return answer;
  }

  /** Emits an event, and counts the usage that it states. */
  #emit(event: string, data: JsonObject, part: Usage | null = null): Promise<unknown> {
    if (part === null) return this.#session.hooks.emit(event, data);
    this.#session.run_limits.countPart(part);
    return this.#session.hooks.emit(event, { ...data, usage: toPlain(part) });
  }

  /** Resolves to the answer of a further attempt; rejects with the last failure. */
  async #recovered(first: FailedAttempt, request: ChatRequest): Promise<Answer> {
    let answer = await this.#tryAgain(first, request);
    const overflow = answer instanceof FailedAttempt && this.#parts.shorten ? this.#overflowOf(answer) : null;
    if (answer instanceof FailedAttempt && overflow !== null) {
      request = await this.#shortened(answer, overflow);
      this.#attempts = 0;
      answer = await this.#attempt(request);
      if (answer instanceof FailedAttempt) answer = await this.#tryAgain(answer, request);
    }
    if (answer instanceof FailedAttempt) throw await this.#failed(answer, request);
    return answer;
  }

  /** Makes further attempts after failures that may pass. */
  async #tryAgain(first: FailedAttempt, request: ChatRequest): Promise<Answer | FailedAttempt> {
    const { provider, max_retries } = this.#parts;
    if (max_retries === 0) return first;
    const { host, run_limits, cancellation } = this.#session;
    const config = RetryConfig({ max_retries });
    // derived from the request's random id, so that a replay waits as long
    const random = () => fractionOf(this.#blocks!.request_id);
    let last = first;
    const next = async (count: number): Promise<Answer> => {
      const attempted = count === 1 ? first : await this.#attempt(request);
      if (!(attempted instanceof FailedAttempt)) return attempted;
      throw (last = attempted).error;
    };
    try {
      return await withRetry(next, {
        clock: host.clock,
        config,
        signal: cancellation.any_signal,
        random,
        isRetryable: (error) => {
          if (last.is_ended || this.#blocks!.started || !isPassing(error)) return false;
          if (isBrokenStream(error) && this.#broken_streams++ > 0) return false;
          return retryDelay(this.#attempts, error, config, random) * 1000 <= run_limits.left_ms;
        },
        onRetry: ({ ...notice }) => this.#emitRetry({ provider, ...notice }, last),
      });
    } catch (error) {
      if (error === last.error) return last;
      throw error; // a cancellation during the wait, a limit, or the log
    }
  }

  #emitRetry(notice: JsonObject, { error, part }: FailedAttempt): Promise<unknown> {
    const { request_id } = this.#blocks!; // of the failed attempt
    return this.#emit("provider:retry", { ...notice, request_id, ...factsOf(error) }, part);
  }

  async #attempt(request: ChatRequest): Promise<Answer | FailedAttempt> {
    this.#attempts++;
    const blocks = this.#blocks = new AnswerBlocks(this.#session);
    const attempted = await this.#parts.attempt(request, blocks.onDelta);
    return attempted instanceof FailedAttempt ? await this.#ended(attempted, blocks) : attempted;
  }

  /** Reports a stream that broke. */
  async #ended(attempted: FailedAttempt, blocks: AnswerBlocks): Promise<FailedAttempt> {
    await blocks.drained();
    if (!blocks.started || !this.#is_current) return attempted;
    const { error, part, is_ended } = attempted;
    const data = {
      request_id: blocks.request_id,
      error: { type: errorName(error), msg: errorMessage(error) },
    };
    await this.#emit("llm:stream_aborted", data, is_ended ? part : null);
    return is_ended ? new FailedAttempt(error, attempted.failure, null, true) : attempted;
  }

  /** Returns the numbers of a request that was refused as too long; null for any other failure. */
  #overflowOf({ error, failure }: FailedAttempt): ContextOverflow | null {
    const is_over = failure === null || this.#session.cancellation.is_cancelled || this.#blocks!.started;
    return is_over ? null : overflowOf(error);
  }

  /** Resolves to a smaller request; the first one is reported as an attempt. */
  async #shortened(failed: FailedAttempt, overflow: ContextOverflow): Promise<ChatRequest> {
    const notice = {
      provider: this.#parts.provider,
      attempt: this.#attempts,
      max_retries: this.#attempts,
      delay: 0,
      error_type: "ContextLengthError", // an error that is no LLMError has another name
      error_message: errorMessage(failed.error),
    };
    await this.#emitRetry(notice, failed);
    try {
      return await this.#parts.shorten!(overflow); // a call without it does not get here
    } catch (error) {
      throw unfitError(error, failed.error);
    }
  }

  /** Reports the last failure, unless the run ended the call; resolves to the error for the loop. */
  async #failed(failed: FailedAttempt, request: ChatRequest): Promise<unknown> {
    const { error, failure, part, is_ended } = failed;
    if (failure === null || is_ended || !this.#is_current) return error;
    const { is_cancelled } = this.#session.cancellation;
    if (!is_cancelled || part !== null) await this.#emit("provider:error", failure, part);
    return this.#overflowOf(failed) === null ? error : overflowError(this.#parts.provider, error, request);
  }

  /** Whether the turn has not gone on without the call. */
  get #is_current(): boolean {
    return this.#turn === this.#session.turn && this.#step === this.#session.step;
  }
}

/** Returns a number in [0, 1) derived from a text (FNV-1a). */
function fractionOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) / 0x1_0000_0000;
}

interface StartedBlock {
  type: string;
  sequence: number;
}

/** Deltas that wait for the handlers of those before them from which on further ones are joined. */
const MAX_WAITING = 256;

/**
 * Emits the blocks of one attempt's answer as `content_block:start`, `:delta` and `:end`: in order, as deltas
 * arrive, or all at once for a provider that does not stream. The joined deltas are always the complete text.
 */
class AnswerBlocks {
  readonly request_id: string;
  readonly #session: SessionContext;
  /** Streamed blocks by index; null before the first. */
  #started: Map<number, StartedBlock> | null = null;
  #queue: StreamDelta[] = [];
  #draining: Promise<void> | null = null;
  #failure: { error: unknown } | null = null;

  constructor(session: SessionContext) {
    this.#session = session;
    this.request_id = session.host.newId("req");
  }

  /** Whether any block was started: another attempt must not follow it. */
  get started(): boolean {
    return this.#started !== null || this.#queue.length > 0;
  }

  /**
   * Receives a delta and returns at once; emits in order. Deltas that arrive while many wait for their
   * handlers are joined.
   */
  readonly onDelta = (delta: StreamDelta): void => {
    const last = this.#queue.at(-1);
    if (last?.block_index === delta.block_index && this.#queue.length >= MAX_WAITING) {
      this.#queue[this.#queue.length - 1] = { ...last, delta: last.delta + delta.delta };
    } else this.#queue.push(delta);
    this.#draining ??= this.#drain();
  };

  /** Emits the queued deltas and those that arrive meanwhile. */
  async #drain(): Promise<void> {
    try {
      while (this.#queue.length > 0) {
        const queue = this.#queue;
        this.#queue = [];
        for (const delta of queue) await this.#emitPart(delta);
      }
    } catch (error) {
      this.#failure ??= { error }; // thrown by `drained`: this promise is not awaited
    } finally {
      this.#queue = [];
      this.#draining = null;
    }
  }

  async #emitPart({ block_index, block_type, name, delta }: StreamDelta): Promise<void> {
    this.#started ??= new Map();
    let block = this.#started.get(block_index);
    if (!block) {
      this.#started.set(block_index, block = { type: block_type, sequence: 0 });
      await this.#emitStart(block_index, block_type, name);
    }
    if (delta === "" || block.type === "tool_call") return;
    await this.#emitDelta(block_index, ++block.sequence, delta);
  }

  #emitStart(block_index: number, block_type: string, name: unknown): Promise<unknown> {
    const data: JsonObject = { request_id: this.request_id, block_index, block_type };
    if (typeof name === "string") data.name = name;
    return this.#session.hooks.emit("content_block:start", data);
  }

  #emitDelta(block_index: number, sequence: number, delta: string): Promise<unknown> {
    const data = { request_id: this.request_id, block_index, sequence, delta };
    return this.#session.hooks.emit("content_block:delta", data);
  }

  /** Emits blocks that were not streamed, and the end of every block. */
  async finish(content: readonly ContentBlock[]): Promise<void> {
    if (this.#draining || this.#failure) await this.drained();
    for (let block_index = 0; block_index < content.length; block_index++) {
      const block = content[block_index]!; // below the length
      if (!this.#started?.has(block_index)) {
        await this.#emitStart(block_index, block.type, block.name);
        const text = textOf(block);
        if (text !== "") await this.#emitDelta(block_index, 1, text);
      }
      const data = { request_id: this.request_id, block_index, total_blocks: content.length, block };
      await this.#session.hooks.emit("content_block:end", data);
    }
  }

  /** Resolves when the deltas that arrived are emitted. @throws the error of the log. */
  async drained(): Promise<void> {
    await this.#draining;
    if (this.#failure) throw this.#failure.error;
  }
}

/** Returns the text of a block whose text is emitted as a delta; "" for all others. */
function textOf({ type, text, thinking }: ContentBlock): string {
  const own = type === "text" ? text : type === "thinking" ? thinking : "";
  return typeof own === "string" ? own : "";
}
