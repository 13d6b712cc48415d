/** Limits of one caller: requests and runs per minute, sizes of its bodies, plans and pages. */
import type { DocumentLimits } from "../../plan/parse/document_limits.ts";
import type { SystemClock } from "../../process/system_clock.ts";
import type { Caller } from "../../runs/types.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { RequestContext } from "../context.ts";
import { ANONYMOUS } from "./require_key.ts";

/** Limits of one caller: see src/docs/operating.md#limits. */
export interface CallerBounds {
  /** 0: unlimited. */
  requests_per_minute: number;
  /** 0: unlimited. */
  runs_per_minute: number;
  max_body_bytes: number;
  /** Items on a page of a list; default 1,000. */
  max_page_limit?: number;
  /** Size limits of a plan; default `DOCUMENT_LIMITS`. */
  plan?: DocumentLimits;
}

/** Returns the limits of a caller. */
export type BoundsOf = (caller: Caller) => CallerBounds;

/** Applies the limits of callers to their requests. */
export class CallerLimits {
  readonly #boundsOf: BoundsOf | undefined;
  readonly #takeRequest: RateLimiter;
  readonly #takeRun: RateLimiter;

  /** @param boundsOf Default: callers have no limits of their own. */
  constructor(boundsOf: BoundsOf | undefined, clock: SystemClock) {
    this.#boundsOf = boundsOf;
    this.#takeRequest = createRateLimiter("requests", clock);
    this.#takeRun = createRateLimiter("runs", clock);
  }

  /**
   * Counts a request against the rate of the caller, or of the client's address when keys are not checked; one that starts a run also against its rate of runs, and sets the size limits
   * of the request. Throws `rate_limited`.
   */
  apply(context: RequestContext, caller: Caller, starts_run: boolean): void {
    const bounds = this.#boundsOf?.(caller);
    if (!bounds) return;
    const { body, max_page_limit, client } = context;
    const name = caller === ANONYMOUS && client.address !== null ? `address:${client.address}` : caller.name;
    this.#takeRequest(name, bounds.requests_per_minute);
    if (starts_run) this.#takeRun(name, bounds.runs_per_minute);
    context.body = {
      max_bytes: bounds.max_body_bytes,
      deadline_ms: body.deadline_ms,
      plan: bounds.plan ?? body.plan,
    };
    context.max_page_limit = bounds.max_page_limit ?? max_page_limit;
  }
}

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
 * Creates a limiter with one token bucket for each caller, refilled evenly, with a capacity of one minute.
 * `unit` names the tokens in the error; its `facts.retry_after_s` is the time to the next token.
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
