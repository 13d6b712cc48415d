/** Texts that hooks put into the conversation: cleaned, measured, counted, and stored where they break no pair (behaviour.md §5.7, §7.6). */
import { PreampError } from "../../sdk/errors.ts";
import { sanitizeText } from "../../sdk/tools.ts";
import type { Injection, Message } from "../../sdk/types.ts";
import type { SessionContext } from "../session/session_context.ts";

/** Numbers above which a plan that sets no limit is told so (C16). */
const DOCUMENTED = { size: 10_240, budget: 10_000 };

/** Injections of one session. */
export class Injections {
  readonly #session: SessionContext;
  #tokens = 0;
  #deferred: Message[] = [];

  constructor(session: SessionContext) {
    this.#session = session;
  }

  /** Sets the counter of the turn to zero (INJ-03). */
  resetTurn(): void {
    this.#tokens = 0;
  }

  /**
   * Returns the injection as it may be used, counted; null when the budget says to drop it.
   * @throws {PreampError} `denied` when it is longer than `injection_size_limit`, or over a budget whose mode is `error`.
   */
  async admit(injection: Injection): Promise<Injection | null> {
    const { session } = this.#session.plan;
    const text = sanitizeText(injection.text);
    const size = [...text].length;
    const size_limit = session.injection_size_limit;
    if (size_limit === undefined ? size > DOCUMENTED.size : size_limit !== null && size > size_limit) {
      await this.#violation("injection_size", injection, size_limit ?? DOCUMENTED.size, size);
      if (typeof size_limit === "number") {
        throw new PreampError("denied", `Context injection exceeds ${size_limit} characters`, {
          facts: { hook_name: injection.hook_name },
        });
      }
    }
    const tokens = Math.floor(size / 4);
    const budget = session.injection_budget_per_turn;
    const total = this.#tokens + tokens;
    if (budget === undefined ? total > DOCUMENTED.budget : budget !== null && total > budget) {
      await this.#violation("injection_budget", injection, budget ?? DOCUMENTED.budget, total);
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

  /** Returns the message an injection is stored as (INJ-05). */
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

  /** Keeps a message until the tool results of the assistant message before it are all there (W-19). */
  defer(message: Message): void {
    this.#deferred.push(message);
  }

  /** Whether messages are held. */
  get has_deferred(): boolean {
    return this.#deferred.length > 0;
  }

  /** Returns the messages that were held, and forgets them. */
  takeDeferred(): Message[] {
    return this.#deferred.splice(0);
  }
}
