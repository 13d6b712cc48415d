/**
 * Tool calls of the last assistant message that have no result yet. Orders the results, so that each call has
 * one result and the results follow the message in call order, whatever the order in which a loop stores
 * them.
 */
import { isObject } from "../../sdk/json.ts";
import type { Message } from "../../sdk/types.ts";

interface PendingCall {
  readonly id: string;
  readonly name: string;
  /** The result; it waits here for the results of earlier calls. Null: none arrived. */
  result: Message | null;
}

const NO_CALLS: ReadonlyMap<string, PendingCall> = new Map();

/** Pending tool calls of one assistant message. */
export class PendingCalls {
  #by_id = NO_CALLS;
  /** The calls in order; those before `#next` have a stored result. */
  #calls: readonly PendingCall[] = [];
  #next = 0;

  /** Starts over with the calls of an assistant message. */
  expect(message: Message): void {
    this.#by_id = callsOf(message);
    this.#calls = this.#by_id === NO_CALLS ? [] : [...this.#by_id.values()];
    this.#next = 0;
  }

  /** Whether any call has no stored result. */
  get any(): boolean {
    return this.#next < this.#calls.length;
  }

  /** Returns whether this call is pending. */
  has(id: string): boolean {
    return this.#by_id.has(id) && !this.isAnswered(id);
  }

  /** Returns whether this call has a result. */
  isAnswered(id: string): boolean {
    const call = this.#by_id.get(id);
    return call !== undefined && call.result !== null;
  }

  /** Adds the result of a pending call; returns the results that can be stored now, in call order. */
  addResult(id: string, result: Message): Message[] {
    this.#by_id.get(id)!.result = result; // pending, so it is known
    const ready: Message[] = [];
    for (; this.#next < this.#calls.length; this.#next++) {
      const { result } = this.#calls[this.#next]!; // below the length
      if (result === null) break;
      ready.push(result);
    }
    return ready;
  }

  /**
   * Ends all pending calls; returns the results that were not stored, with the text of `textOf` for a call
   * without a result.
   */
  closeAll(textOf: (id: string, name: string) => string): Message[] {
    const open = this.#calls.slice(this.#next);
    this.#next = this.#calls.length;
    for (const call of open) {
      const { id, name } = call;
      call.result ??= Object.freeze({ role: "tool", tool_call_id: id, name, content: textOf(id, name) });
    }
    return open.map(({ result }) => result!); // just set
  }
}

/** Returns the calls of an assistant message by id: from `tool_calls`, else from its content blocks. */
function callsOf({ tool_calls, content }: Message): ReadonlyMap<string, PendingCall> {
  const listed: readonly unknown[] = Array.isArray(tool_calls)
    ? tool_calls
    : Array.isArray(content)
    ? content.filter(isCallBlock)
    : [];
  if (listed.length === 0) return NO_CALLS;
  const calls = new Map<string, PendingCall>();
  for (const call of listed) {
    if (!isObject(call)) continue;
    const id = String(call.id);
    calls.set(id, { id, name: String(call.name ?? call.tool), result: null });
  }
  return calls;
}

function isCallBlock(block: unknown): boolean {
  return isObject(block) && (block.type === "tool_call" || block.type === "tool_use");
}
