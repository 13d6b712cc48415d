/**
 * The mount points of a session: their names and aliases, the guarded objects that are mounted there, and
 * their description as data, which is stored with a run so that a replay needs no modules.
 */
import { isObject, toPlainObject } from "../sdk/json.ts";
import { countChange, liveViewOf } from "../sdk/live_view.ts";
import { type ManySlot, methodOf, resolvePoint, type SingleSlot } from "../sdk/snake_case_aliases.ts";
import type { JsonObject, Orchestrator, Provider, ProviderInfo, Tool } from "../sdk/types.ts";
import type { ContextGuard } from "./guard_context.ts";
import type { ProviderGuard } from "./guard_provider.ts";

/** A canonical mount point. */
export type MountPoint = SingleSlot | ManySlot;

/** An object that a module mounted, before it is guarded. */
export interface Mounted {
  readonly point: MountPoint;
  /** Name at a point with many modules; else the point itself. */
  readonly name: string;
  readonly module: object;
}

/**
 * Resolves the arguments of `mount(point, module, name)`: the alias of the point, and the name.
 * @param which Names the object in the error for a missing name.
 * @throws {TypeError} "Unknown mount point …" or "Name required for …".
 */
export function resolveMount(
  point: string,
  module: unknown,
  name: string | { name?: string } | undefined,
  which: string,
): Mounted {
  const given_name = isObject(name) ? name.name : name;
  if (typeof module !== "object" && typeof module !== "function" || module === null) {
    throw new TypeError(
      `Cannot mount at "${point}": must be an object: received ${module === null ? "null" : typeof module}`,
    );
  }
  const { single, many } = resolvePoint(point, given_name);
  if (single) return { point: single, name: single, module };
  const own = (module as { name?: unknown }).name;
  const key = given_name ?? (typeof own === "string" && own ? own : undefined);
  if (key === undefined || key === "") {
    throw new TypeError(`Name required for ${many}: ${which} has none`);
  }
  return { point: many, name: key, module };
}

/** Mounted objects of a session. The maps are live: a tool mounted during a turn is in the next request. */
export class Mounts {
  orchestrator: Orchestrator | null = null;
  context: ContextGuard | null = null;
  /** Which of these two a provider, a tool or a hook mounted. */
  readonly foreign: SingleSlot[] = [];
  /** The context manager of the running turn: one that is mounted meanwhile serves later turns. */
  turn_context: ContextGuard | null = null;
  readonly tools = new LiveMap<Tool>();
  /** Provider handles for modules. */
  readonly providers = new LiveMap<Provider>();
  /** Provider handles for the orchestrator, under the same names. */
  readonly loop_providers = new LiveMap<Provider>();

  /** Sets the two handles of a provider; returns the replaced one. */
  putProvider(name: string, { loop_handle, handle }: ProviderGuard): Provider | undefined {
    this.loop_providers.put(name, loop_handle);
    return this.providers.put(name, handle);
  }

  /** Returns the tool that is mounted under a name, or that models call by this name. */
  toolNamed(name: string): Tool | undefined {
    return this.tools.get(name) ?? this.tools.entries.find(([, tool]) => tool.name === name)?.[1];
  }

  removeProvider(name: string): void {
    this.loop_providers.remove(name);
    this.providers.remove(name);
  }
}

/** A record by name with a read-only view. */
export class LiveMap<T extends object> {
  readonly #items: Record<string, T> = Object.create(null);
  #view: Record<string, T> | null = null;

  get view(): Record<string, T> {
    return this.#view ??= liveViewOf(this.#items);
  }

  /** Sets an item; returns the replaced one. */
  put(name: string, item: T): T | undefined {
    const before = this.#items[name];
    this.#items[name] = item;
    if (this.#view) countChange(this.#view);
    return before;
  }

  remove(name: string): void {
    delete this.#items[name];
    if (this.#view) countChange(this.#view);
  }

  get(name: string): T | undefined {
    return this.#items[name];
  }

  get names(): string[] {
    return Object.keys(this.#items);
  }

  get entries(): [string, T][] {
    return Object.entries(this.#items);
  }
}

/** Description of a mounted tool. */
export interface ToolDescriptor
  extends Required<Omit<Tool, "native_specs" | "checkInput" | "preview" | "execute">> {
  /** Name that the tool is mounted under. */
  key: string;
  native_specs?: JsonObject;
}

/** Description of a mounted provider. */
export interface ProviderDescriptor {
  name: string;
  priority: number;
  info: ProviderInfo;
  /** Result of `getModelInfo`, for providers that have it. */
  model_info?: JsonObject;
}

/** Tools and providers, in mount order. */
export interface MountedDescriptors {
  tools: ToolDescriptor[];
  providers: ProviderDescriptor[];
  /** Which of orchestrator and context manager a provider, a tool or a hook mounted; absent: none. */
  foreign?: SingleSlot[];
}

export function describeMounted(mounts: Mounts): MountedDescriptors {
  const tools = mounts.tools.entries.map(([key, tool]) => {
    const { name, description, input_schema = {}, risk = "low" } = tool;
    return {
      key,
      name,
      description,
      input_schema,
      risk,
      requires_approval: tool.requires_approval === true,
      idempotent: tool.idempotent === true,
      ...(tool.native_specs ? { native_specs: { ...tool.native_specs } } : {}),
    };
  });
  const providers = mounts.providers.entries.map(([name, provider]) => {
    const modelInfo = methodOf(provider, "getModelInfo");
    const descriptor: ProviderDescriptor = {
      name,
      priority: provider.priority ?? 100,
      info: provider.getInfo(),
    };
    try {
      if (modelInfo) descriptor.model_info = toPlainObject(modelInfo());
    } catch {
      // as a provider without getModelInfo
    }
    return descriptor;
  });
  return withForeign({ tools, providers }, mounts);
}

/** Returns a description that names what was and what is {@link MountedDescriptors.foreign}. */
export function withForeign(described: MountedDescriptors, { foreign }: Mounts): MountedDescriptors {
  const known = described.foreign ?? [];
  return foreign.every((point) => known.includes(point))
    ? described
    : { ...described, foreign: [...new Set([...known, ...foreign])] };
}
