/** The mount points of a session: names, cardinality, aliases (behaviour.md §1.3). Holds guarded handles only. */
import { isObject } from "../../sdk/json.ts";
import type { ContextManager, Orchestrator, Provider, Tool } from "../../sdk/types.ts";

/** A canonical mount point that modules are put at. */
export type MountPoint = "orchestrator" | "context" | "providers" | "tools";

/** One thing that a module put at a mount point, before it is guarded. */
export interface Mounted {
  readonly point: MountPoint;
  /** Key at a many-slot; the point itself at a single slot. */
  readonly name: string;
  readonly module: object;
}

const MANY: ReadonlySet<string> = new Set(["providers", "tools"]);

const ALIASES: Readonly<Record<string, MountPoint>> = {
  orchestrator: "orchestrator",
  orchestrators: "orchestrator",
  context: "context",
  contexts: "context",
  providers: "providers",
  provider: "providers",
  tools: "tools",
  tool: "tools",
};

/** Returns true when the point holds many modules by name. */
export function isMany(point: MountPoint): boolean {
  return MANY.has(point);
}

/**
 * Returns where a `mount(point, module, name)` goes: aliases resolved, the name found.
 * @throws {TypeError} "Unknown mount point …" or "Name required for …" (behaviour.md §1.3).
 */
export function resolveMount(point: string, module: unknown, name?: string | { name?: string }): Mounted {
  const given = isObject(name) ? name.name : name;
  if (typeof module !== "object" && typeof module !== "function" || module === null) {
    throw new TypeError(
      `Cannot mount at "${point}": must be an object: received ${module === null ? "null" : typeof module}`,
    );
  }
  if (point === "session") {
    if (given === "orchestrator" || given === "context") return { point: given, name: given, module };
    throw new TypeError(
      `Cannot mount at "session": name must be "orchestrator" or "context": received ${
        JSON.stringify(given)
      }`,
    );
  }
  const canonical = resolvePoint(point);
  if (!isMany(canonical)) return { point: canonical, name: canonical, module };
  const own = (module as { name?: unknown }).name;
  const key = given ?? (typeof own === "string" && own ? own : undefined);
  if (key === undefined || key === "") throw new TypeError(`Name required for ${canonical}`);
  return { point: canonical, name: key, module };
}

/** Returns the canonical point of any spelling. @throws {TypeError} "Unknown mount point …". */
export function resolvePoint(point: string): MountPoint {
  const canonical = Object.hasOwn(ALIASES, point) ? ALIASES[point] : undefined;
  if (!canonical) {
    throw new TypeError(`Unknown mount point "${point}": must be orchestrator, context, providers or tools`);
  }
  return canonical;
}

/** What is mounted. The maps are live: a tool mounted in mid-turn is there for the next request. */
export class Mounts {
  orchestrator: Orchestrator | null = null;
  context: ContextManager | null = null;
  readonly tools = new LiveMap<Tool>();
  /** As modules see them. */
  readonly providers = new LiveMap<Provider>();
  /** As the orchestrator sees them: the same names, answers that are the turn's. */
  readonly loop_providers = new LiveMap<Provider>();

  /** Puts the two handles of a provider; returns what was there. */
  putProvider(name: string, loop: Provider, inner: Provider): Provider | undefined {
    this.loop_providers.put(name, loop);
    return this.providers.put(name, inner);
  }

  /** Returns the tool that is mounted under a name, or that models call by it. */
  toolNamed(name: string): Tool | undefined {
    const tool = this.tools.get(name);
    if (tool) return tool;
    for (const key of this.tools.names) {
      const other = this.tools.get(key)!; // it is mounted under that key
      if (other.name === name) return other;
    }
    return undefined;
  }

  /** Takes a provider away. */
  takeProvider(name: string): void {
    this.loop_providers.take(name);
    this.providers.take(name);
  }

  /** Empties every mount point. */
  clear(): void {
    this.orchestrator = this.context = null;
    for (const map of [this.tools, this.providers, this.loop_providers]) {
      for (const name of map.names) map.take(name);
    }
  }
}

/** Shared by all views: a session has three, and five closures for each were a thirtieth of what its run allocates. */
const READ_ONLY: ProxyHandler<object> = Object.freeze({
  set: () => false,
  defineProperty: () => false,
  deleteProperty: () => false,
  setPrototypeOf: () => false,
  preventExtensions: () => false,
});

/** A record by name that others may read and only its owner may change. */
export class LiveMap<T extends object> {
  readonly #items: Record<string, T> = Object.create(null);
  /** Read-only and live. */
  readonly view: Record<string, T> = new Proxy<Record<string, T>>(this.#items, READ_ONLY);

  /** Puts an item under a name; returns what was there. */
  put(name: string, item: T): T | undefined {
    const before = this.#items[name];
    this.#items[name] = item;
    return before;
  }

  /** Takes an item away; returns it. */
  take(name: string): T | undefined {
    const before = this.#items[name];
    delete this.#items[name];
    return before;
  }

  get(name: string): T | undefined {
    return this.#items[name];
  }

  get names(): string[] {
    return Object.keys(this.#items);
  }
}
