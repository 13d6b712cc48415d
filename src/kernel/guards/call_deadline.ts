/**
 * How long one tool call may take. The clock stands still while a sub-agent of the call runs: that one has ceilings of its own,
 * and a person may be asked in it. Owns no clock.
 */
import { later, settlesSoon, withAbort, withGrace } from "../timeouts.ts";
import type { HostClock } from "../host.ts";

/** What a deadline is made with. */
export interface CallDeadlineOptions {
  clock: HostClock;
  /** 0 = none. */
  timeout_ms: number;
  /** Milliseconds that a call with a sub-agent is given to end once it was aborted; any other is left behind at once. */
  grace_ms: number;
  /** Aborts the call from outside: immediate cancellation, the end of the run's time. */
  step: AbortSignal;
  /** Makes the reason of the abort when the time is over. */
  onTimeout(): Error;
}

/** The deadline of one call. */
export class CallDeadline {
  readonly #options: CallDeadlineOptions;
  #controller: AbortController | null = null;
  readonly #onStep = (): void => this.#controller?.abort(this.#options.step.reason);
  #stop_timer: (() => void) | null = null;
  #left_ms: number;
  #started_at = 0;
  #started = false;
  #pauses = 0;

  constructor(options: CallDeadlineOptions) {
    this.#options = options;
    this.#left_ms = options.timeout_ms;
  }

  /** Aborts when the call must end; made when somebody asks, because most calls answer before anybody does. */
  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  get #aborter(): AbortController {
    if (this.#controller) return this.#controller;
    const controller = this.#controller = new AbortController();
    const { step } = this.#options;
    if (step.aborted) this.#onStep();
    else step.addEventListener("abort", this.#onStep, { once: true });
    return controller;
  }

  /**
   * Resolves or rejects as the call does, or rejects when it must end first. A call that settles within a few turns of the
   * microtask queue costs no timer.
   */
  async wait<T>(given: PromiseLike<T>): Promise<T> {
    const pending = Promise.resolve(given); // a thenable of a module's need not be a promise
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

  /** Stops the clock until the returned function is called; several may hold it at once. */
  pause(): () => void {
    this.#pauses++;
    this.#stopClock();
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#pauses--;
      this.#startClock();
    };
  }

  /** Lets go of timer and listener: the call has ended. */
  stop(): void {
    this.#stopClock();
    this.#started = false;
    if (this.#controller) this.#options.step.removeEventListener("abort", this.#onStep);
  }

  #startClock(): void {
    const { clock, timeout_ms, onTimeout } = this.#options;
    if (!this.#started || timeout_ms <= 0 || this.#pauses > 0 || this.#stop_timer !== null) return;
    this.#started_at = clock.monotonic();
    this.#stop_timer = later(clock, this.#left_ms, () => this.#aborter.abort(onTimeout()));
  }

  #stopClock(): void {
    if (this.#stop_timer === null) return;
    this.#stop_timer();
    this.#stop_timer = null;
    this.#left_ms = Math.max(0, this.#left_ms - (this.#options.clock.monotonic() - this.#started_at));
  }
}
