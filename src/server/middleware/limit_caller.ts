/** Limits of one caller: requests and runs per minute, sizes of its bodies, plans and pages. */
import type { DocumentLimits } from "../../plan/parse/document_limits.ts";
import type { SystemClock } from "../../process/system_clock.ts";
import type { Caller } from "../../runs/types.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { Middleware, RequestContext } from "../context.ts";
import { ANONYMOUS } from "./require_key.ts";

/** Limits of one caller: see src/docs/operating.md#limits. */
export interface CallerBounds {
  /** 0: unlimited. */
  requests_per_minute: number;
  /** 0: unlimited. */
  runs_per_minute: number;
  max_body_bytes: number;
  /** Open event streams of the server, and of the caller. Default: unlimited. */
  max_streams?: number;
  max_streams_per_key?: number;
  /** Items on a page of a list; default 1,000. */
  max_page_limit?: number;
  /** Size limits of a plan; default `DOCUMENT_LIMITS`. */
  plan?: DocumentLimits;
}

/** Returns the limits of a caller. */
export type BoundsOf = (caller: Caller) => CallerBounds;

/**
 * Counts a request against the rate of its caller and sets the caller's size limits. Throws `rate_limited`.
 */
export function limitRequests(boundsOf: BoundsOf, clock: SystemClock): Middleware {
  const take = createRateLimiter("requests", clock);
  return ({ env }, next) => {
    const caller = env.caller ?? ANONYMOUS;
    const bounds = boundsOf(caller);
    const { requests_per_minute, max_body_bytes, max_page_limit, plan } = bounds;
    env.streams = bounds;
    take(bucketName(caller, env), requests_per_minute);
    env.body = { max_bytes: max_body_bytes, deadline_ms: env.body.deadline_ms, plan: plan ?? env.body.plan };
    env.max_page_limit = max_page_limit ?? env.max_page_limit;
    return next();
  };
}

/** Counts a request that starts a run against the rate of runs of its caller. Throws `rate_limited`. */
export function limitRuns(boundsOf: BoundsOf, clock: SystemClock): Middleware {
  const take = createRateLimiter("runs", clock);
  return ({ env }, next) => {
    const caller = env.caller ?? ANONYMOUS;
    take(bucketName(caller, env), boundsOf(caller).runs_per_minute);
    return next();
  };
}

/** Returns the name that a request is counted under: the client's address when keys are not checked. */
function bucketName(caller: Caller, { client }: RequestContext): string {
  return caller === ANONYMOUS && client.address !== null ? `address:${client.address}` : caller.name;
}

interface Bucket {
  tokens: number;
  filled_at: number;
}

/** Bounds memory when an embedder's `authenticate` returns arbitrary names; configured keys are far fewer. */
const MAX_CALLERS = 10_000;

/**
 * Creates a limiter with one token bucket for each caller, refilled evenly, with a capacity of one minute.
 * The limiter takes one token; `perMinute` 0 means unlimited. It throws `rate_limited` when the bucket is
 * empty: `unit` names the tokens in the error, whose `facts.retry_after_s` is the time to the next token.
 */
export function createRateLimiter(
  unit: string,
  clock: SystemClock,
): (caller: string, perMinute: number) => void {
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
