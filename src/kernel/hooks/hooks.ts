/**
 * The hook registry of a session. Every event of the session is emitted here: handlers run
 * (`sdk/hook_chain.ts`), then the entry is logged. `session/turn_tracker.ts` knows the meaning of events;
 * this file does not.
 *
 * Methods return a promise only when there is something to wait for.
 */
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { finite, HandlerList } from "../../sdk/handler_list.ts";
import { RUNTIME_EVENTS } from "../../sdk/events.ts";
import { type ChainHandler, noopEmission, runChain } from "../../sdk/hook_chain.ts";
import { toPlainObject } from "../../sdk/json.ts";
import { EventNames } from "../../sdk/hooks.ts";
import { withSnakeCase } from "../../sdk/snake_case_aliases.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type {
  Clock,
  Disposer,
  Emission,
  HookHandler,
  HookOptions,
  HookRegistry,
  JsonObject,
} from "../../sdk/types.ts";
import { withDeadline } from "../timeouts.ts";

/** The registry's interface to its session. */
export interface HookSessionPort {
  readonly clock: Clock;
  /** Maximum number of registered handlers. */
  readonly max_handlers: number;
  /** Timeout of one call of a handler, in milliseconds. */
  readonly handler_timeout_ms: number;
  /** Emits the events that must precede this one, if any. */
  ensurePreceding(event: string, data: JsonObject | null): Promise<unknown> | void;
  /**
   * Adds fields that the emitter left out; returns the same object when none is missing, null when the event
   * is dropped.
   */
  prepare(event: string, data: JsonObject): JsonObject | null;
  /** Returns the fields that are added to every payload: `turn_id`, `iteration`. */
  turnFields(): JsonObject;
  /**
   * Records the hook result and appends the entry. `prepared` is the object that {@link prepare} returned.
   */
  recordOutcome(event: string, emission: Emission, prepared: JsonObject): Promise<void> | void;
  /** Returns whether the event is a gate: its result then takes effect even if the emitter ignores it. */
  isGate(event: string): boolean;
  /** Appends the entry of an event without a hook result. */
  record(event: string, prepared: JsonObject): Promise<void> | void;
  /** Appends the entry of an event that is not a gate. */
  write(event: string, emission: Emission, payload: JsonObject): Promise<void> | void;
  /** Replay only: returns the recorded result of the handlers. */
  recall?: ((event: string, data: JsonObject) => Promise<Emission> | Emission) | undefined;
  recallAnswers?: ((event: string, data: JsonObject) => JsonObject[]) | undefined;
  /** Reports a handler that failed, or whose result has no effect. */
  warn(code: string, message: string, error?: unknown): void;
}

/** The registry. One per session. */
export class Hooks extends EventNames implements HookRegistry {
  readonly #port: HookSessionPort;
  readonly #handlers: HandlerList;
  #defaults: JsonObject;
  /** `module event` of results without effect that were reported. */
  #ignored: Set<string> | null = null;

  /** Creates a registry whose payloads start with `defaults`. */
  constructor(sink: HookSessionPort, defaults: JsonObject) {
    super();
    this.#port = sink;
    this.#handlers = new HandlerList(sink.handler_timeout_ms);
    this.#defaults = defaults;
  }

  /** @param module_id Id of the module that registers the handler. */
  register(
    event: string,
    handler: HookHandler,
    options: number | HookOptions = {},
    name?: string,
    module_id?: string,
  ): Disposer {
    return this.#handlers.add(event, handler, options, name, module_id);
  }

  on(event: string): (handler: HookHandler) => Disposer;
  on(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer;
  on(
    event: string,
    handler?: HookHandler,
    options?: number | HookOptions,
    name?: string,
  ): Disposer | ((handler: HookHandler) => Disposer) {
    if (handler === undefined) return (decorated: HookHandler) => this.register(event, decorated);
    return this.register(event, handler, options, name);
  }

  /**
   * Checks that another handler may be registered, in addition to `drafted` handlers that are not registered
   * yet.
   * @throws {PreampError} `module_invalid`.
   */
  checkRoom(drafted: number): void {
    const { max_handlers } = this.#port;
    if (this.#handlers.size + drafted < max_handlers) return;
    throw new PreampError(
      "module_invalid",
      `Cannot register a handler: a session may have ${max_handlers} of them (limits.max_hooks)`,
    );
  }

  unregister(name: string): void {
    this.#handlers.remove(name);
  }

  /** Removes all handlers. */
  clear(): void {
    this.#handlers.clear();
  }

  emit(event: string, payload: JsonObject | null = null): Promise<Emission> {
    try {
      const preceding = this.#port.ensurePreceding(event, payload);
      return preceding ? preceding.then(() => this.#emit(event, payload)) : this.#emit(event, payload);
    } catch (error) {
      return Promise.reject(error); // a store that answers at once fails at once: still as a rejection
    }
  }

  #emit(event: string, payload: JsonObject | null): Promise<Emission> {
    const data = this.#port.prepare(event, payload ?? {});
    if (data === null) return Promise.resolve(noopEmission(payload ?? {}));
    const handled = this.#runAny(event, data);
    if (handled) return handled;
    const emission = noopEmission(data);
    const stored = this.#port.recordOutcome(event, emission, data);
    return stored ? stored.then(() => emission) : Promise.resolve(emission);
  }

  notify(event: string, payload: JsonObject | null = null): Promise<unknown> | void {
    try {
      const preceding = this.#port.ensurePreceding(event, payload);
      return preceding ? preceding.then(() => this.#notify(event, payload)) : this.#notify(event, payload);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #notify(event: string, payload: JsonObject | null): Promise<unknown> | void {
    const data = this.#port.prepare(event, payload ?? {});
    if (data === null) return;
    return this.#runAny(event, data) ??
      (this.#port.isGate(event)
        ? this.#port.recordOutcome(event, noopEmission(data), data)
        : this.#port.record(event, data));
  }

  /** Runs the handlers of an event, or reads their recorded result; void when there is neither. */
  #runAny(event: string, data: JsonObject): Promise<Emission> | void {
    const handlers = this.#handlers.of(event);
    if (handlers.length > 0 && RUNTIME_EVENTS.has(event)) return this.#emitToObservers(handlers, event, data);
    if (this.#port.recall) return this.#emitRecalled(this.#port.recall, handlers, event, data);
    if (handlers.length > 0) return this.#emitToHandlers(handlers, event, data);
  }

  async #emitToHandlers(
    handlers: readonly ChainHandler[],
    event: string,
    data: JsonObject,
  ): Promise<Emission> {
    const emission = await this.#runHandlers(handlers, event, data);
    await this.#port.recordOutcome(event, emission, data);
    return emission;
  }

  /** Runs the handlers, then appends the entry with the emitter's data, ignoring their results. */
  async #emitToObservers(
    handlers: readonly ChainHandler[],
    event: string,
    data: JsonObject,
  ): Promise<Emission> {
    await this.#runHandlers(handlers, event, data);
    await this.#port.record(event, data);
    return noopEmission(data);
  }

  async #emitRecalled(
    recall: NonNullable<HookSessionPort["recall"]>,
    handlers: readonly ChainHandler[],
    event: string,
    data: JsonObject,
  ): Promise<Emission> {
    if (handlers.length > 0) await this.#runHandlers(handlers, event, data);
    const emission = await recall(event, data);
    await this.#port.recordOutcome(event, emission, data);
    return emission;
  }

  #runHandlers(handlers: readonly ChainHandler[], event: string, data: JsonObject): Promise<Emission> {
    const payload = toPlainObject({
      ...this.#defaults,
      ...this.#port.turnFields(),
      ...data,
      timestamp: timestamp(this.#port.clock.now()),
    });
    return runChain(handlers, event, payload, {
      deadline: (pending, handler) => this.#underDeadline(pending, handler, event),
      onError: (handler, error) =>
        this.#port.warn(
          "hook_failed",
          `Hook "${handler.name}" failed on ${event}: ${errorMessage(error)}`,
          error,
        ),
      onIgnored: (handler, answer) => this.#warnIgnored(handler, event, answer),
    });
  }

  #warnIgnored({ module_id, name }: ChainHandler, event: string, answer: string): void {
    const module = module_id ?? name;
    this.#ignored ??= new Set();
    if (this.#ignored.has(`${module} ${event}`)) return;
    this.#ignored.add(`${module} ${event}`);
    this.#port.warn(
      "hook_answer_ignored",
      `Module "${module}" answered ${event} with ${answer}: handlers of this event only observe, nothing was changed`,
    );
  }

  #underDeadline(pending: Promise<unknown>, handler: ChainHandler, event: string): Promise<unknown> {
    if (handler.timeout_ms <= 0) return pending;
    return withDeadline(
      pending,
      handler.timeout_ms,
      this.#port.clock,
      () =>
        new Error(
          `Cannot wait for hook "${handler.name}" on ${event}: no answer within ${handler.timeout_ms} ms`,
        ),
    );
  }

  async emitAndCollect(
    event: string,
    payload: JsonObject | null = null,
    timeout_s = 1,
  ): Promise<JsonObject[]> {
    const collected: JsonObject[] = [];
    const data = payload ?? {};
    const text = JSON.stringify(toPlainObject(data));
    if (this.#port.recallAnswers) {
      await this.#port.write(event, noopEmission(data), data);
      return this.#port.recallAnswers(event, data);
    }
    for (const handler of this.#handlers.of(event)) {
      try {
        const result = await withDeadline(
          Promise.resolve(handler.handler(event, JSON.parse(text))),
          Math.min(finite(timeout_s, 1) * 1000, this.#port.handler_timeout_ms),
          this.#port.clock,
          () => new Error(`no answer within ${timeout_s} s`),
        );
        const answer = (result as { data?: unknown } | null | undefined)?.data;
        if (answer !== null && answer !== undefined) collected.push(toPlainObject(answer));
      } catch (error) {
        const message = `Hook "${handler.name}" failed on ${event}: ${errorMessage(error)}`;
        this.#port.warn("hook_failed", message, error);
      }
    }
    await this.#port.write(event, noopEmission(data), data);
    return collected;
  }

  setDefaultFields(fields: JsonObject): void {
    this.#defaults = { ...fields };
  }

  /** Returns event and module of each handler that was never called. */
  unheard(): { event: string; module_id: string | undefined }[] {
    return this.#handlers.unheard();
  }

  listHandlers(event?: string): Record<string, string[]> {
    return this.#handlers.names(event);
  }
}

withSnakeCase(Hooks);
