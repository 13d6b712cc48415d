/** Trying a provider call again: when, how often, and after how long (behaviour.md §4.8). */
import type { Clock } from "./contracts.ts";
import { errorMessage, errorName } from "./errors.ts";
import { fieldError, requireWhole } from "./checks.ts";

/** How often and how long to wait. Times are in seconds, as in the requirements. */
export interface RetryConfig {
  /** Attempts after the first; default 3. */
  max_retries: number;
  /** Seconds before the second attempt; default 1. */
  initial_delay: number;
  /** Seconds that backing off never exceeds; default 60. A `delay_multiplier` or `retry_after` of the error may. */
  max_delay: number;
  /** Factor from one wait to the next; default 2. */
  backoff: number;
  /** Whether each wait is multiplied by a random factor in [0.5, 1.5); default true. */
  jitter: boolean;
  /** Whether a wait is at least what the backend asked for; default true. */
  honor_retry_after: boolean;
}

/** What `provider:retry` says, beside the provider's name. */
export interface RetryNotice {
  /** The attempt that failed, from 1. */
  attempt: number;
  /** Attempts after the first. */
  max_retries: number;
  /** Seconds until the next attempt. */
  delay: number;
  /** Type of the failure, such as `RateLimitError`. */
  error_type: string;
  /** Its message. */
  error_message: string;
}

/** Options of {@link withRetry}. */
export interface RetryOptions {
  /** Time to wait in, such as `coordinator.clock`. */
  clock: Clock;
  /** What differs from the defaults. */
  config?: Partial<RetryConfig>;
  /** Ends the waiting, and the trying. */
  signal?: AbortSignal;
  /** Numbers in [0, 1) for the jitter; default `Math.random`. */
  random?: () => number;
  /** Told before each wait, and awaited; emit `provider:retry` here. */
  onRetry?: (notice: RetryNotice) => unknown;
  /** Whether a failure may pass; default: its `retryable` is true. */
  isRetryable?: (error: unknown) => boolean;
}

/**
 * Returns a RetryConfig with every default filled in; the requirements' constructor.
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

/** Returns the waits of a config in seconds, without jitter and without an error's wishes: exponential, capped. */
export function retryDelays(config: Partial<RetryConfig> = {}): number[] {
  const { max_retries, initial_delay, max_delay, backoff } = RetryConfig(config);
  return Array.from(
    { length: max_retries },
    (_, index) => Math.min(initial_delay * backoff ** index, max_delay),
  );
}

/**
 * Returns the seconds to wait after a failed attempt (from 1). Order: exponential → cap → × the error's
 * `delay_multiplier` (which may exceed the cap) → raised to its `retry_after` → jitter.
 */
export function retryDelay(
  attempt: number,
  error: unknown,
  config: RetryConfig,
  random: () => number = Math.random,
): number {
  const wishes = (typeof error === "object" && error !== null ? error : {}) as {
    delay_multiplier?: unknown;
    retry_after?: unknown;
  };
  let delay = Math.min(config.initial_delay * config.backoff ** (attempt - 1), config.max_delay);
  if (isPositive(wishes.delay_multiplier)) delay *= wishes.delay_multiplier;
  if (config.honor_retry_after && isPositive(wishes.retry_after)) delay = Math.max(delay, wishes.retry_after);
  return config.jitter ? delay * (0.5 + random()) : delay;
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

/**
 * Resolves to what `call` resolves to, trying again after failures that may pass. Rejects with the last failure, or with
 * the signal's reason when that aborts during a wait. `call` gets the attempt, from 1.
 */
export async function withRetry<T>(
  call: (attempt: number) => Promise<T> | T,
  options: RetryOptions,
): Promise<T> {
  const config = RetryConfig(options.config);
  const isRetryable = options.isRetryable ?? saysRetryable;
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

function saysRetryable(error: unknown): boolean {
  return typeof error === "object" && error !== null &&
    (error as { retryable?: unknown }).retryable === true;
}
