/** The key by which a provider forwards a call to another one, so that both count as one. */
import { Argument } from "../../sdk/frozen_data.ts";
import { isObject } from "../../sdk/json.ts";
import type { Usage } from "../../sdk/messages.ts";

/**
 * The key of a call. Only the called provider receives it, and may pass it on until the call ends; the calls
 * of all others are counted. It is a plain object: with a reachable class, a module could create keys.
 */
export class CallKey extends Argument {
  #open = true;
  /** Whether another provider answers the call: one at a time, until one has a usage. */
  #is_taken = false;
  /** Usage of another provider that answered the call, or a part of it. */
  #usage: Usage | null = null;
  /** Deltas that the caller received. */
  #text = "";

  static create(): CallKey {
    return new CallKey({});
  }

  /** Whether a value is the key of a call that has not ended. */
  static isOpen(value: unknown): value is CallKey {
    return isObject(value) && #open in value && value.#open;
  }

  /** Takes the key of an open call for another provider. Returns null when the call has another one. */
  static take(value: unknown): CallKey | null {
    if (!CallKey.isOpen(value) || value.#is_taken) return null;
    value.#is_taken = true;
    return value;
  }

  /** Ends what {@link take} began. Without a usage, the call may be passed on once more. */
  static giveBack(key: CallKey, usage: Usage | null): void {
    key.#usage = usage;
    key.#is_taken = usage !== null;
  }

  static addText(key: CallKey, text: string): void {
    key.#text += text;
  }

  static textOf(key: CallKey): string {
    return key.#text;
  }

  static usageOf(key: CallKey): Usage | null {
    return key.#usage;
  }

  static close(key: CallKey): void {
    key.#open = false;
  }
}
