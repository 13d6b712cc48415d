/** Retries of provider calls: backoff, number of attempts, and which failures are retried. */
import type { Clock } from "./contracts.ts";
import { errorMessage, errorName, readField } from "./errors.ts";
import { fieldError, requireWhole } from "./checks.ts";

/** Settings of retries. Times are in seconds. */
export interface RetryConfig {
  /** Attempts after the first one; default 3. */
  max_retries: number;
  /** Seconds before the second attempt; default 1. */
  initial_delay: number;
  /** Maximum backoff in seconds; default 60. An error's `delay_multiplier` or `retry_after` may exceed it. */
  max_delay: number;
  /** Factor from one wait to the next; default 2. */
  backoff: number;
  /** Whether each wait is multiplied by a random factor in [0.5, 1.5); default true. */
  jitter: boolean;
  /** Whether a wait is at least as long as the backend's `retry_after`; default true. */
  honor_retry_after: boolean;
}

/** Data of `provider:retry`, without the provider's name. */
export interface RetryNotice {
  /** The attempt that failed, from 1. */
  attempt: number;
  /** Attempts after the first one. */
  max_retries: number;
  /** Seconds until the next attempt. */
  delay: number;
  /** Type of the failure, such as `RateLimitError`. */
  error_type: string;
  /** Message of the failure. */
  error_message: string;
}

/** Options of {@link withRetry}. */
export interface RetryOptions {
  /** Clock of the waits, such as `coordinator.clock`. */
  clock: Clock;
  /** Settings that differ from the defaults. */
  config?: Partial<RetryConfig>;
  /** Ends the wait and prevents further attempts. */
  signal?: AbortSignal;
  /** Returns numbers in [0, 1) for the jitter; default `Math.random`. */
  random?: () => number;
  /** Called before each wait, and awaited; for example to emit `provider:retry`. */
  onRetry?: (notice: RetryNotice) => unknown;
  /** Returns whether a failure is retried; default: its `retryable` is true. */
  isRetryable?: (error: unknown) => boolean;
}

/**
 * Returns a RetryConfig with every default filled in.
 *
 * @throws {TypeError} when a number is negative or not finite, or `backoff` is below 1.
 */
export function RetryConfig(fields: Partial<RetryConfig> = {}): RetryConfig {
  const config: RetryConfig = {
    max_retries: 3,
    initial_delay: 1,
    max_delay: 60,
    backoff: 2,
    jitter: true,
    honor_retry_after: true,
    ...fields,
  };
  requireWhole("RetryConfig", "max_retries", config.max_retries, 0);
  requireLeast(config, "initial_delay", 0);
  requireLeast(config, "max_delay", 0);
  requireLeast(config, "backoff", 1);
  return config;
}

function requireLeast(
  config: RetryConfig,
  field: "initial_delay" | "max_delay" | "backoff",
  minimum: number,
): void {
  if (Number.isFinite(config[field]) && config[field] >= minimum) return;
  throw fieldError("RetryConfig", field, `must be a number of at least ${minimum}`, config[field]);
}

/**
 * Returns the waits of a config in seconds: exponential and capped, without jitter and without hints of an
 * error.
 */
export function retryDelays(config: Partial<RetryConfig> = {}): number[] {
  const { max_retries, initial_delay, max_delay, backoff } = RetryConfig(config);
  return Array.from(
    { length: max_retries },
    (_, index) => Math.min(initial_delay * backoff ** index, max_delay),
  );
}

/**
 * Returns the seconds to wait after a failed attempt (from 1). Order: exponential backoff → cap → × the
 * error's `delay_multiplier` (may exceed the cap) → at least its `retry_after` → jitter.
 */
export function retryDelay(
  attempt: number,
  error: unknown,
  config: RetryConfig,
  random: () => number = Math.random,
): number {
  const [multiplier, retry_after] = ["delay_multiplier", "retry_after"].map((key) => readField(error, key));
  let delay = Math.min(config.initial_delay * config.backoff ** (attempt - 1), config.max_delay);
  if (isPositive(multiplier)) delay *= multiplier;
  if (config.honor_retry_after && isPositive(retry_after)) delay = Math.max(delay, retry_after);
  return config.jitter ? delay * (0.5 + random()) : delay;
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

/**
 * Calls `call` until it succeeds or a failure is not retryable, and resolves to its result. Rejects with the
 * last failure, or with the signal's reason when it aborts during a wait. `call` receives the attempt, from
 * 1.
 */
export async function withRetry<T>(
  call: (attempt: number) => Promise<T> | T,
  options: RetryOptions,
): Promise<T> {
  const config = RetryConfig(options.config);
  const isRetryable = options.isRetryable ?? ((error) => readField(error, "retryable") === true);
  for (let attempt = 1;; attempt++) {
    options.signal?.throwIfAborted();
    try {
      return await call(attempt);
    } catch (error) {
      if (attempt > config.max_retries || options.signal?.aborted || !isRetryable(error)) throw error;
      const delay = retryDelay(attempt, error, config, options.random);
      await options.onRetry?.({
        attempt,
        max_retries: config.max_retries,
        delay,
        error_type: errorName(error),
        error_message: errorMessage(error),
      });
      await options.clock.after(delay * 1000, options.signal);
    }
  }
}
