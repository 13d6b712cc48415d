/**
 * The hook registry that one module sees, and the draft of what the module mounts and registers before it is
 * committed.
 */
import { CONTEXT_EVENTS, eventsWith, GATES, RUNTIME_EVENTS } from "../sdk/event_table.ts";
import { disposer, type HandlerRegistration, readRegistration } from "../sdk/handler_list.ts";
import { noopEmission } from "../sdk/hook_chain.ts";
import { HookRegistryBase } from "../sdk/hooks.ts";
import type { JsonObject } from "../sdk/json.ts";
import { withSnakeCase } from "../sdk/snake_case_aliases.ts";
import type { Cleanup, Disposer, Emission, HookHandler, HookOptions, HookRegistry } from "../sdk/types.ts";
import type { Emitter, Hooks } from "./hooks.ts";
import type { Mounted } from "./mounts.ts";

/** Events whose entry names the module that emitted it. */
const ATTRIBUTED = eventsWith("attributed");

interface DraftHandler extends HandlerRegistration {
  dispose: (() => void) | null;
}

/** Everything that a module mounted and registered before it is committed. */
export interface Draft {
  mounted: Mounted[];
  handlers: DraftHandler[];
  cleanups: Cleanup[];
  effects: (() => void)[];
}

/** The hook registry of one module. Registrations of a draft wait for its commit. */
export class ModuleHooks extends HookRegistryBase implements HookRegistry {
  readonly #hooks: Hooks;
  readonly #emitter: Emitter;
  readonly #draft: () => Draft | null;

  constructor(hooks: Hooks, emitter: Emitter, draft: () => Draft | null) {
    super();
    this.#hooks = hooks;
    this.#emitter = emitter;
    this.#draft = draft;
  }

  /** @throws {PreampError} when the session has the maximum number of handlers. */
  register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer {
    const registration = readRegistration(event, handler, options, name);
    const draft = this.#draft();
    this.#hooks.checkRoom(draft?.handlers.length ?? 0);
    if (!draft) return this.#hooks.handlers.add(registration, this.#emitter.module_id, this);
    const entry: DraftHandler = { ...registration, dispose: null };
    draft.handlers.push(entry);
    return disposer(() => {
      if (entry.dispose) entry.dispose();
      else draft.handlers = draft.handlers.filter((other) => other !== entry);
    });
  }

  /** Removes only the module's own handlers, so that a module cannot remove a gate of another module. */
  unregister(name: string): void {
    const draft = this.#draft();
    if (!draft) this.#hooks.handlers.remove(name, this);
    else {
      draft.handlers = draft.handlers.filter(({ handler, options }) =>
        (options.name ?? handler.name) !== name
      );
    }
  }

  /** A refused event is answered as if it had no handler; a refused gate denies. */
  emit(event: string, data?: JsonObject | null): Promise<Emission> {
    if (!this.#emitter.reserved.has(event)) {
      return this.#hooks.emit(event, this.#attributed(event, data), this.#emitter);
    }
    const reason = this.#refuse(event);
    const emission = noopEmission(data ?? {});
    return Promise.resolve(GATES.has(event) ? { ...emission, action: "deny", reason } : emission);
  }

  emitAndCollect(event: string, data?: JsonObject | null, timeout_s?: number): Promise<JsonObject[]> {
    if (!this.#emitter.reserved.has(event) && !GATES.has(event)) {
      return this.#hooks.emitAndCollect(event, this.#attributed(event, data), timeout_s, this.#emitter);
    }
    this.#refuse(event);
    return Promise.resolve([]);
  }

  /** Returns the data of an event, with the module's id where the entry names the module. */
  #attributed(event: string, data: JsonObject | null | undefined): JsonObject | null | undefined {
    const { reserved, module_id } = this.#emitter;
    return reserved !== RUNTIME_EVENTS && ATTRIBUTED.has(event) ? { ...data, module_id } : data;
  }

  /** Reports a refused event, once; returns the reason. */
  #refuse(event: string): string {
    const emitter = RUNTIME_EVENTS.has(event)
      ? "the runtime"
      : `the orchestrator${CONTEXT_EVENTS.has(event) ? " and the context manager" : ""}`;
    const reason = this.#emitter.reserved.has(event)
      ? `only ${emitter} may emit this event`
      : "emitAndCollect() does not decide a gate: use emit()";
    this.#hooks.warnRefused(this.#emitter, event, reason);
    return reason;
  }

  setDefaultFields(fields: JsonObject): void {
    this.#hooks.defaults = { ...fields };
  }

  /** Lists the handlers of the session, and those of the module that wait for its commit. */
  listHandlers(event?: string): Record<string, string[]> {
    const names = this.#hooks.handlers.names(event);
    for (const { event: own, handler, options } of this.#draft()?.handlers ?? []) {
      if (event === undefined || event === own) (names[own] ??= []).push(options.name ?? handler.name);
    }
    return names;
  }
}

withSnakeCase(ModuleHooks);
