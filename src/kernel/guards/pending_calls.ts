/**
 * Tool calls of the last assistant message that have no result yet. Orders the results, so that each call has
 * one result and the results follow the message in call order, whatever the order in which a loop stores
 * them.
 */
import { isObject } from "../../sdk/json.ts";
import type { Message } from "../../sdk/types.ts";

/** Pending tool calls of one assistant message. */
export class PendingCalls {
  /** Id → tool name, in call order. */
  #waiting = new Map<string, string>();
  #answered = new Set<string>();
  /** Results that arrived before the result of an earlier call. */
  readonly #early = new Map<string, Message>();

  /** Starts over with the calls of an assistant message. */
  expect(message: Message): void {
    this.#waiting = callsOf(message);
    this.#answered = new Set();
    this.#early.clear();
  }

  /** Whether any call has no stored result. */
  get any(): boolean {
    return this.#waiting.size > 0;
  }

  /** Returns whether this call is pending. */
  has(id: string): boolean {
    return this.#waiting.has(id);
  }

  /** Returns whether this call has a result. */
  isAnswered(id: string): boolean {
    return this.#answered.has(id);
  }

  /** Adds the result of a pending call; returns the results that can be stored now, in call order. */
  addResult(id: string, result: Message): Message[] {
    this.#answered.add(id);
    this.#early.set(id, result);
    const ready: Message[] = [];
    for (const waiting of [...this.#waiting.keys()]) {
      const message = this.#early.get(waiting);
      if (!message) break;
      this.#forget(waiting);
      ready.push(message);
    }
    return ready;
  }

  /**
   * Ends all pending calls; returns the result of each, with the text of `textOf` for a call without a
   * result.
   */
  closeAll(textOf: (id: string, name: string) => string): Message[] {
    const results = [...this.#waiting].map(([id, name]): Message =>
      this.#early.get(id) ??
        Object.freeze({ role: "tool", tool_call_id: id, name, content: textOf(id, name) })
    );
    for (const { tool_call_id } of results) this.#answered.add(String(tool_call_id));
    this.#waiting.clear();
    this.#early.clear();
    return results;
  }

  #forget(id: string): void {
    this.#waiting.delete(id);
    this.#early.delete(id);
  }
}

/**
 * Returns the calls of an assistant message, id → tool name: from `tool_calls`, else from its content blocks.
 */
function callsOf(message: Message): Map<string, string> {
  const calls = new Map<string, string>();
  if (Array.isArray(message.tool_calls)) {
    for (const call of message.tool_calls) {
      if (isObject(call)) calls.set(String(call.id), String(call.name ?? call.tool));
    }
  } else if (Array.isArray(message.content)) {
    for (const block of message.content) {
      if (isObject(block) && (block.type === "tool_call" || block.type === "tool_use")) {
        calls.set(String(block.id), String(block.name));
      }
    }
  }
  return calls;
}
