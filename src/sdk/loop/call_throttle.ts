/** Keeping a distance between model calls: `min_delay_between_calls_ms` (behaviour.md §7.4, row 7). */
import type { Coordinator } from "../contracts.ts";
import type { HookRegistry } from "../hooks.ts";

/** What waiting needs. */
export interface PaceParts {
  /** Where `orchestrator:rate_limit_delay` is emitted. */
  hooks: HookRegistry;
  /** Whose clock and cancellation count; without one nobody waits. */
  coordinator: Coordinator | undefined;
}

/** The distance of one session's model calls: from the end of one to the start of the next, also across turns. */
export class CallThrottle {
  readonly #min_ms: number;
  #last_ms: number | null = null;

  /** @param min_ms Milliseconds; 0 = none. */
  constructor(min_ms: number) {
    this.#min_ms = min_ms;
  }

  /** Notes that a model call ended. */
  note(coordinator: Coordinator | undefined): void {
    this.#last_ms = coordinator?.clock.monotonic() ?? null;
  }

  /** Waits until the next call may start; undefined: now. Any cancellation ends the wait early; it is no failure here. */
  wait(parts: PaceParts, iteration: number): Promise<void> | undefined {
    const { coordinator } = parts;
    if (this.#min_ms === 0 || this.#last_ms === null || !coordinator) return undefined;
    const elapsed_ms = Math.max(0, Math.round(coordinator.clock.monotonic() - this.#last_ms));
    return elapsed_ms < this.#min_ms
      ? this.#wait(parts.hooks, coordinator, elapsed_ms, iteration)
      : undefined;
  }

  async #wait(
    hooks: HookRegistry,
    { clock, cancellation }: Coordinator,
    elapsed_ms: number,
    iteration: number,
  ): Promise<void> {
    const next_ms = clock.monotonic() - elapsed_ms + this.#min_ms;
    await hooks.emit("orchestrator:rate_limit_delay", {
      delay_ms: this.#min_ms - elapsed_ms,
      configured_ms: this.#min_ms,
      elapsed_ms,
      iteration,
    });
    try {
      await clock.after(Math.max(0, next_ms - clock.monotonic()), cancellation.any_signal); // telling it took its time too
    } catch (error) {
      if (!cancellation.is_cancelled) throw error;
    }
  }
}
