/**
 * Makes one model call: emits the blocks of the answer, retries while no delta was emitted, and emits
 * `provider:response` or `provider:error`.
 */
import type { Coordinator } from "../contracts.ts";
import type { ContextOverflow } from "../context_overflow.ts";
import { errorMessage, errorName } from "../errors.ts";
import { GrowingText } from "../growing_text.ts";
import type { HookRegistry } from "../hooks.ts";
import { type JsonObject, toFrozenOwn } from "../json.ts";
import { overflowOf } from "../llm_errors.ts";
import type { ContentBlock } from "../content_blocks.ts";
import type { ChatRequest, ChatResponse, StreamDelta } from "../messages.ts";
import { RetryConfig, retryDelay, withRetry } from "../retry.ts";
import { responseData } from "./assistant_message.ts";
import {
  factsOf,
  isBrokenStream,
  isPassing,
  overflowError,
  providerFailure,
  retriesItself,
} from "./provider_errors.ts";
import type { CallThrottle } from "./call_throttle.ts";
import type { ChosenProvider } from "./provider_selection.ts";

/** Attempts of a call after the first one, unless the loop's configuration states another number. */
export const DEFAULT_MAX_RETRIES = 2;

/** Options of {@link callModel}. */
export interface CallModelOptions {
  /** Where the events of the call are emitted: the hooks that `execute` received. */
  hooks: HookRegistry;
  /** The module's coordinator; provides ids, clock, cancellation and limits. */
  coordinator: Coordinator;
  /** Number of the request in the turn, from 1. */
  iteration: number;
  /** Attempts after the first one, for a provider that does not retry itself. Default: 2. */
  max_retries?: number;
  /**
   * `coordinator.clock.monotonic()` at the start of the turn: no retry waits beyond `max_duration_s` after
   * it. Default: now.
   */
  started_ms?: number;
}

/**
 * Makes one model call of a loop and resolves to the answer, after its `content_block:*` events and
 * `provider:response`. A passing failure is repeated while no delta was emitted, each time with
 * `provider:retry`. Emit and process `provider:request` before it.
 *
 * @throws the last failure, after `provider:error`; without this event, an error of the run, such as
 * `cancelled` or `limit_reached`.
 */
export async function callModel(
  chosen: ChosenProvider,
  request: ChatRequest,
  options: CallModelOptions,
): Promise<ChatResponse> {
  const { hooks, coordinator, iteration, max_retries = DEFAULT_MAX_RETRIES, started_ms } = options;
  const newId = (prefix: string) => coordinator.newId(prefix);
  const deps = { hooks, coordinator, max_retries, throttle: null, newId };
  const calls = new ModelCalls(deps, started_ms);
  const answer = await calls.call(chosen, request, iteration, true); // the caller has no smaller view
  if (answer instanceof FailedCall) throw answer.error;
  return answer;
}

/** Dependencies of model calls. */
export interface ModelCallDeps {
  hooks: HookRegistry;
  /** Provides clock, cancellation and limits; without it there are no retries. */
  coordinator: Coordinator | undefined;
  /** Attempts after the first one, for a provider that does not retry itself. */
  max_retries: number;
  throttle: CallThrottle | null;
  newId(prefix: string): string;
}

/** A call whose last attempt failed. */
export class FailedCall {
  /**
   * @param may_fall_back Whether another provider may be called: the failure is retryable and no delta was
   * emitted.
   * @param overflow Present when the provider refused the request as too long for the first time.
   */
  constructor(
    readonly error: unknown,
    readonly may_fall_back: boolean,
    readonly overflow?: ContextOverflow,
  ) {}
}

/** Makes the model calls of one turn. */
export class ModelCalls {
  readonly #deps: ModelCallDeps;
  readonly #started_ms: number;
  /** The AbortError that a provider threw; the turn then counts as cancelled. */
  aborted: unknown = undefined;
  /** Text of the last call's answer, as far as it arrived before the call failed; "" for an answered call. */
  broken_off = "";

  /** @param started_ms Start of the turn. Default: now. */
  constructor(deps: ModelCallDeps, started_ms = deps.coordinator?.clock.monotonic() ?? 0) {
    this.#deps = deps;
    this.#started_ms = started_ms;
  }

  /**
   * Resolves to the answer or the failure. A failure with `overflow` is reported as `provider:retry`: the
   * caller makes the call once more with a smaller view (`is_shortened`). Rejects for errors that are not
   * failures of the provider.
   */
  async call(
    chosen: ChosenProvider,
    request: ChatRequest,
    iteration: number,
    is_shortened = false,
  ): Promise<ChatResponse | FailedCall> {
    const attempts = new Attempts(chosen, request);
    let response: ChatResponse;
    try {
      response = await this.#send(attempts);
    } catch (error) {
      const recovered = await this.#recover(error, attempts, is_shortened);
      if (recovered instanceof FailedCall) return recovered;
      response = recovered;
    } finally {
      this.#deps.throttle?.markCallEnd(this.#deps.coordinator);
    }
    await attempts.emitter!.finish(response); // created for the attempt that was answered
    await this.#deps.hooks.emit("provider:response", {
      provider: chosen.name,
      iteration,
      usage: response.usage ?? null,
      tool_calls: response.tool_calls !== undefined,
      response: toFrozenOwn(responseData(response)),
    });
    return response;
  }

  /** Makes one attempt. */
  #send(attempts: Attempts): Promise<ChatResponse> {
    const { coordinator, hooks, newId } = this.#deps;
    attempts.count++;
    attempts.request_id = newId("req");
    const { onDelta } = attempts.emitter = new ContentBlockEmitter(hooks, attempts.request_id);
    const signal = coordinator?.cancellation.signal;
    return attempts.chosen.provider.complete(attempts.request, signal ? { onDelta, signal } : { onDelta });
  }

  /** Resolves to the answer of a further attempt, or to the failure. */
  async #recover(
    failed: unknown,
    attempts: Attempts,
    is_shortened: boolean,
  ): Promise<ChatResponse | FailedCall> {
    const { hooks, coordinator } = this.#deps;
    const { chosen: { name }, request } = attempts;
    try {
      return await this.#tryAgain(failed, attempts);
    } catch (error) {
      this.broken_off = attempts.emitter!.text; // of the last attempt
      if (errorName(error) === "AbortError") this.aborted = error;
      const failure = error === this.aborted ? null : providerFailure(name, error);
      if (failure === null || coordinator?.cancellation.is_cancelled) throw error;
      const overflow = attempts.emitted ? null : overflowOf(error);
      if (overflow !== null && !is_shortened) {
        await hooks.emit("provider:retry", overflowNotice(error, attempts));
        return new FailedCall(error, false, overflow);
      }
      await hooks.emit("provider:error", failure);
      if (overflow !== null) return new FailedCall(overflowError(name, error, request), false);
      return new FailedCall(error, !attempts.emitted && isPassing(error));
    }
  }

  /** Retries after a failed first attempt. Rejects with the error of the last attempt. */
  async #tryAgain(failed: unknown, attempts: Attempts): Promise<ChatResponse> {
    const { hooks, coordinator, max_retries } = this.#deps;
    const { name, provider } = attempts.chosen;
    await attempts.end(failed);
    if (!coordinator || max_retries === 0 || retriesItself(provider)) throw failed;
    const config = RetryConfig({ max_retries });
    const next = async (count: number) => {
      if (count === 1) throw failed;
      try {
        return await this.#send(attempts);
      } catch (error) {
        await attempts.end(error);
        throw error;
      }
    };
    return await withRetry(next, {
      clock: coordinator.clock,
      config,
      signal: coordinator.cancellation.any_signal,
      // derived from the request's random id, so that a replay waits as long
      random: () => fractionOf(attempts.request_id),
      isRetryable: (error) => {
        if (attempts.emitted || !isPassing(error)) return false;
        if (isBrokenStream(error) && attempts.broken_streams++ > 0) return false;
        const delay = retryDelay(attempts.count, error, config, () => fractionOf(attempts.request_id));
        return delay * 1000 <= this.#left_ms;
      },
      onRetry: (notice) =>
        hooks.emit("provider:retry", {
          provider: name,
          ...notice,
          request_id: attempts.request_id,
          ...factsOf(attempts.error),
        }),
    });
  }

  /** Upper bound of the milliseconds left in the run; waits for approvals count as used. */
  get #left_ms(): number {
    const { coordinator } = this.#deps;
    if (!coordinator) return 0;
    return coordinator.limits.max_duration_s * 1000 - (coordinator.clock.monotonic() - this.#started_ms);
  }
}

/** The attempts of one call. */
class Attempts {
  count = 0;
  request_id = "";
  /** Emits the answer of the last attempt. */
  emitter: ContentBlockEmitter | null = null;
  broken_streams = 0;
  error: unknown;

  constructor(readonly chosen: ChosenProvider, readonly request: ChatRequest) {}

  /** Whether a part of a failed answer was emitted: another attempt must not follow it. */
  get emitted(): boolean {
    return this.emitter?.started === true;
  }

  /** Ends the last attempt, which failed. */
  async end(error: unknown): Promise<void> {
    this.error = error;
    await this.emitter?.abort(error);
  }
}

/** Returns the data of `provider:retry` for a request that is sent once more with a smaller view. */
function overflowNotice(error: unknown, { chosen, count, request_id }: Attempts): JsonObject {
  return {
    provider: chosen.name,
    attempt: count,
    max_retries: count,
    delay: 0,
    error_type: "ContextLengthError", // an error that is no LLMError has another name
    error_message: errorMessage(error),
    request_id,
    ...factsOf(error),
  };
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
 * Emits the blocks of one answer as `content_block:start`, `:delta` and `:end`: in order, as deltas arrive,
 * or all at once for a provider that does not stream. The joined deltas are always the complete text. Create
 * one per request.
 */
export class ContentBlockEmitter {
  readonly #hooks: HookRegistry;
  readonly #request_id: string;
  /** Streamed blocks by index; null before the first. */
  #started: Map<number, StartedBlock> | null = null;
  #queue: StreamDelta[] = [];
  #draining: Promise<void> | null = null;
  #failure: { error: unknown } | null = null;
  readonly #text = new GrowingText();

  /** Creates the emitter of one request. */
  constructor(hooks: HookRegistry, request_id: string) {
    this.#hooks = hooks;
    this.#request_id = request_id;
  }

  /** Text of the emitted deltas, without thinking. */
  get text(): string {
    return this.#text.value;
  }

  /** Whether any block was started. */
  get started(): boolean {
    return this.#started !== null || this.#queue.length > 0;
  }

  /**
   * Receives a delta and returns at once; emits in order. Deltas that arrive while many wait for their
   * handlers are joined. Pass it to `complete` as `onDelta`.
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
        for (const delta of queue) await this.#emit(delta);
      }
    } catch (error) {
      this.#failure ??= { error }; // thrown by `finish` or `abort`: this promise is not awaited
    } finally {
      this.#queue = [];
      this.#draining = null;
    }
  }

  async #emit({ block_index, block_type, name, delta }: StreamDelta): Promise<void> {
    this.#started ??= new Map();
    let block = this.#started.get(block_index);
    if (!block) {
      this.#started.set(block_index, block = { type: block_type, sequence: 0 });
      await this.#emitStart(block_index, block_type, name);
    }
    if (delta === "" || block.type === "tool_call") return;
    if (block.type === "text") this.#text.append(delta);
    await this.#emitDelta(block_index, ++block.sequence, delta);
  }

  #emitStart(block_index: number, block_type: string, name: unknown): Promise<unknown> {
    const data: JsonObject = { request_id: this.#request_id, block_index, block_type };
    if (typeof name === "string") data.name = name;
    return this.#hooks.emit("content_block:start", data);
  }

  #emitDelta(block_index: number, sequence: number, delta: string): Promise<unknown> {
    const data = { request_id: this.#request_id, block_index, sequence, delta };
    return this.#hooks.emit("content_block:delta", data);
  }

  /**
   * Emits blocks that were not streamed, and the end of every block. Call it with the answer, before
   * `provider:response`.
   */
  async finish({ content }: ChatResponse): Promise<void> {
    if (this.#draining || this.#failure) await this.#drained();
    for (let block_index = 0; block_index < content.length; block_index++) {
      const block = content[block_index]!; // below the length
      if (!this.#started?.has(block_index)) {
        await this.#emitStart(block_index, block.type, block.name);
        const text = textOf(block);
        if (text !== "") await this.#emitDelta(block_index, 1, text);
      }
      await this.#hooks.emit("content_block:end", {
        request_id: this.#request_id,
        block_index,
        total_blocks: content.length,
        block,
      });
    }
  }

  async #drained(): Promise<void> {
    await this.#draining;
    if (this.#failure) throw this.#failure.error;
  }

  /** Emits `llm:stream_aborted`, unless nothing was emitted before. */
  async abort(error: unknown): Promise<void> {
    await this.#drained();
    if (!this.started) return;
    await this.#hooks.emit("llm:stream_aborted", {
      request_id: this.#request_id,
      error: { type: errorName(error), msg: errorMessage(error) },
    });
  }
}

/** Returns the text of a block whose text is emitted as a delta; "" for all others. */
function textOf({ type, text, thinking }: ContentBlock): string {
  const own = type === "text" ? text : type === "thinking" ? thinking : "";
  return typeof own === "string" ? own : "";
}
