/** Queues steering texts: user texts that join a running turn at its next request. */
import { PreampError } from "../errors.ts";

/** Maximum number of queued texts. */
const MAX_WAITING = 100;

/** A first-in, first-out queue of user texts. */
export class SteeringQueue {
  #texts: string[] = [];

  /**
   * Adds a text.
   *
   * @throws {PreampError} `request_invalid` when it is blank, `overloaded` when 100 texts are queued.
   */
  push(text: string): void {
    if (text.trim() === "") {
      throw new PreampError("request_invalid", 'Cannot steer: text must not be blank: received ""');
    }
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

  /** Removes all queued texts. */
  clear(): void {
    this.#texts = [];
  }
}
