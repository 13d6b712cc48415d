/**
 * The registered handlers of events and their order; the arguments of `register` and `on`, and disposers.
 * Used by every hook registry: the kernel's, the guest's and the test recorder. Calls no handler.
 */
import { GATES } from "./event_table.ts";
import { type ChainHandler, HANDLER_TIMEOUT_MS, isWildcard, matchesEvent } from "./hook_chain.ts";
import type { Disposer, HookHandler, HookOptions, HookRegistry } from "./hooks.ts";
import { isObject, type JsonObject } from "./json.ts";
import { methodOf } from "./snake_case_aliases.ts";
import { describe } from "./value_path.ts";

interface Registration extends ChainHandler {
  readonly id: number;
  readonly event: string;
  readonly priority: number;
  /** Registry through which it was registered, if several share the list. */
  readonly owner: object | undefined;
  /** Whether a matching event was emitted. */
  heard: boolean;
}

/**
 * Maximum number of events with a cached list of handlers; modules choose event names, so the cache is
 * bounded.
 */
const MAX_REMEMBERED = 256;

/** Up to this number of handlers, an event without handlers is not cached. */
const FEW = 4;

const NO_HANDLERS: readonly ChainHandler[] = [];

/** The handlers of a registry, by event. */
export class HandlerList {
  readonly #timeout_ms: number;
  #registrations: Registration[] = [];
  /** Event → its handlers, of the events that were asked for; null: none. */
  #matches: Map<string, readonly ChainHandler[]> | null = null;
  #next_id = 1;

  /**
   * Creates an empty list.
   *
   * @param timeout_ms Maximum and default timeout of one handler call, in milliseconds.
   */
  constructor(timeout_ms: number = HANDLER_TIMEOUT_MS) {
    this.#timeout_ms = timeout_ms;
  }

  /** Number of registered handlers. */
  get size(): number {
    return this.#registrations.length;
  }

  /**
   * Registers a handler and returns a function that removes it.
   *
   * @param module_id Id of the module that registers it.
   * @param owner Registry of the module, if several share the list.
   */
  add({ event, handler, options }: HandlerRegistration, module_id?: string, owner?: object): Disposer {
    const id = this.#next_id++;
    const wanted_ms = finite(options.timeout_ms, 0);
    this.#registrations.push({
      id,
      event,
      handler,
      priority: finite(options.priority, 0),
      name: options.name ?? (handler.name || `handler-${id}`),
      observes: isWildcard(event),
      fail_closed: options.fail_closed ?? GATES.has(event),
      timeout_ms: wanted_ms > 0 ? Math.min(wanted_ms, this.#timeout_ms) : this.#timeout_ms,
      module_id,
      owner,
      heard: false,
    });
    this.#matches = null;
    return disposer(() => this.#remove((registration) => registration.id === id));
  }

  /** Removes every handler with this name; with an owner, only its own. */
  remove(name: string, owner?: object): void {
    this.#remove((registration) =>
      registration.name === name && (owner === undefined || registration.owner === owner)
    );
  }

  #remove(matches: (registration: Registration) => boolean): void {
    this.#registrations = this.#registrations.filter((registration) => !matches(registration));
    this.#matches = null;
  }

  /** Returns the handlers of an event in the order of their calls. */
  of(event: string): readonly ChainHandler[] {
    let handlers = this.#matches?.get(event);
    if (handlers === undefined) {
      handlers = this.#hearing(event);
      // matching a few handlers again is faster than a cache look-up
      if (handlers !== NO_HANDLERS || this.#registrations.length > FEW) this.#cache(event, handlers);
    }
    return handlers;
  }

  #cache(event: string, handlers: readonly ChainHandler[]): void {
    if (this.#matches && this.#matches.size > MAX_REMEMBERED) this.#matches.clear();
    (this.#matches ??= new Map()).set(event, handlers);
  }

  /** Returns handler names by registered event; with an argument, only those of that event. */
  names(event?: string): Record<string, string[]> {
    const names = new Map<string, string[]>(event === undefined ? [] : [[event, []]]);
    for (const registration of this.#sorted((item) => event === undefined || item.event === event)) {
      const known = names.get(registration.event);
      if (known) known.push(registration.name);
      else names.set(registration.event, [registration.name]);
    }
    return Object.fromEntries(names); // an event may have any name, such as constructor
  }

  /** Returns the event and the module of each handler that has not matched an event so far. */
  unheard(): { event: string; module_id: string | undefined }[] {
    return this.#registrations.filter(({ heard }) => !heard).map(({ event, module_id }) => ({
      event,
      module_id,
    }));
  }

  /**
   * Returns the matching handlers. Allocates nothing for an event without handlers, which most events of a
   * session are.
   */
  #hearing(event: string): readonly ChainHandler[] {
    for (let index = 0; index < this.#registrations.length; index++) {
      if (!matchesEvent(this.#registrations[index]!.event, event)) continue; // within the list
      const hearing = this.#sorted((registration) => matchesEvent(registration.event, event));
      for (const registration of hearing) registration.heard = true; // once per event, because the list is cached
      return hearing;
    }
    return NO_HANDLERS;
  }

  #sorted(wanted: (registration: Registration) => boolean): Registration[] {
    return this.#registrations.filter(wanted).sort((a, b) =>
      a.priority - b.priority || Number(a.observes) - Number(b.observes) || a.id - b.id
    );
  }
}

/**
 * Registers the `handler` of a hook object for each of its `events`. Such objects are mounted at `hooks` or
 * returned by a hook's `mount`.
 *
 * @param name Name of the handlers; default: the hook's own.
 * @throws {TypeError} when it has no events, or no handler.
 */
export function registerHook(
  hooks: Pick<HookRegistry, "register">,
  hook: object,
  name?: string,
): void {
  const { events, priority, timeout_ms, fail_closed, name: own } = hook as JsonObject;
  const handler = methodOf(hook, "handler");
  if (!Array.isArray(events) || !handler) {
    throw new TypeError(
      'Cannot mount at "hooks": the object needs events and a handler; or call coordinator.hooks.register(event, handler)',
    );
  }
  const settings = { priority, timeout_ms, fail_closed, name: name ?? own };
  const options = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
  for (const event of events) {
    hooks.register(String(event), (event_name, data) => handler(event_name, data) as null, options);
  }
}

/** Returns `value` when it is a finite number, else `fallback`. */
export function finite(value: unknown, fallback: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : fallback;
}

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
  requireEventName("register a handler", event);
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

/**
 * Checks the name of an event.
 *
 * @throws {TypeError} when it is not a non-empty string.
 */
export function requireEventName(action: string, event: unknown): void {
  if (typeof event === "string" && event !== "") return;
  throw new TypeError(`Cannot ${action}: event must be a non-empty string: received ${describe(event)}`);
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
