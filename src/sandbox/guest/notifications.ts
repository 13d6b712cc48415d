/** Applies the notifications of a guest to the session's coordinator, in order. */
import { errorMessage } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import type { Coordinator } from "../../sdk/types.ts";
import type { ObjectTable } from "./object_table.ts";
import type { Notification } from "../protocol.ts";
import { type CallBounds, functionProxy, handlerProxy } from "./guest_proxies.ts";

/** Most characters of a handler's name. */
const MAX_NAME = 128;
/** Most bytes of the data of a capability. */
const MAX_CAPABILITY_BYTES = 256 * 1024;

/** Options of {@link NotificationHandler}. */
export interface NotificationHandlerOptions {
  /** Name of the module in messages. */
  readonly name: string;
  readonly objects: ObjectTable;
  readonly bounds: CallBounds;
  /** Adds a warning to the run. */
  warn(code: string, message: string): void;
}

/** Applies the notifications of one module. */
export class NotificationHandler {
  readonly #options: NotificationHandlerOptions;

  constructor(options: NotificationHandlerOptions) {
    this.#options = options;
  }

  /** Applies one notification. @throws {TypeError} if it is malformed: a protocol violation. */
  apply(notification: Notification, coordinator: Coordinator): void {
    if (!isObject(notification)) throw new TypeError("a notification must be an object");
    const { objects: bindings } = this.#options;
    switch (notification.e) {
      case "register":
        return this.#register(notification, coordinator);
      case "dispose":
        return bindings.undo(notification.ref);
      case "unregister":
        return coordinator.hooks.unregister(String(notification.name));
      case "default_fields":
        return coordinator.hooks.setDefaultFields(isObject(notification.fields) ? notification.fields : {});
      case "cleanup": {
        const key = bindings.nextKey("cleanup");
        const cleanup = this.#function(key, notification.ref);
        return bindings.once(key, () => coordinator.registerCleanup(() => cleanup()));
      }
      case "capability":
        return this.#publish(notification, coordinator);
      case "contributor":
        return this.#contribute(notification, coordinator);
      case "state":
      case "deleted":
        return this.#setState(notification, coordinator);
      case "cancel":
        return coordinator.requestCancel(notification.immediate === true);
      case "reset_turn":
        return coordinator.resetTurn();
      case "system_prompt": {
        const factory = notification.ref === null ? null : this.#function("system_prompt", notification.ref);
        coordinator.context?.setSystemPromptFactory?.(factory && (async () => String(await factory())));
        return;
      }
      default:
        throw new TypeError("unknown notification");
    }
  }

  #function(key: string, ref: unknown): (...args: unknown[]) => Promise<unknown> {
    return functionProxy(this.#options.objects.bind(key, ref), this.#options.bounds);
  }

  #register({ ref, event, options }: Extract<Notification, { e: "register" }>, { hooks }: Coordinator): void {
    if (typeof event !== "string" || event === "" || !isObject(options)) {
      throw new TypeError("a handler needs an event");
    }
    const { objects: bindings, bounds } = this.#options;
    const key = bindings.nextKey(`handler/${event}`);
    // the session waits for handlers: a guest may request a shorter timeout than the policy's, not a longer one or none (0)
    const requested_ms = typeof options.timeout_ms === "number" ? options.timeout_ms : 0;
    const timeout_ms = requested_ms > 0 ? Math.min(requested_ms, bounds.deadline_ms) : bounds.deadline_ms;
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

  /** Registers a capability. A restarted guest replaces its data; functions that other modules already hold keep working. */
  #publish(
    { name, value, refs }: Extract<Notification, { e: "capability" }>,
    coordinator: Coordinator,
  ): void {
    if (typeof name !== "string" || !isObject(refs)) throw new TypeError("a capability needs a name");
    if (value !== undefined && JSON.stringify(value).length > MAX_CAPABILITY_BYTES) {
      throw new TypeError(`a capability has at most ${MAX_CAPABILITY_BYTES} bytes`);
    }
    if (Object.keys(refs).length === 0) this.#options.objects.addData(`capability/${name}`);
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

  #setState(
    notification: Extract<Notification, { e: "state" | "deleted" }>,
    { session_state }: Coordinator,
  ): void {
    const key = String(notification.key);
    try {
      if (notification.e === "deleted") delete session_state[key];
      else session_state[key] = notification.value;
    } catch (error) {
      const { warn, name } = this.#options;
      warn("session_state_lost", `Module "${name}": ${errorMessage(error)}`); // the writes of two modules together may exceed the limit
    }
  }
}
