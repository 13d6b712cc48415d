import type { Coordinator } from "../contracts.ts";
import type { HookRegistry } from "../hooks.ts";

/**
 * Keeps a minimum delay between the model calls of one session (`min_delay_between_calls_ms`): from the end
 * of one call to the start of the next, also across turns.
 */
export class CallThrottle {
  readonly #min_ms: number;
  #last_ms: number | null = null;

  /** @param min_ms Minimum delay in milliseconds; 0 = none. */
  constructor(min_ms: number) {
    this.#min_ms = min_ms;
  }

  /** Records the end of a model call. */
  markCallEnd(coordinator: Coordinator | undefined): void {
    if (this.#min_ms > 0) this.#last_ms = coordinator?.clock.monotonic() ?? null;
  }

  /**
   * Waits until the next call may start; returns nothing when it may start now, or without a clock. A
   * cancellation ends the wait early without an error.
   */
  waitForSlot(
    hooks: HookRegistry,
    coordinator: Coordinator | undefined,
    iteration: number,
  ): Promise<void> | void {
    if (this.#last_ms === null || !coordinator) return;
    const elapsed_ms = Math.max(0, Math.round(coordinator.clock.monotonic() - this.#last_ms));
    if (elapsed_ms < this.#min_ms) return this.#wait(hooks, coordinator, { elapsed_ms, iteration });
  }

  async #wait(
    hooks: HookRegistry,
    { clock, cancellation }: Coordinator,
    { elapsed_ms, iteration }: { elapsed_ms: number; iteration: number },
  ): Promise<void> {
    const next_ms = clock.monotonic() - elapsed_ms + this.#min_ms;
    await hooks.emit("orchestrator:rate_limit_delay", {
      delay_ms: this.#min_ms - elapsed_ms,
      configured_ms: this.#min_ms,
      elapsed_ms,
      iteration,
    });
    try {
      await clock.after(Math.max(0, next_ms - clock.monotonic()), cancellation.any_signal); // emitting the event took time too
    } catch (error) {
      if (!cancellation.is_cancelled) throw error;
    }
  }
}
