/** Reads the arguments of `register` and `on`, and creates disposers; used by every hook registry. */
import type { Disposer, HookHandler, HookOptions } from "./hooks.ts";
import { isObject } from "./json.ts";

/** A handler that is to be registered. */
export interface HandlerRegistration {
  event: string;
  handler: HookHandler;
  /** Copy of the options, with the name if one was given. */
  options: HookOptions;
}

/**
 * Returns the arguments of `register` in one form; `options` may be a number, the priority.
 *
 * @throws {TypeError} if `event` is not a non-empty string or `handler` is not a function.
 */
export function readRegistration(
  event: string,
  handler: HookHandler,
  options?: number | HookOptions,
  name?: string,
): HandlerRegistration {
  if (typeof event !== "string" || event === "") {
    throw new TypeError(
      `Cannot register a handler: event must be a non-empty string: received ${JSON.stringify(event)}`,
    );
  }
  if (typeof handler !== "function") {
    throw new TypeError(
      `Cannot register a handler for "${event}": must be a function: received ${typeof handler}`,
    );
  }
  const settings: HookOptions = typeof options === "number"
    ? { priority: options }
    : isObject(options)
    ? { ...options }
    : {};
  return { event, handler, options: name === undefined ? settings : { ...settings, name } };
}

/** Returns a disposer that runs `dispose` once, even when called again. */
export function disposer(dispose: () => void): Disposer {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    dispose();
  };
  return Object.assign(once, { [Symbol.dispose]: once });
}
