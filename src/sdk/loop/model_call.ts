/**
 * One model call as the log tells it: the answer block by block, tried again while nothing of it was told, and its
 * `provider:response` or `provider:error` (trace.md, entries 13-16; behaviour.md §4.8; threats.md, the retry rule).
 */
import type { Coordinator } from "../contracts.ts";
import { errorCode, errorName } from "../errors.ts";
import { type HookRegistry, notify } from "../hooks.ts";
import { isObject } from "../json.ts";
import type { ChatRequest, ChatResponse } from "../messages.ts";
import { RetryConfig, retryDelay, withRetry } from "../retry.ts";
import { responseData, withCallBlocks } from "./assistant_message.ts";
import { ContentBlockEmitter } from "./content_block_events.ts";
import { isBrokenStream, isPassing, providerFailure, retriesItself } from "./provider_errors.ts";
import type { CallThrottle } from "./call_throttle.ts";
import type { ChosenProvider } from "./provider_selection.ts";

/** What model calls are made with. */
export interface ModelCallParts {
  /** Where events are emitted. */
  hooks: HookRegistry;
  /** Whose clock, cancellation and ceilings count; without one nothing is tried again. */
  coordinator: Coordinator | undefined;
  /** Attempts after the first, for a provider that does not try again by itself. */
  max_retries: number;
  /** Told when a call ended. */
  pace: CallThrottle;
  /** Makes a fresh id. */
  newId(prefix: string): string;
}

/** A call that failed for good. */
export interface FailedCall {
  /** What the last attempt failed with. */
  error: unknown;
  /** Whether another provider may be asked: the failure may pass, and nothing of the answer was told. */
  may_fall_back: boolean;
}

/** Makes the model calls of one turn. */
export class ModelCalls {
  readonly #parts: ModelCallParts;
  readonly #started_ms: number;
  #aborted: unknown = undefined;

  /** Starts to measure the turn's time. */
  constructor(parts: ModelCallParts) {
    this.#parts = parts;
    this.#started_ms = parts.coordinator?.clock.monotonic() ?? 0;
  }

  /** What a call failed with that its provider says was aborted: such a turn is cancelled (http.md, Problems). */
  get aborted(): unknown {
    return this.#aborted;
  }

  /** Resolves to the answer, or to how the call failed; rejects for what is no failure of the provider's. */
  async call(
    { name, provider }: ChosenProvider,
    request: ChatRequest,
    iteration: number,
  ): Promise<{ response: ChatResponse } | FailedCall> {
    const { hooks, coordinator, pace } = this.#parts;
    const attempt = new Attempt();
    let response: ChatResponse;
    try {
      response = await this.#tryUntilAnswered({ name, provider }, request, attempt);
    } catch (error) {
      if (errorName(error) === "AbortError") this.#aborted = error;
      const failure = error === this.#aborted ? null : providerFailure(name, error);
      if (failure === null || coordinator?.cancellation.is_cancelled) throw error;
      await hooks.emit("provider:error", failure);
      return { error, may_fall_back: !attempt.told && isPassing(error) };
    } finally {
      pace.note(coordinator);
    }
    const calls = response.tool_calls ?? provider.parseToolCalls?.(response) ?? [];
    const told = { ...response, content: withCallBlocks(response.content, calls) };
    if (calls.length > 0) told.tool_calls = calls;
    await attempt.teller?.finish(told);
    await notify(hooks, "provider:response", {
      provider: name,
      iteration,
      usage: response.usage ?? null,
      tool_calls: calls.length > 0,
      response: responseData(told),
    });
    return { response: told };
  }

  async #tryUntilAnswered(
    chosen: ChosenProvider,
    request: ChatRequest,
    attempt: Attempt,
  ): Promise<ChatResponse> {
    const { coordinator, max_retries } = this.#parts;
    try {
      return await this.#tryOnce(chosen, request, attempt);
    } catch (error) {
      if (!coordinator || max_retries === 0 || retriesItself(chosen.provider)) throw error;
      return await this.#tryAgain({ error }, { chosen, request, attempt, coordinator });
    }
  }

  /** Goes on after a first attempt that failed: few calls need what that needs. */
  #tryAgain(
    failed: { error: unknown },
    { chosen, request, attempt, coordinator }: FailedAttempt,
  ): Promise<ChatResponse> {
    const { hooks, max_retries } = this.#parts;
    const config = RetryConfig({ max_retries });
    const next = (count: number) => {
      if (count === 1) throw failed.error;
      return this.#tryOnce(chosen, request, attempt);
    };
    return withRetry(next, {
      clock: coordinator.clock,
      config,
      signal: coordinator.cancellation.any_signal,
      // drawn from the request's id, which is random: the same request waits as long when it is replayed
      random: () => fractionOf(attempt.request_id),
      isRetryable: (error) => {
        if (attempt.told || !isPassing(error)) return false;
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
    const { coordinator, hooks, newId } = this.#parts;
    attempt.count++;
    attempt.request_id = newId("req");
    const teller = attempt.teller = new ContentBlockEmitter(hooks, attempt.request_id);
    try {
      const signal = coordinator?.cancellation.signal;
      const options = { onDelta: teller.onDelta };
      return await provider.complete(request, signal ? { ...options, signal } : options);
    } catch (error) {
      await teller.abort(error);
      attempt.told = teller.started;
      attempt.error = error;
      throw error;
    }
  }

  /** Milliseconds of the run that are left at most; what waits for a person is counted as used. */
  get #left_ms(): number {
    const { coordinator } = this.#parts;
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

/** Where the attempts of one call stand. */
class Attempt {
  count = 0;
  request_id = "";
  teller: ContentBlockEmitter | null = null;
  /** Whether something of the failed answer was told: then nothing may follow it (never spliced). */
  told = false;
  broken_streams = 0;
  error: unknown;
}

/** What a replay needs to fail in the same way. */
function factsOf(error: unknown): Record<string, unknown> {
  if (!isObject(error)) return {};
  const { status_code, retry_after, delay_multiplier } = error;
  return {
    ...(typeof status_code === "number" ? { status_code } : {}),
    ...(typeof retry_after === "number" ? { retry_after } : {}),
    ...(typeof delay_multiplier === "number" && delay_multiplier !== 1 ? { delay_multiplier } : {}),
  };
}

/** Returns a number in [0, 1) that depends on a text alone (FNV-1a). */
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
