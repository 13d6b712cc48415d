/** Steering: texts from outside that join a running turn at its next request (behaviour.md §7.4, row 6). */
import { PreampError } from "../errors.ts";

/** Texts that may wait at once. */
const MAX_WAITING = 100;

/** A first-in, first-out queue of user texts. */
export class SteeringQueue {
  #texts: string[] = [];

  /**
   * Adds a text.
   * @throws {PreampError} `request_invalid` when it is blank, `overloaded` when 100 wait already.
   */
  push(text: string): void {
    if (text.trim() === "") {
      throw new PreampError("request_invalid", 'Cannot steer: text must not be blank: received ""');
    }
    if (this.#texts.length >= MAX_WAITING) {
      throw new PreampError(
        "overloaded",
        `Cannot steer: at most ${MAX_WAITING} texts may wait: received one more`,
      );
    }
    this.#texts.push(text);
  }

  /** How many texts wait. */
  get size(): number {
    return this.#texts.length;
  }

  /** Takes the oldest text, or undefined. */
  shift(): string | undefined {
    return this.#texts.shift();
  }

  /** Forgets what waits: at the start of a turn, and when it is cancelled. */
  clear(): void {
    this.#texts = [];
  }
}
