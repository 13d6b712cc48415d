/** Mounts proxies of a guest's objects, and converts the result of its `mount`. */
import { errorMessage } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { resolvePoint } from "../../sdk/mount_points.ts";
import type { Coordinator, ModuleType, MountReturn, Provider } from "../../sdk/types.ts";
import type { ObjectTable } from "./object_table.ts";
import { ContextRecorder } from "./context_restart.ts";
import { readShape } from "./guest_connection.ts";
import type { MountAnswer, Shape } from "../protocol.ts";
import {
  type CallBounds,
  contextProxy,
  functionProxy,
  type ObjectCall,
  objectProxy,
  orchestratorProxy,
  providerProxy,
  toolProxy,
} from "./guest_proxies.ts";

/** Most bytes of the shape of an object: its description and schema. */
export const MAX_SHAPE_BYTES = 128 * 1024;
const MAX_NAME = 128;

/** Mount point of the object that `mount` returns, by the type of the module. */
export const POINT: Readonly<Record<ModuleType, string>> = {
  orchestrator: "orchestrator",
  context: "context",
  provider: "providers",
  tool: "tools",
  hook: "hooks",
};

/** Options of {@link GuestMounts}. */
export interface GuestMountsOptions {
  /** Name of the module in messages. */
  readonly name: string;
  readonly type: ModuleType;
  readonly objects: ObjectTable;
  readonly bounds: CallBounds;
  /** Returns the module's coordinator. */
  coordinator(): Coordinator;
  /** Adds a warning to the run. */
  warn(code: string, message: string): void;
}

/** Mounts of one module. */
export class GuestMounts {
  readonly #options: GuestMountsOptions;
  /** Data of the objects by key; updated after `onSessionReady`. */
  readonly #data = new Map<string, JsonObject>();
  /** System prompt factories of the host that the guest may call, by the key of its context manager. */
  readonly #functions = new Map<string, () => unknown>();
  readonly #recorders = new Map<string, ContextRecorder>();

  constructor(options: GuestMountsOptions) {
    this.#options = options;
  }

  /**
   * Mounts a proxy for an object of the guest. Resolves to its name; null if the object is invalid.
   * @throws The error of the coordinator.
   */
  async mount(coordinator: Coordinator, point: string, mounted: JsonObject): Promise<string | null> {
    const { objects: bindings } = this.#options;
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
    if (bindings.isDone(place)) return key;
    bindings.once(place, () => {});
    await coordinator.mount(point, proxy, name);
    return key;
  }

  /** Converts the result of the guest's `mount` for the kernel. */
  returned(answered: MountAnswer): MountReturn {
    const { bounds, objects: bindings, type } = this.#options;
    switch (answered.kind) {
      case "function":
        return functionProxy(bindings.bind("returned", answered.ref), bounds);
      case "object": {
        const shape = readShape(answered.shape) ?? EMPTY;
        return objectProxy(shape, bindings.bind("returned", answered.ref), bounds);
      }
      case "instance": {
        const shape = readShape(answered.shape) ?? EMPTY;
        const instance = this.#proxy(POINT[type], "instance", answered.ref, shape);
        const rest = readShape(answered.rest_shape) ?? EMPTY;
        return { ...objectProxy(rest, bindings.bind("returned", answered.rest), bounds), ...instance };
      }
      case "other":
        return answered.value as MountReturn; // the kernel reports what is wrong
      default:
        return undefined;
    }
  }

  /** Updates the data of the guest's objects, by ref. */
  refresh(shapes: JsonObject): void {
    for (const [key, ref] of this.#options.objects.entries()) {
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

  /** Restores the conversation of the context managers of a restarted guest. */
  async restoreContexts(
    call: (key: string, ...call: Parameters<ObjectCall>) => Promise<unknown>,
  ): Promise<void> {
    const { objects: bindings } = this.#options;
    for (const [key, recorder] of this.#recorders) {
      if (bindings.refOf(key) !== undefined) await recorder.restore((...args) => call(key, ...args));
    }
  }

  #proxy(point: string, key: string, ref: unknown, shape: Shape): object {
    const { bounds, objects: bindings } = this.#options;
    const call = bindings.bind(key, ref);
    this.#data.set(key, shape.data);
    switch (point) {
      case "tools":
        return toolProxy(shape, call, bounds);
      case "providers":
        return providerProxy(shape, () => this.#data.get(key) ?? {}, call, bounds);
      case "context":
        return this.#context(shape, key, call);
      case "orchestrator":
        return orchestratorProxy(shape, call, () => this.#options.coordinator());
      default:
        return objectProxy(shape, call, bounds);
    }
  }

  #context(shape: Shape, key: string, call: ObjectCall): object {
    const { bounds, warn, name } = this.#options;
    const recorder = this.#recorders.get(key) ?? new ContextRecorder();
    this.#recorders.set(key, recorder);
    return contextProxy(shape, recorder.wrap(call), bounds, {
      pass: (fn) => {
        this.#functions.set(key, fn);
        return key;
      },
      nameOf: (provider) => this.#providerName(provider),
      warn: (error) => warn("system_prompt_lost", `Module "${name}": ${errorMessage(error)}`),
    });
  }

  #providerName(provider: Provider): string | undefined {
    const entries = Object.entries(this.#options.coordinator().providers);
    const found = entries.find(([, mounted]) => mounted === provider) ??
      entries.find(([, mounted]) => mounted.name === provider.name);
    return found?.[0];
  }
}

const EMPTY: Shape = { data: {}, methods: [] };

function slotOf(point: string, name: string | undefined): { point: string; many: boolean } | undefined {
  try {
    const { single, many } = resolvePoint(point, name);
    return single ? { point: single, many: false } : { point: many!, many: true };
  } catch {
    return undefined; // the coordinator reports what is wrong
  }
}

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
  throw new TypeError(
    `Cannot mount it: a name has at most ${MAX_NAME} characters and no control characters: received ${
      JSON.stringify(name.slice(0, 40))
    }`,
  );
}
