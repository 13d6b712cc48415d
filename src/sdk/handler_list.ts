/**
 * The handlers of a registry: who listens to what, in which order they are asked (behaviour.md §5.1, §5.9). One for the
 * kernel's registry and the recorder of tests. Calls nobody.
 */
import { GATES } from "./events.ts";
import { type ChainHandler, HANDLER_TIMEOUT_MS, isWildcard, matchesEvent } from "./hook_chain.ts";
import type { Disposer, HookHandler, HookOptions, HookRegistry } from "./hooks.ts";
import type { JsonObject } from "./json.ts";
import { methodOf } from "./snake_case_aliases.ts";

interface Registration extends ChainHandler {
  readonly id: number;
  readonly event: string;
  readonly priority: number;
  /** Whether an event was emitted that it hears. */
  heard: boolean;
}

/** Events whose handlers are remembered in order; their names are the modules', so there is a bound. */
const MAX_REMEMBERED = 256;

/** Handlers that are asked one by one whether they hear an event. */
const FEW = 4;

const NOBODY: readonly ChainHandler[] = [];

/** Handlers by event. */
export class HandlerList {
  readonly #timeout_ms: number;
  #registrations: Registration[] = [];
  readonly #matches = new Map<string, readonly ChainHandler[]>();
  #next_id = 1;

  /** @param timeout_ms The most that one call of a handler may take, and what it may take when it says nothing. */
  constructor(timeout_ms: number = HANDLER_TIMEOUT_MS) {
    this.#timeout_ms = timeout_ms;
  }

  /** Handlers that are registered. */
  get size(): number {
    return this.#registrations.length;
  }

  /**
   * Adds a handler; returns what takes it out again.
   * @param module_id Id of the module that registers it.
   * @throws {TypeError} when the event or the handler is none.
   */
  add(
    event: string,
    handler: HookHandler,
    options: number | HookOptions = {},
    name?: string,
    module_id?: string,
  ): Disposer {
    checkRegistration(event, handler);
    const given = typeof options === "number" ? { priority: options } : options ?? {};
    const id = this.#next_id++;
    const asked_ms = finite(given.timeout_ms, 0);
    this.#registrations.push({
      id,
      event,
      handler,
      priority: finite(given.priority, 0),
      name: name ?? given.name ?? (handler.name || `handler-${id}`),
      observes: isWildcard(event),
      fail_closed: given.fail_closed ?? GATES.has(event),
      timeout_ms: asked_ms > 0 ? Math.min(asked_ms, this.#timeout_ms) : this.#timeout_ms,
      module_id,
      heard: false,
    });
    this.#matches.clear();
    return disposer(() => this.#remove((registration) => registration.id === id));
  }

  /** Takes out every handler of this name. */
  remove(name: string): void {
    this.#remove((registration) => registration.name === name);
  }

  /** Takes out all. */
  clear(): void {
    this.#remove(() => true);
  }

  #remove(matches: (registration: Registration) => boolean): void {
    this.#registrations = this.#registrations.filter((registration) => !matches(registration));
    this.#matches.clear();
  }

  /** Returns the handlers that hear an event, in the order in which they are asked. */
  of(event: string): readonly ChainHandler[] {
    let handlers = this.#matches.get(event);
    if (handlers === undefined) {
      handlers = this.#hearing(event);
      // that a few do not hear an event is found again sooner than it is remembered
      if (handlers !== NOBODY || this.#registrations.length > FEW) this.#remember(event, handlers);
    }
    return handlers;
  }

  #remember(event: string, handlers: readonly ChainHandler[]): void {
    if (this.#matches.size > MAX_REMEMBERED) this.#matches.clear();
    this.#matches.set(event, handlers);
  }

  /** Returns handler names by the event they were registered for; with an argument, of that event only. */
  names(event?: string): Record<string, string[]> {
    const names: Record<string, string[]> = event === undefined ? {} : { [event]: [] };
    for (const registration of this.#sorted((one) => event === undefined || one.event === event)) {
      (names[registration.event] ??= []).push(registration.name);
    }
    return names;
  }

  /** Returns what handlers that have heard nothing so far were registered for, and by which modules. */
  unheard(): { event: string; module_id: string | undefined }[] {
    return this.#registrations.filter(({ heard }) => !heard).map(({ event, module_id }) => ({
      event,
      module_id,
    }));
  }

  /** Most events of a session are heard by nobody: no list is made for those. */
  #hearing(event: string): readonly ChainHandler[] {
    for (let index = 0; index < this.#registrations.length; index++) {
      if (!matchesEvent(this.#registrations[index]!.event, event)) continue; // index is in the list
      const hearing = this.#sorted((registration) => matchesEvent(registration.event, event));
      for (const registration of hearing) registration.heard = true; // here, because the list is remembered: once an event
      return hearing;
    }
    return NOBODY;
  }

  #sorted(wanted: (registration: Registration) => boolean): Registration[] {
    return this.#registrations.filter(wanted).sort((a, b) =>
      a.priority - b.priority || Number(a.observes) - Number(b.observes) || a.id - b.id
    );
  }
}

/**
 * Registers a hook that is an object: its `handler` for each of its `events`. What is mounted at `hooks` is one, and what a hook's
 * `mount` may return.
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
      'Cannot mount at "hooks": a hook there has events and a handler; others call coordinator.hooks.register(event, handler)',
    );
  }
  const given = { priority, timeout_ms, fail_closed, name: name ?? own };
  const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  for (const event of events) {
    hooks.register(String(event), (told, data) => handler(told, data) as null, options);
  }
}

/** @throws {TypeError} when an event or a handler is none. */
export function checkRegistration(event: unknown, handler: unknown): void {
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
}

/** Returns a disposer that acts once, however often it is called. */
export function disposer(dispose: () => void): Disposer {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    dispose();
  };
  return Object.assign(once, { [Symbol.dispose]: once });
}

/** Returns `value` when it is a finite number, else `fallback`: what modules hand in may be anything. */
export function finite(value: unknown, fallback: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : fallback;
}
