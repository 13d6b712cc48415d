/**
 * Texts that hooks inject into the conversation: sanitised, limited in size and number of tokens, and never
 * stored between a tool call and its result.
 */
import { admitInjections } from "../../sdk/hook_actions.ts";
import type { Emission, Injection, Message } from "../../sdk/types.ts";
import type { SessionContext } from "../session/session_context.ts";

/** Injections of one session. */
export class Injections {
  readonly #session: SessionContext;
  #tokens = 0;
  #deferred: Message[] = [];

  constructor(session: SessionContext) {
    this.#session = session;
  }

  /** Sets the token counter of the turn to zero. */
  resetTurn(): void {
    this.#tokens = 0;
  }

  /**
   * Returns the injections of an emission that take effect, with sanitised texts, and counts them.
   * @throws {PreampError} `denied` when one is longer than `injection_size_limit`, or over a budget with mode
   * `error`.
   */
  async admit(emission: Pick<Emission, "action" | "injections">): Promise<Injection[]> {
    const { hooks, plan } = this.#session;
    const { admitted, tokens, violations, refusal } = admitInjections(emission, this.#tokens, plan.session);
    this.#tokens = tokens;
    for (const violation of violations) await hooks.emit("policy:violation", violation);
    if (refusal) throw refusal;
    return admitted;
  }

  /** Defers a message until all tool results of the preceding assistant message are stored. */
  defer(message: Message): void {
    this.#deferred.push(message);
  }

  /** Whether any message is deferred. */
  get has_deferred(): boolean {
    return this.#deferred.length > 0;
  }

  /** Removes and returns the deferred messages. */
  takeDeferred(): Message[] {
    return this.#deferred.splice(0);
  }
}
