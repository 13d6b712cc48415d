/** Queues steering texts: user texts that join a running turn at its next request. */
import { PreampError } from "../errors.ts";

/** Maximum number of queued texts. */
const MAX_WAITING = 100;

/** A first-in, first-out queue of user texts. */
export class SteeringQueue {
  #texts: string[] = [];
  #closed = false;

  /**
   * Adds a text.
   *
   * @throws {PreampError} `request_invalid` when it is blank, `overloaded` when 100 texts are queued,
   * `run_ended` when no model call follows that could read it.
   */
  push(text: string): void {
    if (text.trim() === "") {
      throw new PreampError("request_invalid", 'Cannot steer: text must not be blank: received ""');
    }
    if (this.#closed) throw new PreampError("run_ended", "Cannot steer the run: it is ending or has ended");
    if (this.#texts.length >= MAX_WAITING) {
      throw new PreampError(
        "overloaded",
        `Cannot steer: ${MAX_WAITING} texts are already queued; try again later`,
      );
    }
    this.#texts.push(text);
  }

  /** Number of queued texts. */
  get size(): number {
    return this.#texts.length;
  }

  /** Removes and returns the oldest text, or undefined. */
  shift(): string | undefined {
    return this.#texts.shift();
  }

  /** Accepts texts: a turn starts. Those that arrived before the first turn belong to it. */
  open(): void {
    this.#closed = false;
  }

  /** Removes all queued texts and refuses further ones: no model call of the turn follows. */
  close(): void {
    this.#texts = [];
    this.#closed = true;
  }
}
