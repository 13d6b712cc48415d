/** Limits the calls with one key in this process: how many at once, and how soon after each other. */
import { untilAborted } from "../abortable.ts";
import type { Clock } from "../contracts.ts";
import type { ProviderSettings } from "./settings.ts";

/** What a waiting call reports. */
export interface LimiterEvents {
  /** Called when a call has to wait for others to end. */
  onQueued(counts: { active_requests: number; waiting_requests: number }): unknown;
  /** Called when a call waits for its time. */
  onDelay(seconds: number): unknown;
}

interface Waiting {
  readonly max_concurrent: number;
  start(): void;
}

/** Limiters by the key of their provider; those that are in use, or were used last. */
const limiters = new Map<string, CallLimiter>();
const MAX_IDLE_LIMITERS = 256;

/** Returns the limiter that all sessions of this process share for a provider and key. */
export function sharedLimiter(key: string): CallLimiter {
  let limiter = limiters.get(key);
  if (limiter) return limiter;
  if (limiters.size >= MAX_IDLE_LIMITERS) {
    for (const [other, { idle }] of limiters) if (idle) limiters.delete(other);
  }
  limiters.set(key, limiter = new CallLimiter());
  return limiter;
}

/** Admits calls in the order of their arrival. */
class CallLimiter {
  #active = 0;
  #waiting: Waiting[] = [];
  /** Wall clock time before which no call may start. */
  #next_ms = 0;

  get idle(): boolean {
    return this.#active === 0 && this.#waiting.length === 0;
  }

  /**
   * Resolves when the call may start, to a function that must be called once, at its end. Rejects with the
   * signal's reason when it aborts first.
   */
  async enter(
    limits: Pick<ProviderSettings, "max_concurrent" | "min_delay_ms">,
    clock: Clock,
    signal: AbortSignal,
    events: LimiterEvents,
  ): Promise<() => void> {
    const { max_concurrent, min_delay_ms } = limits;
    signal.throwIfAborted();
    if (this.#waiting.length > 0 || max_concurrent > 0 && this.#active >= max_concurrent) {
      await this.#wait(max_concurrent, signal, events);
    } else this.#active++;
    const leave = () => {
      this.#active--;
      this.#startNext();
    };
    try {
      if (min_delay_ms > 0) await this.#waitForTime(min_delay_ms, clock, signal, events);
    } catch (error) {
      leave();
      throw error;
    }
    return leave;
  }

  async #wait(max_concurrent: number, signal: AbortSignal, events: LimiterEvents): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting: Waiting = { max_concurrent, start: resolve };
    this.#waiting.push(waiting);
    try {
      await Promise.all([
        untilAborted(signal, promise),
        events.onQueued({ active_requests: this.#active, waiting_requests: this.#waiting.length }),
      ]);
    } catch (error) {
      if (this.#waiting.includes(waiting)) this.#waiting = this.#waiting.filter((item) => item !== waiting);
      else this.#active--; // it was started meanwhile
      this.#startNext();
      resolve(); // `untilAborted` then stops listening to the signal
      throw error;
    }
  }

  #startNext(): void {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      if (next.max_concurrent > 0 && this.#active >= next.max_concurrent) return;
      this.#waiting.shift();
      this.#active++;
      next.start();
    }
  }

  async #waitForTime(
    min_delay_ms: number,
    clock: Clock,
    signal: AbortSignal,
    events: LimiterEvents,
  ): Promise<void> {
    const now = clock.now();
    const start = Math.max(now, Math.min(this.#next_ms, now + MAX_DELAY_MS));
    this.#next_ms = start + min_delay_ms;
    if (start <= now) return;
    await events.onDelay((start - now) / 1000);
    await clock.after(start - now, signal);
  }
}

/** Bound of one wait, for a wall clock that was set back. */
const MAX_DELAY_MS = 3_600_000;
