/** The short forms of a message and their token counts. */
import type { Message } from "../base.ts";
import { HEURISTIC_COUNTER, type TokenCounter } from "./token_counter.ts";
import { handleOf } from "./recall_tool.ts";
import { stubbed, truncated } from "./shorten.ts";

/** A message and its index in the history; negative when it is not in the history. */
interface Placed {
  readonly index: number;
  readonly message: Message;
}

/** Shortens and counts the messages of one context. */
export class MessageVariants {
  /** Counts tokens; replaced before the first message for exact counting. */
  meter: TokenCounter = HEURISTIC_COUNTER;
  readonly #recall: boolean;

  /** Creates the variants; with `recall`, markers name a handle for the tool `context_recall`. */
  constructor(recall: boolean) {
    this.#recall = recall;
  }

  /** Returns the tokens of a message. */
  count(message: Message): number {
    return this.meter.message(message);
  }

  /** Returns the handle in markers, or null. */
  handle(index: number): string | null {
    return this.#recall && index >= 0 ? handleOf(index) : null;
  }

  /** Returns a tool result truncated to its first `chars` characters; null when that saves nothing. */
  truncated({ message, index }: Placed, chars: number): Message | null {
    return truncated(message, chars, this.handle(index));
  }

  /** Returns the stub of a user message; null when that saves nothing. */
  stubbed({ message, index }: Placed): Message | null {
    return stubbed(message, this.handle(index));
  }
}
