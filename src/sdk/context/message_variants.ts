/** The forms in which a view may show a message, and what each costs: the knobs applied to shorten.ts. */
import type { Message } from "../mod.ts";
import { HEURISTIC_COUNTER, type TokenCounter } from "./token_counter.ts";
import { handleOf } from "./recall_tool.ts";
import { stubbed, truncated } from "./shorten.ts";

/** A message and its place in the history; below 0 when it is not in it. */
interface Placed {
  readonly index: number;
  readonly message: Message;
}

/** See the top of the file. */
export class MessageVariants {
  /** Counts tokens; replaced before the first message when they are counted exactly. */
  meter: TokenCounter = HEURISTIC_COUNTER;
  readonly #recall: boolean;

  /** With `recall`, markers name a handle for the tool `context_recall`. */
  constructor(recall: boolean) {
    this.#recall = recall;
  }

  /** Returns the tokens of a message. */
  count(message: Message): number {
    return this.meter.message(message);
  }

  /** Returns the handle that markers name, or null. */
  handle(index: number): string | null {
    return this.#recall && index >= 0 ? handleOf(index) : null;
  }

  /** Returns a tool result cut to its first `chars` characters; null when that would save nothing. */
  truncated({ message, index }: Placed, chars: number): Message | null {
    return truncated(message, chars, this.handle(index));
  }

  /** Returns the stub of a user message; null when that would save nothing. */
  stubbed({ message, index }: Placed): Message | null {
    return stubbed(message, this.handle(index));
  }
}
