/**
 * Texts that hooks inject into the conversation: sanitised, limited in size and number of tokens, and never
 * stored between a tool call and its result.
 */
import { PreampError } from "../../sdk/errors.ts";
import { sanitizeText } from "../../sdk/tools.ts";
import type { Injection, Message } from "../../sdk/types.ts";
import type { SessionContext } from "../session/session_context.ts";

/**
 * Characters of an injection, and tokens of a turn, above which a session without its own limits emits a
 * warning event.
 */
const WARN_ABOVE = { size: 10_240, budget: 10_000 };

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
   * Counts an injection and returns it with a sanitised text; null when it is over a budget with mode `drop`.
   * @throws {PreampError} `denied` when it is longer than `injection_size_limit`, or over a budget with mode
   * `error`.
   */
  async admit(injection: Injection): Promise<Injection | null> {
    const { session } = this.#session.plan;
    const text = sanitizeText(injection.text);
    const size = [...text].length;
    const size_limit = session.injection_size_limit;
    if (size_limit === undefined ? size > WARN_ABOVE.size : size_limit !== null && size > size_limit) {
      await this.#violation("injection_size", injection, size_limit ?? WARN_ABOVE.size, size);
      if (typeof size_limit === "number") {
        throw new PreampError("denied", `Context injection exceeds ${size_limit} characters`, {
          facts: { hook_name: injection.hook_name },
        });
      }
    }
    const tokens = Math.floor(size / 4);
    const budget = session.injection_budget_per_turn;
    const total = this.#tokens + tokens;
    if (budget === undefined ? total > WARN_ABOVE.budget : budget !== null && total > budget) {
      await this.#violation("injection_budget", injection, budget ?? WARN_ABOVE.budget, total);
      const mode = typeof budget === "number" ? session.injection_budget_mode ?? "warn" : "warn";
      if (mode === "drop") return null;
      if (mode === "error") {
        throw new PreampError("denied", `Context injection exceeds ${budget} tokens of this turn`);
      }
    }
    this.#tokens = total;
    return { ...injection, text };
  }

  async #violation(kind: string, injection: Injection, limit: number, actual: number): Promise<void> {
    await this.#session.hooks.emit("policy:violation", {
      kind,
      hook_name: injection.hook_name,
      limit,
      actual,
    });
  }

  /** Returns the message that an injection is stored as. */
  toMessage(injection: Injection, event: string): Message {
    return {
      role: injection.role,
      content: injection.text,
      metadata: {
        source: "hook",
        hook_name: injection.hook_name,
        event,
        timestamp: new Date(this.#session.host.clock.now()).toISOString(),
      },
    };
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
