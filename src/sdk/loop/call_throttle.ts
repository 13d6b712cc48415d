import type { Coordinator } from "../contracts.ts";
import type { HookRegistry } from "../hooks.ts";

/**
 * Keeps a minimum delay between the model calls of one session (`min_delay_between_calls_ms`): from the end
 * of one call to the start of the next, also across turns.
 */
export class CallThrottle {
  readonly #min_ms: number;
  #last_ms: number | null = null;

  /** @param min_ms Minimum delay in milliseconds. */
  constructor(min_ms: number) {
    this.#min_ms = min_ms;
  }

  /** Records the end of a model call. */
  markCallEnd(coordinator: Coordinator | undefined): void {
    this.#last_ms = coordinator?.clock.monotonic() ?? null;
  }

  /**
   * Waits until the next call may start; not at all without a clock. A cancellation ends the wait early
   * without an error.
   */
  async waitForSlot(
    hooks: HookRegistry,
    coordinator: Coordinator | undefined,
    iteration: number,
  ): Promise<void> {
    if (this.#last_ms === null || !coordinator) return;
    const { clock, cancellation } = coordinator;
    const now_ms = clock.monotonic();
    const elapsed_ms = Math.max(0, Math.round(now_ms - this.#last_ms));
    const delay_ms = this.#min_ms - elapsed_ms;
    if (delay_ms <= 0 || cancellation.is_cancelled) return;
    const configured_ms = this.#min_ms;
    await hooks.emit("orchestrator:rate_limit_delay", { delay_ms, configured_ms, elapsed_ms, iteration });
    const left_ms = Math.max(0, now_ms + delay_ms - clock.monotonic()); // emitting the event took time too
    await clock.after(left_ms, cancellation.any_signal).catch((error) => {
      if (!cancellation.is_cancelled) throw error;
    });
  }
}
