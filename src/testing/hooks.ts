/** Hooks of modules under test: a complete registry that records what was emitted. */
import type { Clock } from "../sdk/contracts.ts";
import { HandlerList, readRegistration, requireEventName } from "../sdk/handler_list.ts";
import { noopEmission, runChain } from "../sdk/hook_chain.ts";
import {
  type Disposer,
  type Emission,
  type HookHandler,
  type HookOptions,
  type HookRegistry,
  HookRegistryBase,
} from "../sdk/hooks.ts";
import { isObject, type JsonObject, toPlainObject } from "../sdk/json.ts";
import { withRequestId } from "../sdk/request_ids.ts";
import { withSnakeCase } from "../sdk/snake_case_aliases.ts";
import { FakeClock, withinTime } from "./clocks.ts";

/** A recorded failure of a handler. */
export interface HandlerFailure {
  /** The event. */
  event: string;
  /** Name of the handler. */
  handler: string;
  /** The error. */
  error: unknown;
}

/**
 * A hook registry that records `[event, data]` of every event. As in the log, an event is recorded after its
 * handlers ran, with their changes and without the default fields.
 */
export class EventRecorder extends HookRegistryBase implements HookRegistry {
  /** All emitted events, in order. */
  readonly events: [event: string, data: JsonObject][] = [];
  /** Failures and timeouts of handlers. */
  readonly failures: HandlerFailure[] = [];
  readonly #clock: Clock;
  readonly #handlers = new HandlerList();
  #defaults: JsonObject = {};

  /**
   * Creates a registry with this clock. The default clock never advances by itself, so that no handler times
   * out.
   */
  constructor(clock: Clock = new FakeClock()) {
    super();
    this.#clock = clock;
  }

  register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer {
    return this.#handlers.add(readRegistration(event, handler, options, name));
  }

  unregister(name: string): void {
    this.#handlers.remove(name);
  }

  /** Runs the handlers, records the event, and resolves to the emission. */
  async emit(event: string, input: JsonObject | null = null): Promise<Emission> {
    requireEventName("emit an event", event);
    const data = withRequestId(event, input ?? {});
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

  async emitAndCollect(event: string, input: JsonObject | null = null, timeout_s = 1): Promise<JsonObject[]> {
    requireEventName("emit an event", event);
    const collected: JsonObject[] = [];
    for (const { name, handler, observes } of this.#handlers.of(event)) {
      try {
        const answer = Promise.resolve(handler(event, toPlainObject(input)));
        const result = await withinTime(
          answer,
          timeout_s * 1000,
          `no answer within ${timeout_s} s`,
          this.#clock,
        );
        if (isObject(result) && isObject(result.data) && !observes) {
          collected.push(toPlainObject(result.data));
        }
      } catch (error) {
        this.failures.push({ event, handler: name, error });
      }
    }
    this.record(event, input ?? {});
    return collected;
  }

  setDefaultFields(fields: JsonObject): void {
    this.#defaults = { ...fields };
  }

  listHandlers(event?: string): Record<string, string[]> {
    return this.#handlers.names(event);
  }

  /** Records an event without running a handler. */
  record(event: string, data: JsonObject | null = {}): void {
    this.events.push([event, toPlainObject(data)]);
  }

  /** Returns the recorded events as `[event, data]`; with an argument, only those of that event. */
  getEvents(event?: string): [event: string, data: JsonObject][] {
    return event === undefined ? [...this.events] : this.events.filter(([name]) => name === event);
  }

  /** Removes the recorded events; handlers stay. */
  clear(): void {
    this.events.length = 0;
    this.failures.length = 0;
  }
}

withSnakeCase(EventRecorder);
