/**
 * The hook registry of a session: who listens to what, and the one door through which every event goes into the log. What
 * the answers of handlers come to is `sdk/hook_chain.ts`; what an event means is `session/turn_tracker.ts`. Knows no event.
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

/** What the registry is given from the session. */
export interface HookSessionPort {
  readonly clock: Clock;
  /** Handlers that modules may have registered. */
  readonly max_handlers: number;
  /** Milliseconds that one call of a handler may take. */
  readonly handler_timeout_ms: number;
  /** Tells what must have been told before this event; a promise means: wait. */
  ensurePreceding(event: string, data: JsonObject | null): Promise<unknown> | void;
  /** Completes what the emitter left out; returns the same object when nothing is missing, null when the event is dropped. */
  prepare(event: string, data: JsonObject): JsonObject | null;
  /** Fields of the moment that handlers see beside the defaults: `turn_id`, `iteration`. */
  turnFields(): JsonObject;
  /** Takes notice of the outcome and writes the entry; a promise means: wait. `prepared` is what {@link prepare} returned. */
  recordOutcome(event: string, emission: Emission, prepared: JsonObject): Promise<void> | void;
  /** Whether something depends on what comes of an event: then it is settled, whoever looks at the outcome. */
  isGate(event: string): boolean;
  /** Writes the entry of an event that nobody listens to and that decides nothing; a promise means: wait. */
  record(event: string, prepared: JsonObject): Promise<void> | void;
  /** Writes the entry of an event that decides nothing; a promise means: wait. */
  write(event: string, emission: Emission, given: JsonObject): Promise<void> | void;
  /** Answers for the handlers, when a recorded run is replayed. */
  recall?: ((event: string, data: JsonObject) => Promise<Emission> | Emission) | undefined;
  recallAnswers?: ((event: string, data: JsonObject) => JsonObject[]) | undefined;
  /** Told of a handler that failed, and what it threw, or of one whose answer has no effect. */
  warn(code: string, message: string, error?: unknown): void;
}

/** The registry. One per session. */
export class Hooks extends EventNames implements HookRegistry {
  readonly #port: HookSessionPort;
  readonly #handlers: HandlerList;
  #defaults: JsonObject;
  /** Module and event of the answers that were reported to have no effect. */
  #ignored: Set<string> | null = null;

  /** Creates a registry whose payloads start with `defaults`. */
  constructor(sink: HookSessionPort, defaults: JsonObject) {
    super();
    this.#port = sink;
    this.#handlers = new HandlerList(sink.handler_timeout_ms);
    this.#defaults = defaults;
  }

  /** @param module_id Id of the module that registers it. */
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
    if (handler === undefined) return (later: HookHandler) => this.register(event, later);
    return this.register(event, handler, options, name);
  }

  /**
   * Checks that there is room for one more handler, beside some that are not registered yet.
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

  /** Forgets every handler. */
  clear(): void {
    this.#handlers.clear();
  }

  emit(event: string, given: JsonObject | null = null): Promise<Emission> {
    try {
      const begun = this.#port.ensurePreceding(event, given);
      return begun ? begun.then(() => this.#emit(event, given)) : this.#emit(event, given);
    } catch (error) {
      return Promise.reject(error); // a store that answers at once fails at once: still as a rejection
    }
  }

  #emit(event: string, given: JsonObject | null): Promise<Emission> {
    const data = this.#port.prepare(event, given ?? {});
    if (data === null) return Promise.resolve(noopEmission(given ?? {}));
    const handled = this.#runAny(event, data);
    if (handled) return handled;
    const emission = noopEmission(data);
    const stored = this.#port.recordOutcome(event, emission, data);
    return stored ? stored.then(() => emission) : Promise.resolve(emission);
  }

  notify(event: string, given: JsonObject | null = null): Promise<unknown> | void {
    try {
      const begun = this.#port.ensurePreceding(event, given);
      return begun ? begun.then(() => this.#notify(event, given)) : this.#notify(event, given);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #notify(event: string, given: JsonObject | null): Promise<unknown> | void {
    const data = this.#port.prepare(event, given ?? {});
    if (data === null) return;
    return this.#runAny(event, data) ??
      (this.#port.isGate(event)
        ? this.#port.recordOutcome(event, noopEmission(data), data)
        : this.#port.record(event, data));
  }

  /** Has the handlers of an event asked, or the recording; void when nobody is to be asked. */
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

  /** The entry is written as the emitter gave it, whatever its handlers answer. */
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
      `Module "${module}" answered ${event} with ${answer}: handlers of this event observe, nothing was changed`,
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

  async emitAndCollect(event: string, given: JsonObject | null = null, timeout_s = 1): Promise<JsonObject[]> {
    const collected: JsonObject[] = [];
    const data = given ?? {};
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
        const found = (result as { data?: unknown } | null | undefined)?.data;
        if (found !== null && found !== undefined) collected.push(toPlainObject(found));
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

  /** Returns what handlers that have heard nothing so far were registered for, and by which modules. */
  unheard(): { event: string; module_id: string | undefined }[] {
    return this.#handlers.unheard();
  }

  listHandlers(event?: string): Record<string, string[]> {
    return this.#handlers.names(event);
  }
}

withSnakeCase(Hooks);
