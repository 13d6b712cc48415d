/** What a guest mounts: stand-ins for its objects at the session's mount points, and for what its `mount` returned. */
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

/** Bytes of what one object says of itself: its description and schema. */
export const MAX_SHAPE_BYTES = 128 * 1024;
const MAX_NAME = 128;

/** Where what `mount` returns is mounted, by the type of the module. */
export const POINT: Readonly<Record<ModuleType, string>> = {
  orchestrator: "orchestrator",
  context: "context",
  provider: "providers",
  tool: "tools",
  hook: "hooks",
};

/** What the mounts of a guest are made with. */
export interface GuestMountsOptions {
  /** What messages call the module. */
  readonly name: string;
  readonly type: ModuleType;
  readonly objects: ObjectTable;
  readonly bounds: CallBounds;
  /** The module's own coordinator. */
  coordinator(): Coordinator;
  /** Told what has no event of its own. */
  warn(code: string, message: string): void;
}

/** The mounts of one module. */
export class GuestMounts {
  readonly #options: GuestMountsOptions;
  /** What an object says of itself, by key: told anew after `onSessionReady`. */
  readonly #data = new Map<string, JsonObject>();
  /** Functions of the host that the guest may call, by name. */
  readonly #functions = new Map<string, () => unknown>();
  readonly #recorders = new Map<string, ContextRecorder>();

  constructor(options: GuestMountsOptions) {
    this.#options = options;
  }

  /**
   * Mounts a stand-in for what the guest mounts. Resolves to the name it is mounted under; null where the point has none.
   * @throws What the coordinator says is wrong with it.
   */
  async mount(coordinator: Coordinator, point: string, given: JsonObject): Promise<string | null> {
    const { objects: bindings } = this.#options;
    const name = typeof given.name === "string" ? given.name : undefined;
    const shape = readShape(given.shape);
    if (!shape) {
      await coordinator.mount(point, given.value as object, name); // says what is wrong with it
      return null;
    }
    checkShape(shape);
    const slot = slotOf(point, name);
    const key = slot?.many ? name ?? String(shape.data.name ?? "") : slot?.point ?? point;
    checkName(key);
    const place = `mount/${slot?.point ?? point}/${key}`;
    const standIn = this.#proxy(slot?.point ?? point, place, given.ref, shape);
    if (bindings.isDone(place)) return key;
    bindings.once(place, () => {});
    await coordinator.mount(point, standIn, name);
    return key;
  }

  /** Returns what `mount` of the module returned, for the kernel to read. */
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
        return answered.value as MountReturn; // the kernel says what is wrong with it
      default:
        return undefined;
    }
  }

  /** Takes what the guest's objects say of themselves now, by number. */
  refresh(shapes: JsonObject): void {
    for (const [key, ref] of this.#options.objects.entries()) {
      const shape = this.#data.has(key) ? readShape(shapes[ref]) : undefined;
      if (shape) this.#data.set(key, shape.data);
    }
  }

  /** Calls a function that the guest was given. */
  async callFunction(name: string): Promise<unknown> {
    const fn = this.#functions.get(name);
    if (!fn) throw new TypeError(`Cannot call function "${name}": there is none`);
    return await fn();
  }

  /** Tells a guest that was started again what the one before was told: a context manager, its conversation. */
  async restoreContexts(
    call: (key: string, ...call: Parameters<ObjectCall>) => Promise<unknown>,
  ): Promise<void> {
    const { objects: bindings } = this.#options;
    for (const [key, memory] of this.#recorders) {
      if (bindings.refOf(key) !== undefined) await memory.restore((...given) => call(key, ...given));
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
    const memory = this.#recorders.get(key) ?? new ContextRecorder();
    this.#recorders.set(key, memory);
    return contextProxy(shape, memory.wrap(call), bounds, {
      pass: (fn) => this.#publishFunction(fn),
      nameOf: (provider) => this.#providerName(provider),
      warn: (error) => warn("system_prompt_lost", `Module "${name}": ${errorMessage(error)}`),
    });
  }

  #publishFunction(fn: () => unknown): string {
    const name = String(this.#functions.size + 1);
    this.#functions.set(name, fn);
    return name;
  }

  #providerName(provider: Provider): string | undefined {
    const entries = Object.entries(this.#options.coordinator().providers);
    const found = entries.find(([, one]) => one === provider) ??
      entries.find(([, one]) => one.name === provider.name);
    return found?.[0];
  }
}

const EMPTY: Shape = { data: {}, methods: [] };

function slotOf(point: string, name: string | undefined): { point: string; many: boolean } | undefined {
  try {
    const { single, many } = resolvePoint(point, name);
    return single ? { point: single, many: false } : { point: many!, many: true };
  } catch {
    return undefined; // the coordinator says what is wrong with it
  }
}

function checkShape(shape: Shape): void {
  const bytes = JSON.stringify(shape).length;
  if (bytes <= MAX_SHAPE_BYTES) return;
  throw new RangeError(
    `Cannot mount it: description and schema may have ${MAX_SHAPE_BYTES} bytes: received ${bytes}`,
  );
}

/** Names are shown to people and models, and are keys. */
function checkName(name: string): void {
  // deno-lint-ignore no-control-regex -- control characters are what is refused
  if (name.length <= MAX_NAME && !/[\u0000-\u001f\u007f-\u009f]/.test(name)) return;
  throw new TypeError(
    `Cannot mount it: a name has at most ${MAX_NAME} characters and no control characters: received ${
      JSON.stringify(name.slice(0, 40))
    }`,
  );
}
