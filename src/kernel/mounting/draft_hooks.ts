/**
 * The hook registry that one module sees, and the draft of what the module mounts and registers before it is
 * committed.
 */
import { RUNTIME_EVENTS } from "../../sdk/events.ts";
import { checkRegistration, disposer } from "../../sdk/handler_list.ts";
import { noopEmission } from "../../sdk/hook_chain.ts";
import { EventNames } from "../../sdk/hooks.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { withSnakeCase } from "../../sdk/snake_case_aliases.ts";
import type { Cleanup, Disposer, Emission, HookHandler, HookOptions, HookRegistry } from "../../sdk/types.ts";
import type { Hooks } from "../hooks/hooks.ts";
import type { Mounted } from "./mounts.ts";

/** Everything that a module mounted and registered before it is committed. */
export interface Draft {
  mounted: Mounted[];
  handlers: {
    event: string;
    handler: HookHandler;
    options: HookOptions;
    dispose: (() => void) | null;
    removed: boolean;
  }[];
  cleanups: Cleanup[];
  effects: (() => void)[];
}

/**
 * The hook registry of one module. Registrations of a draft wait for its commit; all other calls are
 * forwarded.
 */
export class DraftHooks extends EventNames implements HookRegistry {
  readonly #hooks: Hooks;
  readonly #module_id: string;
  readonly #draft: () => Draft | null;
  readonly #onRefused: (event: string) => void;
  /** Name → disposers of the module's own handlers with that name. */
  #own: Map<string, Disposer[]> | null = null;

  /** @param onRefused Called for an event that only the runtime may emit. */
  constructor(
    hooks: Hooks,
    module_id: string,
    draft: () => Draft | null,
    onRefused: (event: string) => void,
  ) {
    super();
    this.#hooks = hooks;
    this.#module_id = module_id;
    this.#draft = draft;
    this.#onRefused = onRefused;
  }

  register(event: string, handler: HookHandler, options: number | HookOptions = {}, name?: string): Disposer {
    const dispose = this.#register(event, handler, options, name);
    const known = String(name ?? (typeof options === "object" ? options?.name : undefined) ?? handler.name);
    this.#own ??= new Map();
    const own = this.#own.get(known);
    if (own) own.push(dispose);
    else this.#own.set(known, [dispose]);
    return dispose;
  }

  /** @throws {PreampError} when the session has the maximum number of handlers. */
  #register(event: string, handler: HookHandler, options: number | HookOptions, name?: string): Disposer {
    const draft = this.#draft();
    this.#hooks.checkRoom(draft?.handlers.length ?? 0);
    if (!draft) return this.#hooks.register(event, handler, options, name, this.#module_id);
    checkRegistration(event, handler);
    const hook_options: HookOptions = typeof options === "number"
      ? { priority: options }
      : isObject(options)
      ? { ...options }
      : {};
    const entry: Draft["handlers"][number] = {
      event,
      handler,
      options: name === undefined ? hook_options : { ...hook_options, name },
      dispose: null,
      removed: false,
    };
    draft.handlers.push(entry);
    return disposer(() => {
      entry.removed = true;
      entry.dispose?.();
    });
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

  /** Removes only the module's own handlers, so that a module cannot remove a gate of another module. */
  unregister(name: string): void {
    for (const dispose of this.#own?.get(name) ?? []) dispose();
    this.#own?.delete(name);
  }

  emit(event: string, data?: JsonObject | null): Promise<Emission> {
    if (!RUNTIME_EVENTS.has(event)) return this.#hooks.emit(event, data);
    this.#onRefused(event);
    return Promise.resolve(noopEmission(data ?? {}));
  }

  emitAndCollect(event: string, data?: JsonObject | null, timeout_s?: number): Promise<JsonObject[]> {
    if (!RUNTIME_EVENTS.has(event)) return this.#hooks.emitAndCollect(event, data, timeout_s);
    this.#onRefused(event);
    return Promise.resolve([]);
  }

  setDefaultFields(fields: JsonObject): void {
    this.#hooks.setDefaultFields(fields);
  }

  listHandlers(event?: string): Record<string, string[]> {
    return this.#hooks.listHandlers(event);
  }
}

withSnakeCase(DraftHooks);
