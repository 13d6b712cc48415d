/** Hook registry of a guest: handlers stay in the guest, events are sent to the host. */
import { isObject, type JsonObject, toPlain, toPlainObject } from "../../sdk/json.ts";
import { disposer, readRegistration } from "../../sdk/handler_registration.ts";
import { HookRegistryBase } from "../../sdk/hooks.ts";
import { Object, WeakMap } from "../../sdk/primordials.ts";
import { withSnakeCase } from "../../sdk/snake_case_aliases.ts";
import type { Disposer, Emission, HookHandler, HookOptions, HookRegistry } from "../../sdk/types.ts";
import type { NumberedEmission } from "../guest/emission_table.ts";
import type { GuestObjects } from "./exported_objects.ts";
import type { GuestRpc } from "./rpc.ts";

/** Hook registry of one guest. */
export class HooksProxy extends HookRegistryBase implements HookRegistry {
  readonly #rpc: GuestRpc;
  readonly #objects: GuestObjects;
  readonly #handlers: () => Readonly<Record<string, string[]>>;
  /** Numbers of emissions in the host. */
  readonly #numbers = new WeakMap<object, number>();

  constructor(
    rpc: GuestRpc,
    objects: GuestObjects,
    handlers: () => Readonly<Record<string, string[]>>,
  ) {
    super();
    this.#rpc = rpc;
    this.#objects = objects;
    this.#handlers = handlers;
  }

  register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer {
    const { options: settings } = readRegistration(event, handler, options, name);
    const plain = toPlainObject(settings);
    const label = plain.name ?? (handler.name || undefined);
    // a separate function for each registration, so that disposing of one leaves the others
    const ref = this.#objects.add((name: string, data: JsonObject) => handler(name, data));
    const named = typeof label === "string" ? { ...plain, name: label } : plain;
    this.#rpc.notify({ e: "register", ref, event, options: named }, "hooks.register");
    return disposer(() => this.#rpc.notify({ e: "dispose", ref }, "a disposer"));
  }

  unregister(name: string): void {
    this.#rpc.notify({ e: "unregister", name: String(name) }, "hooks.unregister");
  }

  async emit(event: string, data: JsonObject | null = null): Promise<Emission> {
    const answer = await this.#rpc.request("hooks", "emit", [event, toPlain(data)]);
    const { number, emission } = answer as NumberedEmission; // from the host
    this.#numbers.set(emission, number);
    return emission;
  }

  /** Returns the number of an emission in the host; null if the host did not emit it. */
  numberOf(emission: unknown): number | null {
    return isObject(emission) ? this.#numbers.get(emission) ?? null : null;
  }

  async emitAndCollect(
    event: string,
    data: JsonObject | null = null,
    timeout_s?: number,
  ): Promise<JsonObject[]> {
    return await this.#rpc.request("hooks", "emitAndCollect", [
      event,
      toPlain(data),
      timeout_s,
    ]) as JsonObject[];
  }

  setDefaultFields(fields: JsonObject): void {
    this.#rpc.notify({ e: "default_fields", fields: toPlainObject(fields) }, "hooks.setDefaultFields");
  }

  listHandlers(event?: string): Record<string, string[]> {
    const all = this.#handlers();
    if (event === undefined) return { ...all };
    return { [event]: [...Object.hasOwn(all, event) ? all[event] ?? [] : []] };
  }
}

withSnakeCase(HooksProxy);
