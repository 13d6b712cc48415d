/**
 * The deadline of one tool call. Its clock is paused while a sub-agent of the call runs, because the
 * sub-agent has limits of its own and may wait for a person.
 */
import { later, settlesSoon, withAbort, withGrace } from "../timeouts.ts";
import type { HostClock } from "../host.ts";

/** Options of {@link CallDeadline}. */
export interface CallDeadlineOptions {
  clock: HostClock;
  /** Milliseconds; 0 = no deadline. */
  timeout_ms: number;
  /**
   * Milliseconds that an aborted call with a running sub-agent has to end; any other call is abandoned at
   * once.
   */
  grace_ms: number;
  /** Aborts the call on immediate cancellation and when the run reaches `max_duration_s`. */
  step: AbortSignal;
  /** Creates the abort reason when the deadline passes. */
  onTimeout(): Error;
}

/** The deadline of one call. */
export class CallDeadline {
  readonly #options: CallDeadlineOptions;
  readonly #controller = new AbortController();
  readonly #onStep = (): void => this.#controller.abort(this.#options.step.reason);
  #stop_timer: (() => void) | null = null;
  #left_ms: number;
  #started_at = 0;
  #started = false;
  #pauses = 0;

  constructor(options: CallDeadlineOptions) {
    this.#options = options;
    this.#left_ms = options.timeout_ms;
    const { step } = options;
    if (step.aborted) this.#onStep();
    else step.addEventListener("abort", this.#onStep, { once: true });
  }

  /** Aborts when the call must end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Settles as the call does, or rejects when the call must end first. A call that settles within a few
   * microtasks needs no timer.
   */
  async wait<T>(promise: PromiseLike<T>): Promise<T> {
    const pending = Promise.resolve(promise); // a module may return any thenable
    if (!this.#options.step.aborted && await settlesSoon(pending)) return await pending;
    this.#started = true;
    this.#startClock();
    try {
      return await withAbort(pending, this.signal);
    } catch (error) {
      if (!this.signal.aborted || this.#pauses === 0) throw error;
      return await withGrace(pending, this.signal, this.#options.grace_ms, this.#options.clock);
    }
  }

  /** Stops the clock until the returned function is called. Pauses may overlap. */
  pause(): () => void {
    this.#pauses++;
    this.#stopClock();
    let paused = true;
    return () => {
      if (!paused) return;
      paused = false;
      this.#pauses--;
      this.#startClock();
    };
  }

  /** Removes the timer and the listener after the call has ended. */
  stop(): void {
    this.#stopClock();
    this.#started = false;
    this.#options.step.removeEventListener("abort", this.#onStep);
  }

  #startClock(): void {
    const { clock, timeout_ms, onTimeout } = this.#options;
    if (!this.#started || timeout_ms <= 0 || this.#pauses > 0 || this.#stop_timer !== null) return;
    this.#started_at = clock.monotonic();
    this.#stop_timer = later(clock, this.#left_ms, () => this.#controller.abort(onTimeout()));
  }

  #stopClock(): void {
    if (this.#stop_timer === null) return;
    this.#stop_timer();
    this.#stop_timer = null;
    this.#left_ms = Math.max(0, this.#left_ms - (this.#options.clock.monotonic() - this.#started_at));
  }
}
