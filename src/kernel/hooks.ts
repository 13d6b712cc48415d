/**
 * The hook registry of a session. Every event of the session is emitted here: see
 * src/docs/architecture.md#the-way-of-one-event. `sdk/event_table.ts` and `steps.ts` know the meaning of
 * events; this file does not.
 */
import { errorMessage, PreampError } from "../sdk/errors.ts";
import { finite, HandlerList, requireEventName } from "../sdk/handler_list.ts";
import { eventsWith, RUNTIME_EVENTS } from "../sdk/event_table.ts";
import { type ChainHandler, noopEmission, runChain } from "../sdk/hook_chain.ts";
import { toFrozenObject, toPlainObject } from "../sdk/json.ts";
import { withRequestId } from "../sdk/request_ids.ts";
import { timestamp } from "../sdk/timestamp.ts";
import type { Emission, JsonObject } from "../sdk/types.ts";
import { withDeadline } from "./timeouts.ts";
import type { SessionContext } from "./session_context.ts";

/** Events of a turn, which are dropped while none runs: they are late ones of an abandoned loop. */
const TURN_EVENTS = eventsWith("turn");

/** Emissions within each other on the stack: more are those of a handler that emits its own event at once. */
const MAX_NESTED = 100;
/** Emissions of one module whose handlers have not ended: more are those of such a handler after a wait. */
const MAX_OPEN = 10_000;

/** A module as an emitter of events. */
export interface Emitter {
  readonly module_id: string;
  /** Events that it cannot emit. */
  reserved: ReadonlySet<string>;
  /** Its emissions whose handlers have not ended. */
  open: number;
}

/** Answers of the handlers of one `emitAndCollect`. */
interface Collection {
  readonly timeout_s: number;
  readonly answers: JsonObject[];
}

/** What an emission has beside its event and its data. */
interface EmitParts {
  /** Absent: the results of the handlers are decided. */
  readonly collection?: Collection | null;
  /** The module that emits; absent: the kernel. */
  readonly emitter?: Emitter | null;
  readonly decided?: (emission: Emission) => void;
}

/** Takes an event that a module emits; resolves to the answer for the module. */
export type Step = (event: string, data: JsonObject, emitter: Emitter) => Promise<Emission>;

/** The handlers of all modules, one object per session. A module reaches them through its `ModuleHooks`. */
export class Hooks {
  readonly handlers: HandlerList;
  /** Fields of every handler's payload. */
  defaults: JsonObject;
  readonly #session: SessionContext;
  /** Maximum time of one call of a handler. */
  readonly #timeout_ms: number;
  /** Event → step of the kernel that takes the event when a module emits it. */
  readonly #steps = new Map<string, Step>();
  /** Emissions on the stack. */
  #nested = 0;
  /** Warnings about events that were reported; null: none. */
  #warned: Set<string> | null = null;

  constructor(session: SessionContext) {
    this.#session = session;
    this.#timeout_ms = session.limits.hook_timeout_s * 1000;
    this.handlers = new HandlerList(this.#timeout_ms);
    this.defaults = { session_id: session.session_id, parent_id: session.parent_id };
  }

  /**
   * Checks that another handler may be registered, in addition to `drafted` handlers that are not registered
   * yet.
   * @throws {PreampError} `module_invalid`.
   */
  checkRoom(drafted: number): void {
    const { max_hooks } = this.#session.limits;
    if (this.handlers.size + drafted < max_hooks) return;
    throw new PreampError(
      "module_invalid",
      `Cannot register a handler: a session may have ${max_hooks} of them (limits.max_hooks)`,
    );
  }

  /** Lets a step take events that modules emit. */
  take(events: Iterable<string>, step: Step): void {
    for (const event of events) this.#steps.set(event, step);
  }

  /**
   * Takes an event from its emitter to the log: see src/docs/architecture.md#the-way-of-one-event. Not async:
   * see src/docs/performance.md#promises-on-the-hot-path.
   *
   * @param emitter The module that emits it; null for the kernel.
   */
  emit(
    event: string,
    payload: JsonObject | null = null,
    emitter: Emitter | null = null,
  ): Promise<Emission> {
    const step = emitter && this.#steps.get(event);
    if (step) return step(event, payload ?? {}, emitter);
    return this.#emit(event, payload ?? {}, { emitter });
  }

  /** Emits an event that a step of the kernel took, as the module states it. */
  emitStated(event: string, payload: JsonObject, emitter: Emitter): Promise<Emission> {
    return this.#emit(event, payload, { emitter });
  }

  /** Emits a gate. `decided` receives the emission before it is logged, and may change its data. */
  emitGate(event: string, payload: JsonObject, decided: (emission: Emission) => void): Promise<Emission> {
    return this.#emit(event, payload, { decided });
  }

  async emitAndCollect(
    event: string,
    payload: JsonObject | null = null,
    timeout_s = 1,
    emitter: Emitter | null = null,
  ): Promise<JsonObject[]> {
    const step = emitter && this.#session.turn && this.#steps.get(event);
    if (step) {
      await step(event, payload ?? {}, emitter);
      return [];
    }
    const collection: Collection = { timeout_s, answers: [] };
    await this.#emit(event, toFrozenObject(payload), { collection, emitter });
    return collection.answers;
  }

  #emit(event: string, payload: JsonObject, parts: EmitParts): Promise<Emission> {
    try {
      requireEventName("emit an event", event);
      const data = withRequestId(event, payload); // at once: it is that of the emitter's context
      return this.#pass(event, data, parts);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #pass(event: string, data: JsonObject, parts: EmitParts): Promise<Emission> {
    if (this.#session.turn === null && TURN_EVENTS.has(event)) return Promise.resolve(noopEmission(data));
    const handlers = this.handlers.of(event);
    if (handlers.length > 0 || this.#session.host.recordedResult !== undefined) {
      const handled = this.#callHandlers(handlers, event, data, parts);
      return handled.then((emission) => this.#append(event, emission, data, parts));
    }
    return this.#append(event, noopEmission(data), data, parts);
  }

  /** @throws {PreampError} for a handler that emits the event that it handles, again and again. */
  #callHandlers(
    handlers: readonly ChainHandler[],
    event: string,
    data: JsonObject,
    { collection = null, emitter = null }: EmitParts,
  ): Promise<Emission> {
    if (this.#nested >= MAX_NESTED || (emitter && emitter.open >= MAX_OPEN)) {
      throw new PreampError(
        "module_invalid",
        `Cannot emit "${event}": too many emissions wait for their handlers; does one emit the event that it handles?`,
      );
    }
    this.#nested++;
    try {
      const handled = collection === null
        ? this.#handle(handlers, event, data)
        : this.#collect(handlers, event, data, collection);
      if (emitter === null) return handled;
      emitter.open++;
      return handled.finally(() => emitter.open--);
    } finally {
      this.#nested--;
    }
  }

  #append(event: string, emission: Emission, data: JsonObject, { decided }: EmitParts): Promise<Emission> {
    decided?.(emission);
    const stored = this.#session.writeEmission(event, emission, data);
    return stored ? stored.then(() => emission) : Promise.resolve(emission);
  }

  /** Runs the handlers of an event. In a replay, their recorded result replaces what they return. */
  async #handle(handlers: readonly ChainHandler[], event: string, data: JsonObject): Promise<Emission> {
    const { recordedResult } = this.#session.host;
    const emission = handlers.length > 0 ? await this.#runHandlers(handlers, event, data) : null;
    if (emission && RUNTIME_EVENTS.has(event)) return noopEmission(data); // they only observe
    return recordedResult ? await recordedResult(event, data) : emission ?? noopEmission(data);
  }

  #runHandlers(handlers: readonly ChainHandler[], event: string, data: JsonObject): Promise<Emission> {
    const { turn, host } = this.#session;
    const payload = toPlainObject({
      ...this.defaults,
      ...turn?.fields,
      ...data,
      timestamp: timestamp(host.clock.now()),
    });
    return runChain(handlers, event, payload, {
      deadline: (pending, { timeout_ms }) =>
        timeout_ms <= 0 ? pending : withDeadline(
          pending,
          timeout_ms,
          host.clock,
          () => new Error(`no answer within ${timeout_ms} ms`),
        ),
      onError: (handler, error) => this.#warnFailed(handler, event, error),
      onIgnored: (handler, answer) => this.#warnIgnored(handler, event, answer),
      onReturned: ({ module_id, name }, value) =>
        this.#session.noteReturned("hook result", value, module_id ?? name),
    });
  }

  #warnFailed({ name }: ChainHandler, event: string, error: unknown): void {
    const { host } = this.#session;
    const message = `Hook "${name}" failed on ${event}: ${errorMessage(error)}`;
    host.warn("hook_failed", message, this.#session.errorLocation(error));
  }

  /** Warns that a module emitted an event that it cannot emit. */
  warnRefused({ module_id }: Emitter, event: string, reason: string): void {
    this.#warnOnce("event_reserved", module_id, event, `cannot emit "${event}": ${reason}`);
  }

  #warnIgnored({ module_id, name }: ChainHandler, event: string, answer: string): void {
    const fact = "handlers of this event only observe, nothing was changed";
    this.#warnOnce(
      "hook_answer_ignored",
      module_id ?? name,
      event,
      `answered ${event} with ${answer}: ${fact}`,
    );
  }

  /** Warns of what a module did at an event; not again of the same module and event. */
  #warnOnce(code: string, module_id: string, event: string, fact: string): void {
    const key = `${code} ${module_id} ${event}`;
    if (this.#warned?.has(key)) return;
    (this.#warned ??= new Set()).add(key);
    this.#session.host.warn(code, `Module "${module_id}" ${fact}`);
  }

  /** Adds the answers of the handlers to a collection. In a replay, the recorded answers. */
  async #collect(
    handlers: readonly ChainHandler[],
    event: string,
    data: JsonObject,
    { answers, timeout_s }: Collection,
  ): Promise<Emission> {
    const { host } = this.#session;
    if (host.recordedAnswers) {
      answers.push(...host.recordedAnswers(event, data));
      return noopEmission(data);
    }
    for (const handler of handlers) {
      try {
        const result = await withDeadline(
          Promise.resolve(handler.handler(event, toPlainObject(data))),
          Math.min(finite(timeout_s, 1) * 1000, this.#timeout_ms),
          host.clock,
          () => new Error(`no answer within ${timeout_s} s`),
        );
        const answer = (result as { data?: unknown } | null | undefined)?.data;
        if (answer !== null && answer !== undefined && !handler.observes) answers.push(toPlainObject(answer));
      } catch (error) {
        this.#warnFailed(handler, event, error);
      }
    }
    return noopEmission(data);
  }
}
