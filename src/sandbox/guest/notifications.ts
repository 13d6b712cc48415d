/** Does what a module did without waiting for an answer: to the real coordinator, with stand-ins, in the order it was done. */
import { errorMessage } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import type { Coordinator } from "../../sdk/types.ts";
import type { ObjectTable } from "./object_table.ts";
import type { Notification } from "../protocol.ts";
import { type CallBounds, functionProxy, handlerProxy } from "./guest_proxies.ts";

/** Characters of a handler's name. */
const MAX_NAME = 128;

/** What effects are done with. */
export interface NotificationHandlerOptions {
  /** What messages call the module. */
  readonly name: string;
  readonly objects: ObjectTable;
  readonly bounds: CallBounds;
  /** Told what has no event of its own. */
  warn(code: string, message: string): void;
}

/** The effects of one module. */
export class NotificationHandler {
  readonly #options: NotificationHandlerOptions;

  constructor(options: NotificationHandlerOptions) {
    this.#options = options;
  }

  /** Does one. @throws {TypeError} when it is none: a guest of ours does not send such. */
  apply(effect: Notification, coordinator: Coordinator): void {
    if (!isObject(effect)) throw new TypeError("an effect that is no object");
    const { objects: bindings } = this.#options;
    switch (effect.e) {
      case "register":
        return this.#register(effect, coordinator);
      case "dispose":
        return bindings.undo(effect.ref);
      case "unregister":
        return coordinator.hooks.unregister(String(effect.name));
      case "default_fields":
        return coordinator.hooks.setDefaultFields(isObject(effect.fields) ? effect.fields : {});
      case "cleanup": {
        const key = bindings.nextKey("cleanup");
        const cleanup = this.#function(key, effect.ref);
        return bindings.once(key, () => coordinator.registerCleanup(() => cleanup()));
      }
      case "capability":
        return this.#publish(effect, coordinator);
      case "contributor":
        return this.#contribute(effect, coordinator);
      case "state":
      case "deleted":
        return this.#setState(effect, coordinator);
      case "cancel":
        return coordinator.requestCancel(effect.immediate === true);
      case "reset_turn":
        return coordinator.resetTurn();
      case "system_prompt": {
        const factory = effect.ref === null ? null : this.#function("system_prompt", effect.ref);
        coordinator.context?.setSystemPromptFactory?.(factory && (async () => String(await factory())));
        return;
      }
      default:
        throw new TypeError("an unknown effect");
    }
  }

  #function(key: string, ref: unknown): (...args: unknown[]) => Promise<unknown> {
    return functionProxy(this.#options.objects.bind(key, ref), this.#options.bounds);
  }

  #register({ ref, event, options }: Extract<Notification, { e: "register" }>, { hooks }: Coordinator): void {
    if (typeof event !== "string" || event === "" || !isObject(options)) {
      throw new TypeError("a handler of nothing");
    }
    const { objects: bindings, bounds } = this.#options;
    const key = bindings.nextKey(`handler/${event}`);
    // everybody waits for a handler: a stranger may ask for less than the policy's time, not for more, nor for none (0)
    const asked_ms = typeof options.timeout_ms === "number" ? options.timeout_ms : 0;
    const timeout_ms = asked_ms > 0 ? Math.min(asked_ms, bounds.deadline_ms) : bounds.deadline_ms;
    const handler = handlerProxy(event, bindings.bind(key, ref), timeout_ms);
    const { priority, name, fail_closed } = options;
    bindings.once(key, () =>
      hooks.register(event, handler, {
        timeout_ms,
        ...(typeof priority === "number" ? { priority } : {}),
        ...(typeof name === "string" ? { name: name.slice(0, MAX_NAME) } : {}),
        ...(typeof fail_closed === "boolean" ? { fail_closed } : {}),
      }));
  }

  /** A guest that was started again publishes its data anew; what others hold of the functions of the old one still works. */
  #publish(
    { name, value, refs }: Extract<Notification, { e: "capability" }>,
    coordinator: Coordinator,
  ): void {
    if (typeof name !== "string" || !isObject(refs)) throw new TypeError("a capability without a name");
    const functions = Object.fromEntries(
      Object.entries(refs).map((
        [method, ref],
      ) => [method, this.#function(`capability/${name}/${method}`, ref)]),
    );
    const whole = functions[""] ?? (isObject(value) ? { ...value, ...functions } : value);
    if (whole !== functions[""]) return coordinator.registerCapability(name, whole);
    this.#options.objects.once(`capability/${name}`, () => coordinator.registerCapability(name, whole));
  }

  #contribute(
    { channel, name, ref }: Extract<Notification, { e: "contributor" }>,
    coordinator: Coordinator,
  ): void {
    const { objects: bindings } = this.#options;
    const key = bindings.nextKey(`contributor/${channel}/${name}`);
    const callback = this.#function(key, ref);
    bindings.once(
      key,
      () => coordinator.registerContributor(String(channel), String(name), () => callback()),
    );
  }

  #setState(effect: Extract<Notification, { e: "state" | "deleted" }>, { session_state }: Coordinator): void {
    const key = String(effect.key);
    try {
      if (effect.e === "deleted") delete session_state[key];
      else session_state[key] = effect.value;
    } catch (error) {
      const { warn, name } = this.#options;
      warn("session_state_lost", `Module "${name}": ${errorMessage(error)}`); // two modules at once may be too much
    }
  }
}
