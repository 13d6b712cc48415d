/** How fast a caller may ask (trust.md, `rates`): a token bucket for each, refilled evenly, a minute's worth at most. */
import { PreampError } from "../sdk/errors.ts";
import type { ServerClock } from "./clock.ts";

interface Bucket {
  tokens: number;
  filled_at: number;
}

/** Callers are configured keys, so this is never met; it bounds memory whatever authenticates. */
const MAX_CALLERS = 10_000;

/** Takes one token of a caller who may have `perMinute` of them, 0 = any number; throws `rate_limited` when there is none. */
export type Rate = (caller: string, perMinute: number) => void;

/** Returns a rate with a bucket for each caller; `what` names its tokens in the error, whose facts say when the next comes. */
export function createRate(what: string, clock: ServerClock): Rate {
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
        `Cannot answer the request: a key may send ${perMinute} ${what} a minute: received more`,
        { facts: { retry_after_s } },
      );
    }
    bucket.tokens--;
    if (!buckets.has(caller) && buckets.size >= MAX_CALLERS) buckets.clear();
    buckets.set(caller, bucket);
  };
}
