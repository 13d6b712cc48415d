/**
 * Makes one model call: emits the blocks of the answer, retries while no delta was emitted, and emits
 * `provider:response` or `provider:error`.
 */
import type { Coordinator } from "../contracts.ts";
import type { ContextOverflow } from "../context_overflow.ts";
import { errorCode, errorMessage, errorName } from "../errors.ts";
import type { HookRegistry } from "../hooks.ts";
import type { JsonObject } from "../json.ts";
import { overflowOf } from "../llm_errors.ts";
import type { ChatRequest, ChatResponse } from "../messages.ts";
import { RetryConfig, retryDelay, withRetry } from "../retry.ts";
import { responseData, withCallBlocks } from "./assistant_message.ts";
import { ContentBlockEmitter } from "./content_block_events.ts";
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

/** Dependencies of model calls. */
export interface ModelCallDeps {
  /** Where events are emitted. */
  hooks: HookRegistry;
  /** Provides clock, cancellation and limits; without it there are no retries. */
  coordinator: Coordinator | undefined;
  /** Attempts after the first one, for a provider that does not retry itself. */
  max_retries: number;
  /** Records the end of each call. */
  throttle: CallThrottle;
  /** Returns a new id. */
  newId(prefix: string): string;
}

/** A call whose last attempt failed. */
export interface FailedCall {
  /** Error of the last attempt. */
  error: unknown;
  /** Whether another provider may be called: the failure is retryable and no delta was emitted. */
  may_fall_back: boolean;
  /** Present when the provider refused the request as too long for the first time. */
  overflow?: ContextOverflow;
}

/** Makes the model calls of one turn. */
export class ModelCalls {
  readonly #deps: ModelCallDeps;
  readonly #started_ms: number;
  #aborted: unknown = undefined;

  /** Creates the calls of a turn and starts measuring its time. */
  constructor(deps: ModelCallDeps) {
    this.#deps = deps;
    this.#started_ms = deps.coordinator?.clock.monotonic() ?? 0;
  }

  /** The AbortError that a provider threw; the turn then counts as cancelled. */
  get aborted(): unknown {
    return this.#aborted;
  }

  /**
   * Resolves to the answer or the failure. A failure with `overflow` is reported as `provider:retry`: the
   * caller makes the call once more with a smaller view (`is_shortened`). Rejects for errors that are not
   * failures of the provider.
   */
  async call(
    { name, provider }: ChosenProvider,
    request: ChatRequest,
    iteration: number,
    is_shortened = false,
  ): Promise<{ response: ChatResponse } | FailedCall> {
    const { hooks, coordinator, throttle } = this.#deps;
    const attempt = new Attempt();
    let response: ChatResponse;
    try {
      response = await this.#tryUntilAnswered({ name, provider }, request, attempt);
    } catch (error) {
      if (errorName(error) === "AbortError") this.#aborted = error;
      const failure = error === this.#aborted ? null : providerFailure(name, error);
      if (failure === null || coordinator?.cancellation.is_cancelled) throw error;
      const overflow = attempt.emitted ? null : overflowOf(error);
      if (overflow !== null && !is_shortened) {
        await hooks.emit("provider:retry", overflowNotice(name, error, attempt));
        return { error, may_fall_back: false, overflow };
      }
      await hooks.emit("provider:error", failure);
      if (overflow !== null) return { error: overflowError(name, error, request), may_fall_back: false };
      return { error, may_fall_back: !attempt.emitted && isPassing(error) };
    } finally {
      throttle.markCallEnd(coordinator);
    }
    const calls = response.tool_calls ?? provider.parseToolCalls?.(response) ?? [];
    const answer = { ...response, content: withCallBlocks(response.content, calls) };
    if (calls.length > 0) answer.tool_calls = calls;
    await attempt.emitter?.finish(answer);
    await hooks.emit("provider:response", {
      provider: name,
      iteration,
      usage: response.usage ?? null,
      tool_calls: calls.length > 0,
      response: responseData(answer),
    });
    return { response: answer };
  }

  async #tryUntilAnswered(
    chosen: ChosenProvider,
    request: ChatRequest,
    attempt: Attempt,
  ): Promise<ChatResponse> {
    const { coordinator, max_retries } = this.#deps;
    try {
      return await this.#tryOnce(chosen, request, attempt);
    } catch (error) {
      if (!coordinator || max_retries === 0 || retriesItself(chosen.provider)) throw error;
      return await this.#tryAgain({ error }, { chosen, request, attempt, coordinator });
    }
  }

  /** Retries after a failed first attempt; a separate method because few calls need it. */
  #tryAgain(
    failed: { error: unknown },
    { chosen, request, attempt, coordinator }: FailedAttempt,
  ): Promise<ChatResponse> {
    const { hooks, max_retries } = this.#deps;
    const config = RetryConfig({ max_retries });
    const next = (count: number) => {
      if (count === 1) throw failed.error;
      return this.#tryOnce(chosen, request, attempt);
    };
    return withRetry(next, {
      clock: coordinator.clock,
      config,
      signal: coordinator.cancellation.any_signal,
      // derived from the request's random id, so that a replay waits as long
      random: () => fractionOf(attempt.request_id),
      isRetryable: (error) => {
        if (attempt.emitted || !isPassing(error)) return false;
        if (isBrokenStream(error) && attempt.broken_streams++ > 0) return false;
        const delay = retryDelay(attempt.count, error, config, () => fractionOf(attempt.request_id));
        return delay * 1000 <= this.#left_ms;
      },
      onRetry: (notice) =>
        hooks.emit("provider:retry", {
          provider: chosen.name,
          ...notice,
          request_id: attempt.request_id,
          ...factsOf(attempt.error),
        }),
    });
  }

  async #tryOnce(
    { provider }: ChosenProvider,
    request: ChatRequest,
    attempt: Attempt,
  ): Promise<ChatResponse> {
    const { coordinator, hooks, newId } = this.#deps;
    attempt.count++;
    attempt.request_id = newId("req");
    const emitter = attempt.emitter = new ContentBlockEmitter(hooks, attempt.request_id);
    try {
      const signal = coordinator?.cancellation.signal;
      const options = { onDelta: emitter.onDelta };
      return await provider.complete(request, signal ? { ...options, signal } : options);
    } catch (error) {
      await emitter.abort(error);
      attempt.emitted = emitter.started;
      attempt.error = error;
      throw error;
    }
  }

  /** Upper bound of the milliseconds left in the run; waits for approvals count as used. */
  get #left_ms(): number {
    const { coordinator } = this.#deps;
    if (!coordinator) return 0;
    return coordinator.limits.max_duration_s * 1000 - (coordinator.clock.monotonic() - this.#started_ms);
  }
}

interface FailedAttempt {
  chosen: ChosenProvider;
  request: ChatRequest;
  attempt: Attempt;
  coordinator: Coordinator;
}

/** State of the attempts of one call. */
class Attempt {
  count = 0;
  request_id = "";
  emitter: ContentBlockEmitter | null = null;
  /** Whether a part of the failed answer was emitted: another attempt must not follow it. */
  emitted = false;
  broken_streams = 0;
  error: unknown;
}

/** Returns the data of `provider:retry` for a request that is sent once more with a smaller view. */
function overflowNotice(provider: string, error: unknown, { count, request_id }: Attempt): JsonObject {
  return {
    provider,
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

/** Returns whether an error of a turn means that it was cancelled. */
export function isCancellation(error: unknown, cancelled: boolean): boolean {
  return errorCode(error) === "cancelled" || (cancelled && errorName(error) === "AbortError");
}
