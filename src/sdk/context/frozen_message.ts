/** Freezes the messages that a context makes itself. */
import { type Message, toFrozenObject } from "../base.ts";

/** Returns a message as frozen plain data. Its tokens are counted once, and its unchanged parts are shared. */
export function frozenMessage(message: Message): Message {
  return toFrozenObject(message) as unknown as Message; // the same fields
}
