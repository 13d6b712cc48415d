/** The waits of a replay, in real time: for an entry that may not come, and for progress at all. */
import type { Entry } from "../../kernel/host.ts";
import type { Clock } from "../../sdk/types.ts";
import type { VirtualClock } from "./virtual_clock.ts";

/** Milliseconds without progress after which the replay reports a difference. */
const NO_PROGRESS_TIMEOUT_MS = 2_000;
/**
 * Milliseconds to wait for an entry that the session may or may not emit, and for sleeps of uncertain end.
 */
const SETTLE_DELAY_MS = 20;

/** Callbacks of {@link ReplayTimers}; each receives the entry that was awaited. */
export interface ReplayTimeouts {
  /** Called when the session did not emit the entry in a short time. */
  onSettled(next: Entry): void;
  /** Called when no session made progress. */
  onNoProgress(next: Entry): void;
}

/** The timers of one replay. */
export class ReplayTimers {
  readonly #real: Clock;
  readonly #virtual: VirtualClock;
  readonly #timeouts: ReplayTimeouts;
  #settling: AbortController | null = null;
  #progress: AbortController | null = null;
  #sleep: AbortController | null = null;

  constructor(real: Clock, virtual: VirtualClock, timeouts: ReplayTimeouts) {
    this.#real = real;
    this.#virtual = virtual;
    this.#timeouts = timeouts;
  }

  /** Waits a short time for the session to emit an entry. */
  settle(next: Entry): void {
    this.#settling = this.#after(SETTLE_DELAY_MS, () => this.#timeouts.onSettled(next));
  }

  /** Stops the wait of {@link settle}: the session emitted an entry. */
  stopSettling(): void {
    this.#settling?.abort();
  }

  /** Starts the wait for progress again; ends a sleep whose recorded end is uncertain. */
  awaitProgress(next: Entry): void {
    this.#progress?.abort();
    this.#progress = this.#after(NO_PROGRESS_TIMEOUT_MS, () => this.#timeouts.onNoProgress(next));
    this.#awaitSleep();
  }

  #awaitSleep(): void {
    this.#sleep?.abort();
    if (this.#settling?.signal.aborted === false) return;
    this.#sleep = this.#after(SETTLE_DELAY_MS, () => {
      if (this.#virtual.endLateSleep()) this.#awaitSleep();
    });
  }

  /** Stops all timers. */
  stop(): void {
    this.#settling?.abort();
    this.#progress?.abort();
    this.#sleep?.abort();
  }

  #after(ms: number, then: () => void): AbortController {
    const timer = new AbortController();
    this.#real.after(ms, timer.signal).then(then, () => {}); // stopped
    return timer;
  }
}
