/** A hook registry that remembers: a full registry for modules under test, and the list of what was emitted. */
import type { Clock } from "../contracts.ts";
import { HandlerList } from "../handler_list.ts";
import { noopEmission, runChain } from "../hook_chain.ts";
import {
  type Disposer,
  type Emission,
  EventNames,
  type HookHandler,
  type HookOptions,
  type HookRegistry,
} from "../hooks.ts";
import { isObject, type JsonObject, toPlainObject } from "../json.ts";
import { withSnakeCase } from "../snake_case_aliases.ts";
import { FakeClock } from "./fake_clock.ts";
import { withinTime } from "./wait_for.ts";

/** A handler that failed, kept so that a test can look. */
export interface HandlerFailure {
  /** The event it handled. */
  event: string;
  /** Its name. */
  handler: string;
  /** What it threw. */
  error: unknown;
}

/**
 * A hook registry with the rules of behaviour.md §5 that records `[event, data]` of every event, numbered as the log does
 * it: after the event's handlers ran, with the data they left, without the fields the registry itself adds.
 */
export class EventRecorder extends EventNames implements HookRegistry {
  /** Everything that was emitted, in order. */
  readonly events: [event: string, data: JsonObject][] = [];
  /** Handlers that threw or took too long. */
  readonly failures: HandlerFailure[] = [];
  readonly #clock: Clock;
  readonly #handlers = new HandlerList();
  #defaults: JsonObject = {};

  /** Creates a registry in the time of `clock`; the default clock stands still, so no handler is ever too slow. */
  constructor(clock: Clock = new FakeClock()) {
    super();
    this.#clock = clock;
  }

  /** Registers a handler; see {@link HookRegistry}. */
  register(event: string, handler: HookHandler, options: number | HookOptions = {}, name?: string): Disposer {
    return this.#handlers.add(event, handler, options, name);
  }

  /** Returns a function that registers a handler of `event`. */
  on(event: string): (handler: HookHandler) => Disposer;
  /** The same as {@link register}. */
  on(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer;
  /** The same as {@link register}; without a handler, a function that registers one. */
  on(
    event: string,
    handler?: HookHandler,
    options?: number | HookOptions,
    name?: string,
  ): Disposer | ((handler: HookHandler) => Disposer) {
    return handler === undefined
      ? (later: HookHandler) => this.register(event, later)
      : this.register(event, handler, options, name);
  }

  /** Removes every handler of this name. */
  unregister(name: string): void {
    this.#handlers.remove(name);
  }

  /** Runs the handlers, records the event, and resolves to what came of it. */
  async emit(event: string, given: JsonObject | null = null): Promise<Emission> {
    const data = given ?? {};
    const handlers = this.#handlers.of(event);
    if (handlers.length === 0) {
      this.record(event, data);
      return noopEmission(data);
    }
    const added = { ...this.#defaults, timestamp: new Date(this.#clock.now()).toISOString() };
    const payload = toPlainObject({ ...added, ...data, timestamp: added.timestamp });
    const emission = await runChain(handlers, event, payload, {
      deadline: (pending, handler) =>
        withinTime(pending, handler.timeout_ms, `no answer within ${handler.timeout_ms} ms`, this.#clock),
      onError: (handler, error) => this.failures.push({ event, handler: handler.name, error }),
    });
    const own = Object.entries(emission.data).filter(([key]) =>
      !Object.hasOwn(added, key) || Object.hasOwn(data, key)
    );
    this.record(event, Object.fromEntries(own));
    return emission;
  }

  /** Runs the handlers, each under `timeout_s` seconds, records the event, and resolves to the `data` of those that gave some. */
  async emitAndCollect(event: string, given: JsonObject | null = null, timeout_s = 1): Promise<JsonObject[]> {
    const collected: JsonObject[] = [];
    for (const { name, handler } of this.#handlers.of(event)) {
      try {
        const answer = Promise.resolve(handler(event, toPlainObject(given)));
        const result = await withinTime(
          answer,
          timeout_s * 1000,
          `no answer within ${timeout_s} s`,
          this.#clock,
        );
        if (isObject(result) && isObject(result.data)) collected.push(toPlainObject(result.data));
      } catch (error) {
        this.failures.push({ event, handler: name, error });
      }
    }
    this.record(event, given ?? {});
    return collected;
  }

  /** Replaces the fields that every payload starts with. */
  setDefaultFields(fields: JsonObject): void {
    this.#defaults = { ...fields };
  }

  /** Returns handler names by event; with an argument, of that event only. */
  listHandlers(event?: string): Record<string, string[]> {
    return this.#handlers.names(event);
  }

  /** Records an event without running a handler. */
  record(event: string, data: JsonObject | null = {}): void {
    this.events.push([event, toPlainObject(data)]);
  }

  /** Returns what was recorded, as `[event, data]`; with an argument, of that event only. */
  getEvents(event?: string): [event: string, data: JsonObject][] {
    return event === undefined ? [...this.events] : this.events.filter(([name]) => name === event);
  }

  /** Forgets what was recorded; handlers stay. */
  clear(): void {
    this.events.length = 0;
    this.failures.length = 0;
  }
}

withSnakeCase(EventRecorder);
