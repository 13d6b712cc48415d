/**
 * Which tool calls of the last assistant message wait for their results, so that results follow it in call order, each
 * once (behaviour.md §8.8, I2 and I3), whatever order a loop stores them in.
 */
import { isObject } from "../../sdk/json.ts";
import type { Message } from "../../sdk/types.ts";

/** The calls of one assistant message. */
export class PendingCalls {
  /** Id → tool name, in call order. */
  #waiting = new Map<string, string>();
  #answered = new Set<string>();
  /** Results that came before one of an earlier call. */
  readonly #early = new Map<string, Message>();

  /** Begins with the calls of an assistant message. */
  expect(message: Message): void {
    this.#waiting = callsOf(message);
    this.#answered = new Set();
    this.#early.clear();
  }

  /** Whether any call waits for a result that can be stored. */
  get any(): boolean {
    return this.#waiting.size > 0;
  }

  /** Whether this call waits. */
  has(id: string): boolean {
    return this.#waiting.has(id);
  }

  /** Whether this call has its result. */
  isAnswered(id: string): boolean {
    return this.#answered.has(id);
  }

  /** Takes the result of a waiting call; returns what can be stored now, in call order. */
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

  /** Ends the waiting; returns a result for every call: the one that came, or one with the text for it. */
  closeAll(textOf: (id: string, name: string) => string): Message[] {
    const results = [...this.#waiting].map(([id, name]): Message =>
      this.#early.get(id) ?? { role: "tool", tool_call_id: id, name, content: textOf(id, name) }
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

/** The calls of an assistant message by id: its `tool_calls`, else its content blocks. */
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
