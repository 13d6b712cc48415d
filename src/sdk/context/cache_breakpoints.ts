/**
 * Cache breakpoints: `metadata.cache_control` on messages after which a provider's prompt cache may end. A message has one or
 * has none from its first view on, whatever follows: marks that moved would change the prefix they are to protect.
 */
import { deepFreeze, isObject, type Message, methodOf } from "../mod.ts";

/** Names under which providers offer it in `getInfo().capabilities`. */
const CAPABILITIES: readonly string[] = ["cache_control", "prompt_caching"];

const marked = new WeakMap<Message, Message>();

/** Returns whether a provider takes breakpoints. */
export function takesBreakpoints(provider: unknown): boolean {
  try {
    const info = methodOf(provider, "getInfo")?.();
    const capabilities = isObject(info) && Array.isArray(info.capabilities) ? info.capabilities : [];
    return capabilities.some((name) => CAPABILITIES.includes(name));
  } catch {
    return false; // a provider that cannot tell gets views as everyone does
  }
}

/** Returns the message with a breakpoint after it, frozen; always the same object for the same message. */
export function withBreakpoint(message: Message): Message {
  let copy = marked.get(message);
  if (!copy) {
    const metadata = { ...message.metadata, cache_control: { type: "ephemeral" } };
    marked.set(message, copy = deepFreeze({ ...message, metadata }));
  }
  return copy;
}
