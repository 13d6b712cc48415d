/**
 * Mounts proxies of a guest's objects, converts the result of its `mount`, and applies its notifications
 * to the session's coordinator.
 */
import { errorMessage } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { POINT } from "../../sdk/plan.ts";
import type { Coordinator, ModuleType, MountReturn } from "../../sdk/types.ts";
import {
  type GuestLimits,
  keyOf,
  type MountAnswer,
  type Notification,
  type Shape,
  slotOf,
} from "../protocol.ts";
import { readShape } from "./guest_connection.ts";
import {
  contextProxy,
  functionProxy,
  handlerProxy,
  type ObjectCall,
  objectProxy,
  orchestratorProxy,
  providerProxy,
  toolProxy,
} from "./guest_proxies.ts";
import type { ObjectTable } from "./object_table.ts";

/** Most bytes of the shape of an object: its description and schema. */
export const MAX_SHAPE_BYTES = 128 * 1024;
/** Most characters of a name. */
const MAX_NAME = 128;

/** A module in a guest, for what the guest mounts and registers. */
export interface GuestParts {
  /** Name of the module in messages. */
  readonly module: string;
  readonly type: ModuleType;
  readonly limits: GuestLimits;
  readonly objects: ObjectTable;
  /** Returns the module's coordinator. */
  coordinator(): Coordinator;
  /** Adds a warning to the run. */
  warn(code: string, message: string): void;
}

/** Mounts of one module. */
export class GuestMounts {
  readonly #parts: GuestParts;
  /** Data of the objects by key; updated after `onSessionReady`. */
  readonly #data = new Map<string, JsonObject>();
  /** System prompt factories of the host that the guest may call, by the key of its context manager. */
  readonly #functions = new Map<string, () => unknown>();

  constructor(parts: GuestParts) {
    this.#parts = parts;
  }

  /**
   * Mounts a proxy for an object of the guest. Resolves to its name; null if the object is invalid.
   * @throws The error of the coordinator.
   */
  async mount(coordinator: Coordinator, point: string, mounted: JsonObject): Promise<string | null> {
    const name = typeof mounted.name === "string" ? mounted.name : undefined;
    const shape = readShape(mounted.shape);
    if (!shape) {
      await coordinator.mount(point, mounted.value as object, name); // throws for an invalid object
      return null;
    }
    checkShape(shape);
    const slot = slotOf(point, name);
    const key = slot?.many ? name ?? String(shape.data.name ?? "") : slot?.point ?? point;
    checkName(key);
    const place = `mount/${slot?.point ?? point}/${key}`;
    const proxy = this.#proxy(slot?.point ?? point, place, mounted.ref, shape);
    await coordinator.mount(point, proxy, name);
    return key;
  }

  /** Converts the result of the guest's `mount` for the kernel. */
  returned(answer: MountAnswer): MountReturn {
    const { limits, objects, type } = this.#parts;
    switch (answer.kind) {
      case "function":
        return functionProxy(objects.bind("returned", answer.ref), limits);
      case "object":
        return objectProxy(
          readShape(answer.shape) ?? EMPTY,
          objects.bind("returned", answer.ref),
          limits,
        );
      case "instance": {
        const instance = this.#proxy(POINT[type], "instance", answer.ref, readShape(answer.shape) ?? EMPTY);
        const rest = readShape(answer.rest_shape) ?? EMPTY;
        return { ...objectProxy(rest, objects.bind("returned", answer.rest), limits), ...instance };
      }
      case "other":
        return answer.value as MountReturn; // the kernel reports what is wrong
      default:
        return undefined;
    }
  }

  /** Updates the data of the guest's objects, by ref. */
  refresh(shapes: JsonObject): void {
    for (const [key, ref] of this.#parts.objects.entries()) {
      const shape = ref !== null && this.#data.has(key) ? readShape(shapes[ref]) : undefined;
      if (shape) this.#data.set(key, shape.data);
    }
  }

  /** Calls a function that was published to the guest. */
  async callFunction(name: string): Promise<unknown> {
    const fn = this.#functions.get(name);
    if (!fn) throw new TypeError(`Cannot call function "${name}": it does not exist`);
    return await fn();
  }

  #proxy(point: string, key: string, ref: unknown, shape: Shape): object {
    const { limits, objects, coordinator } = this.#parts;
    const call = objects.bind(key, ref);
    this.#data.set(key, shape.data);
    switch (point) {
      case "tools":
        return toolProxy(shape, call, limits);
      case "providers":
        return providerProxy(shape, () => this.#data.get(key) ?? {}, call, limits);
      case "context":
        return this.#context(shape, key, call);
      case "orchestrator":
        return orchestratorProxy(shape, call, coordinator);
      default:
        return objectProxy(shape, call, limits);
    }
  }

  #context(shape: Shape, key: string, call: ObjectCall): object {
    const { limits, module, coordinator, warn } = this.#parts;
    return contextProxy(shape, call, limits, {
      pass: (fn) => {
        this.#functions.set(key, fn);
        return key;
      },
      nameOf: (provider) => keyOf(coordinator().providers, provider),
      warn: (error) => warn("system_prompt_lost", `Module "${module}": ${errorMessage(error)}`),
    });
  }
}

const EMPTY: Shape = { data: {}, methods: [] };

function checkShape(shape: Shape): void {
  const bytes = JSON.stringify(shape).length;
  if (bytes <= MAX_SHAPE_BYTES) return;
  throw new RangeError(
    `Cannot mount it: description and schema have ${bytes} bytes, at most ${MAX_SHAPE_BYTES} are allowed`,
  );
}

/** Checks a name: it is displayed to people and models, and used as a key. */
function checkName(name: string): void {
  // deno-lint-ignore no-control-regex -- control characters are what is refused
  if (name.length <= MAX_NAME && !/[\u0000-\u001f\u007f-\u009f]/.test(name)) return;
  const received = JSON.stringify(name.slice(0, 40));
  throw new TypeError(
    `Cannot mount it: a name has at most ${MAX_NAME} characters and no control characters: received ${received}`,
  );
}

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
      return coordinator.registerCleanup(() => cleanup());
    }
    case "capability":
      return publish(one, coordinator, guest);
    case "contributor": {
      const { channel, name, ref } = one;
      const contribute = callable(objects.nextKey(`contributor/${channel}/${name}`), ref);
      return coordinator.registerContributor(String(channel), String(name), () => contribute());
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
  // the session waits for handlers: a guest may request a shorter timeout than the policy's, not a longer one
  // or none (0)
  const longest_ms = limits.call_timeout_s * 1000;
  const timeout_ms = typeof requested_ms === "number" && requested_ms > 0
    ? Math.min(requested_ms, longest_ms)
    : longest_ms;
  const handler = handlerProxy(event, objects.bind(key, ref), timeout_ms);
  const dispose = hooks.register(event, handler, {
    timeout_ms,
    ...(typeof priority === "number" ? { priority } : {}),
    ...(typeof name === "string" ? { name: name.slice(0, MAX_NAME) } : {}),
    ...(typeof fail_closed === "boolean" ? { fail_closed } : {}),
  });
  objects.onUndo(key, dispose);
}

/** Registers a capability, in place of an earlier one with its name. */
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
  coordinator.registerCapability(name, itself ?? (isObject(value) ? { ...value, ...functions } : value));
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
