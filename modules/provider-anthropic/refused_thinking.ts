/**
 * Thinking that the API refuses to take back: newer models check that nothing before a block of thinking has
 * changed, such as by a compaction, another set of tools or another account.
 */
import { isObject } from "preamp/base";
import type { CallSettings, Conversation, NativePart } from "preamp/provider";
import { isThinking } from "./to_request.ts";

const REFUSAL = /invalid `?signature`? in `?thinking`? block|thinking`? blocks .{0,80}cannot be modified/i;

/** The blocks of thinking that the API refused in a session. */
export class RefusedThinking {
  /** Signatures, and the data of redacted blocks. */
  readonly #refused = new Set<unknown>();

  /**
   * Notes all thinking of a refused call: blocks after a refused one are refused, too. Returns false when the
   * error is another one, or the call has no thinking.
   */
  learn(error: unknown, { conversation }: CallSettings): boolean {
    if (!isObject(error) || error.status !== 400 || !REFUSAL.test(String(error.message))) return false;
    const thinking = conversation.turns.flatMap(({ parts }) => [...parts].filter(isThinking));
    for (const part of thinking) this.#refused.add(markOf(part));
    return thinking.length > 0;
  }

  /** Returns a call without refused thinking; the same call when it has none. */
  without(call: CallSettings): CallSettings {
    const { conversation } = call;
    const isRefused = (part: Conversation["turns"][number]["parts"][number]) =>
      isThinking(part) && this.#refused.has(markOf(part));
    if (!conversation.turns.some(({ parts }) => parts.some(isRefused))) return call;
    const turns = conversation.turns.map((turn) =>
      turn.role === "user" ? turn : { ...turn, parts: turn.parts.filter((part) => !isRefused(part)) }
    );
    return {
      ...call,
      conversation: { ...conversation, turns: turns.filter(({ parts }) => parts.length > 0) },
    };
  }
}

function markOf({ block: { signature, data } }: NativePart): unknown {
  return signature ?? data;
}
