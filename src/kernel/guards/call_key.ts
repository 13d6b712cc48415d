/** The key by which a provider forwards a call to another one, so that both count as one. */
import { Argument } from "../../sdk/frozen_data.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { Usage } from "../../sdk/messages.ts";

/**
 * The key of a call. Only the called provider receives it, and may pass it on until the call ends; the calls
 * of all others are counted. It is a plain object: with a reachable class, a module could create keys.
 */
export class CallKey extends Argument {
  #open = true;
  /** Whether another provider answers the call: one at a time, until one has answered. */
  #is_taken = false;
  /** Usage of another provider that answered the call. */
  #usage: Usage | null = null;
  /**
   * Data of `provider:error` of another provider that failed after a part of an answer. The call itself
   * reports the part when it fails for it.
   */
  #failure: JsonObject | null = null;
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

  /** Ends what {@link take} began, with an answer: the call is not passed on again. */
  static setAnswered(key: CallKey, usage: Usage): void {
    key.#usage = usage;
  }

  /** Ends what {@link take} began, without an answer: the call may be passed on once more. */
  static giveBack(key: CallKey, failure: JsonObject | null): void {
    key.#failure = failure;
    key.#is_taken = false;
  }

  /** Returns the failure that the call does not end with, to be reported once; null without one. */
  static takeFailure(key: CallKey): JsonObject | null {
    const failure = key.#failure;
    if (failure === null) return null;
    key.#failure = null;
    key.#text = ""; // it counts with the failure
    return failure;
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

  /** Returns what another provider has used for a call that failed. */
  static partOf(key: CallKey): Usage | null {
    return key.#usage ?? (key.#failure?.usage as Usage | undefined) ?? null; // written by the guard
  }

  static close(key: CallKey): void {
    key.#open = false;
  }
}
