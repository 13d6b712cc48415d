/** Applies the notifications of a guest to the session's coordinator. */
import { errorMessage } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import type { Coordinator } from "../../sdk/types.ts";
import type { Notification } from "../protocol.ts";
import type { GuestParts } from "./guest_mounts.ts";
import { functionProxy, handlerProxy } from "./guest_proxies.ts";

/** Most characters of a handler's name. */
const MAX_NAME = 128;
/** Most bytes of the data of a capability. */
const MAX_CAPABILITY_BYTES = 256 * 1024;

/**
 * Applies one notification.
 * @throws {TypeError} if it is malformed: a protocol violation.
 * @throws {PreampError} `module_invalid` if the guest has too many objects.
 */
export function applyNotification(one: Notification, coordinator: Coordinator, guest: GuestParts): void {
  if (!isObject(one)) throw new TypeError("a notification must be an object");
  const { objects } = guest;
  const callable = (key: string, ref: unknown) => functionProxy(objects.bind(key, ref), guest.limits);
  switch (one.e) {
    case "register":
      return register(one, coordinator, guest);
    case "dispose":
      return objects.undo(one.ref);
    case "unregister":
      return coordinator.hooks.unregister(String(one.name));
    case "default_fields":
      return coordinator.hooks.setDefaultFields(isObject(one.fields) ? one.fields : {});
    case "cleanup": {
      const key = objects.nextKey("cleanup");
      const cleanup = callable(key, one.ref);
      return objects.once(key, () => coordinator.registerCleanup(() => cleanup()));
    }
    case "capability":
      return publish(one, coordinator, guest);
    case "contributor": {
      const { channel, name, ref } = one;
      const key = objects.nextKey(`contributor/${channel}/${name}`);
      const contribute = callable(key, ref);
      return objects.once(
        key,
        () => coordinator.registerContributor(String(channel), String(name), () => contribute()),
      );
    }
    case "state":
    case "deleted":
      return setState(one, coordinator, guest);
    case "cancel":
      return coordinator.requestCancel(one.immediate === true);
    case "reset_turn":
      return coordinator.resetTurn();
    case "system_prompt": {
      const factory = one.ref === null ? null : callable("system_prompt", one.ref);
      coordinator.context?.setSystemPromptFactory?.(factory && (async () => String(await factory())));
      return;
    }
    default:
      throw new TypeError("unknown notification");
  }
}

function register(
  { ref, event, options }: Extract<Notification, { e: "register" }>,
  { hooks }: Coordinator,
  { objects, limits }: GuestParts,
): void {
  if (typeof event !== "string" || event === "" || !isObject(options)) {
    throw new TypeError("a handler needs an event");
  }
  const key = objects.nextKey(`handler/${event}`);
  const { priority, name, fail_closed, timeout_ms: requested_ms } = options;
  // the session waits for handlers: a guest may request a shorter timeout than the policy's, not a longer one or none (0)
  const longest_ms = limits.call_timeout_s * 1000;
  const timeout_ms = typeof requested_ms === "number" && requested_ms > 0
    ? Math.min(requested_ms, longest_ms)
    : longest_ms;
  const handler = handlerProxy(event, objects.bind(key, ref), timeout_ms);
  objects.once(key, () =>
    hooks.register(event, handler, {
      timeout_ms,
      ...(typeof priority === "number" ? { priority } : {}),
      ...(typeof name === "string" ? { name: name.slice(0, MAX_NAME) } : {}),
      ...(typeof fail_closed === "boolean" ? { fail_closed } : {}),
    }));
}

/** Registers a capability. A restarted guest replaces its data; functions that other modules already hold keep working. */
function publish(
  { name, value, refs }: Extract<Notification, { e: "capability" }>,
  coordinator: Coordinator,
  { objects, limits }: GuestParts,
): void {
  if (typeof name !== "string" || !isObject(refs)) throw new TypeError("a capability needs a name");
  if (value !== undefined && JSON.stringify(value).length > MAX_CAPABILITY_BYTES) {
    throw new TypeError(`a capability has at most ${MAX_CAPABILITY_BYTES} bytes`);
  }
  const key = `capability/${name}`;
  const functions = Object.fromEntries(
    Object.entries(refs).map(([method, ref]) => [
      method,
      functionProxy(objects.bind(`${key}/${method}`, ref), limits),
    ]),
  );
  if (Object.keys(refs).length === 0) objects.addData(key);
  const { "": itself } = functions;
  if (itself) return objects.once(key, () => coordinator.registerCapability(name, itself));
  coordinator.registerCapability(name, isObject(value) ? { ...value, ...functions } : value);
}

function setState(
  notification: Extract<Notification, { e: "state" | "deleted" }>,
  { session_state }: Coordinator,
  { module, warn }: GuestParts,
): void {
  const key = String(notification.key);
  try {
    if (notification.e === "deleted") delete session_state[key];
    else session_state[key] = notification.value;
  } catch (error) {
    // the writes of two modules together may exceed the limit
    warn("session_state_lost", `Module "${module}": ${errorMessage(error)}`);
  }
}
