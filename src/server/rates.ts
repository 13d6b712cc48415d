/** How fast a caller may ask (trust.md, `rates`): a token bucket for each, refilled evenly, a minute's worth at most. */
import { PreampError } from "../sdk/errors.ts";
import type { ServerClock } from "./clock.ts";

interface Bucket {
  tokens: number;
  filled_at: number;
}

/** Callers are configured keys, so this is never met; it bounds memory whatever authenticates. */
const MAX_CALLERS = 10_000;

/**
 * Returns a function that takes one token of a caller. `perMinute` 0 allows everything.
 *
 * The function throws `rate_limited`, with the seconds until the next token, when there is none.
 */
export function createRate(perMinute: number, what: string, clock: ServerClock): (caller: string) => void {
  if (perMinute <= 0) return () => {};
  const buckets = new Map<string, Bucket>();
  const perMs = perMinute / 60_000;

  return function take(caller) {
    const now = clock.monotonic();
    const bucket = buckets.get(caller) ?? { tokens: perMinute, filled_at: now };
    bucket.tokens = Math.min(perMinute, bucket.tokens + (now - bucket.filled_at) * perMs);
    bucket.filled_at = now;
    if (bucket.tokens < 1) {
      const retry_after_s = Math.ceil((1 - bucket.tokens) / perMs / 1000);
      throw new PreampError(
        "rate_limited",
        `Cannot answer the request: a key may send ${perMinute} ${what} a minute: received more`,
        { facts: { retry_after_s } },
      );
    }
    bucket.tokens--;
    if (!buckets.has(caller) && buckets.size >= MAX_CALLERS) buckets.clear();
    buckets.set(caller, bucket);
  };
}
