/** Cancels the turn of a session, and emits that it was requested. */
import { errorMessage } from "../../sdk/errors.ts";
import type { SessionContext } from "./session_context.ts";

/** The cancellation of one session. */
export class SessionCancellation {
  readonly #session: SessionContext;

  constructor(session: SessionContext) {
    this.#session = session;
  }

  /** Cancels the turn; emits `cancel:requested` at the first request only. */
  async cancel(mode: "graceful" | "immediate"): Promise<void> {
    const { cancellation } = this.#session;
    const first = !cancellation.is_cancelled;
    if (mode === "immediate") cancellation.requestImmediate();
    else cancellation.requestGraceful();
    if (first) await this.emitRequested();
  }

  /**
   * Emits `cancel:requested`, at most once, and runs the cancellation callbacks. Also called when the parent
   * was cancelled.
   */
  async emitRequested(): Promise<void> {
    const { hooks, cancellation, host } = this.#session;
    await hooks.emit("cancel:requested", { state: cancellation.state });
    for (const error of await cancellation.triggerCallbacks()) {
      host.warn("cancel_callback_failed", errorMessage(error));
    }
  }
}
