/**
 * Sets cache breakpoints: `metadata.cache_control` on messages after which a provider's prompt cache may end.
 * Whether a message has one is decided in its first view and never changes, because moving marks would change
 * the cached prefix.
 */
import { isObject, type Message, methodOf } from "../base.ts";
import { frozenMessage } from "./frozen_message.ts";

/** Capabilities of providers that support breakpoints, in `getInfo().capabilities`. */
const CAPABILITIES: readonly string[] = ["cache_control", "prompt_caching"];

const marked = new WeakMap<Message, Message>();

/** Returns whether a provider supports breakpoints. */
export function takesBreakpoints(provider: unknown): boolean {
  try {
    const info = methodOf(provider, "getInfo")?.();
    const capabilities = isObject(info) && Array.isArray(info.capabilities) ? info.capabilities : [];
    return capabilities.some((name) => CAPABILITIES.includes(name));
  } catch {
    return false; // a provider whose `getInfo` fails gets no breakpoints
  }
}

/** Returns the frozen message with a breakpoint after it; the same object for the same message. */
export function withBreakpoint(message: Message): Message {
  let copy = marked.get(message);
  if (!copy) {
    const metadata = { ...message.metadata, cache_control: { type: "ephemeral" } };
    marked.set(message, copy = frozenMessage({ ...message, metadata }));
  }
  return copy;
}
