/**
 * Runs the steps that a loop skipped: emits missing gates and acts on their results, reports missing answers
 * and results, and adds missing tool results. Does nothing for a loop that skips no step. See
 * src/docs/architecture.md#guards.
 */
import { toPlain } from "../../sdk/json.ts";
import type { SessionContext } from "../session/session_context.ts";
import type { Mounts } from "../mounting/mounts.ts";
import type { LoopSteps, Turn } from "../turn.ts";

/** Completes the loop's steps of a session. */
export class LoopContract implements LoopSteps {
  readonly #session: SessionContext;
  readonly #mounts: Mounts;

  constructor(session: SessionContext, mounts: Mounts) {
    this.#session = session;
    this.#mounts = mounts;
  }

  /** Reports the answers that the loop did not; adds results for the calls without one. */
  async settleAnswer(turn: Turn): Promise<void> {
    await this.emitResponses();
    const { unreported_parts } = turn;
    const is_stopped = this.#session.cancellation.is_immediate || this.#session.step.is_ended;
    while (!is_stopped && unreported_parts.length > 0) { // each emission removes one
      await this.#session.hooks.emit("provider:error", unreported_parts[0]!); // not empty
    }
    await this.#mounts.turn_context?.closeCalls();
  }

  /** Emits `provider:response` for each answer that the loop did not report. */
  emitResponses(): Promise<unknown> | void {
    const { turn } = this.#session;
    if (turn !== null && turn.unreported.length > 0) return this.#emitResponses(turn);
  }

  async #emitResponses({ unreported }: Turn): Promise<void> {
    while (unreported.length > 0) { // each emission removes its answer
      const { usage, response } = unreported[0]!; // not empty
      await this.#session.hooks.emit("provider:response", { usage, response: toPlain(response) });
    }
  }

  /**
   * Runs before each model call: emits `provider:request` and adds missing tool results if the
   * loop skipped them. Returns nothing for a loop that skipped no step.
   */
  beforeCall(turn: Turn, provider: string): Promise<void> | void {
    const is_ready = turn.unreported.length === 0 && turn.unreported_parts.length === 0 &&
      this.#mounts.turn_context?.has_open_calls !== true &&
      turn.request_gate?.processed === true && !turn.requests_by_kernel;
    if (!is_ready) return this.#completeSteps(turn, provider);
  }

  async #completeSteps(turn: Turn, provider: string): Promise<void> {
    await this.settleAnswer(turn);
    if (turn.request_gate === null || turn.requests_by_kernel) {
      turn.requests_by_kernel = true;
      const emission = await this.#session.hooks.emit("provider:request", {
        provider,
        iteration: turn.iteration + 1,
      });
      await this.#session.steps.settle(emission, "provider:request");
    }
    const gate = turn.request_gate;
    if (gate && !gate.processed) await this.#session.steps.settle(gate.emission, gate.event);
  }
}
