/** Repeats the attempts of a call by the rule of all providers. */
import type { Clock } from "../contracts.ts";
import { LLMError } from "../llm_errors.ts";
import { isBrokenStream, isPassing } from "../loop/provider_errors.ts";
import { RetryConfig, retryDelay, type RetryNotice, withRetry } from "../retry.ts";
import type { Attempt } from "./attempt.ts";

/** What retries depend on. */
export interface RetryDeps {
  /** Time of the session. */
  readonly clock: Clock;
  /** Attempts after the first one. */
  readonly max_retries: number;
  /** Ends the waits. */
  readonly signal: AbortSignal | undefined;
  /** Returns the milliseconds left in the run; a longer wait is not started. */
  leftMs(): number;
  /** Returns a new attempt. */
  start(): Attempt;
  /** Called before each wait, and awaited. */
  onRetry(notice: RetryNotice, error: LLMError): unknown;
}

/**
 * Resolves to the result of the first attempt that succeeds, else rejects with the last failure. A failure is
 * repeated when it may pass, no delta was emitted, and the run has time for the wait. A response that broke
 * off is repeated once. A wait is at least as long as the server asked for.
 *
 * @param run Runs an attempt; rejects with an LLMError.
 */
export function tryUntilAnswered<T>(run: (attempt: Attempt) => Promise<T>, deps: RetryDeps): Promise<T> {
  const { clock, max_retries, signal, leftMs, start, onRetry } = deps;
  const config = RetryConfig({ max_retries });
  let attempt: Attempt;
  let failed: LLMError;
  let attempts = 0;
  let broken_off = 0;
  let fraction = 0;
  const tryOnce = async (count: number) => {
    attempts = count;
    attempt = start();
    try {
      return await run(attempt);
    } catch (error) {
      throw failed = error as LLMError; // `run` rejects with nothing else
    }
  };
  const random = () => fraction;
  return withRetry(tryOnce, {
    clock,
    config,
    ...(signal ? { signal } : {}),
    random,
    isRetryable: (error) => {
      if (!(error instanceof LLMError) || attempt.emitted || !isPassing(error)) return false;
      if (hasBrokenOff(error, attempt) && broken_off++ > 0) return false;
      // jitter is a factor of 0.5 to 1.5; from 1 on the wait is as long as the server asked for
      fraction = error.retry_after === null ? Math.random() : 0.5 + Math.random() / 2;
      return retryDelay(attempts, error, config, random) * 1000 <= leftMs();
    },
    onRetry: (notice) => onRetry(notice, failed),
  });
}

function hasBrokenOff(error: LLMError, { received }: Attempt): boolean {
  return isBrokenStream(error) || received && error.type === "LLMTimeoutError";
}
