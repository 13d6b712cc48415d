/** Rate limiter: one token bucket per caller, refilled evenly, with a capacity of one minute. */
import { PreampError } from "../sdk/errors.ts";
import type { SystemClock } from "../process/system_clock.ts";

interface Bucket {
  tokens: number;
  filled_at: number;
}

/** Bounds memory when an embedder's `authenticate` returns arbitrary names; configured keys are far fewer. */
const MAX_CALLERS = 10_000;

/**
 * Takes one token from the caller's bucket; `perMinute` 0 means unlimited. Throws `rate_limited` when the
 * bucket is empty.
 */
export type RateLimiter = (caller: string, perMinute: number) => void;

/**
 * Creates a limiter; `unit` names the tokens in the error. `facts.retry_after_s` of the error is the time to
 * the next token.
 */
export function createRateLimiter(unit: string, clock: SystemClock): RateLimiter {
  const buckets = new Map<string, Bucket>();

  return function take(caller, perMinute) {
    if (perMinute <= 0) return;
    const perMs = perMinute / 60_000;
    const now = clock.monotonic();
    const bucket = buckets.get(caller) ?? { tokens: perMinute, filled_at: now };
    bucket.tokens = Math.min(perMinute, bucket.tokens + (now - bucket.filled_at) * perMs);
    bucket.filled_at = now;
    if (bucket.tokens < 1) {
      const retry_after_s = Math.ceil((1 - bucket.tokens) / perMs / 1000);
      throw new PreampError(
        "rate_limited",
        `Rate limit exceeded: ${perMinute} ${unit} per minute for this key; retry in ${retry_after_s} s`,
        { facts: { retry_after_s } },
      );
    }
    bucket.tokens--;
    if (!buckets.has(caller) && buckets.size >= MAX_CALLERS) buckets.clear();
    buckets.set(caller, bucket);
  };
}
