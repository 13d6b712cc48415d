/** `coordinator.session_state`: data that modules keep between runs, and which of its keys were assigned. */
import { type JsonObject, toPlain } from "../sdk/json.ts";

/** Begin of the keys that a session shares with its sub-agents. */
const SHARED = "shared:";

function sharedOf(state: JsonObject): [string, JsonObject[string]][] {
  return Object.entries(state).filter(([key]) => key.startsWith(SHARED));
}

/** Returns the state of a sub-agent with the shared keys of its parent's that it lacks. */
export function withShared(state: JsonObject, parent: JsonObject): JsonObject {
  return { ...Object.fromEntries(sharedOf(parent)), ...state };
}

/**
 * The state of one session, and the proxy handler of its view. Modules receive `view`; assigning a top-level
 * key marks the key as changed.
 */
export class SessionState implements ProxyHandler<JsonObject> {
  readonly #values: JsonObject = Object.create(null);
  /** Key → bytes; null while no key was assigned. */
  #sizes: Map<string, number> | null = null;
  /** Keys assigned since {@link takeChanges}; null: none. */
  #dirty: Set<string> | null = null;
  #view: JsonObject | null = null;
  #max_bytes = Number.MAX_SAFE_INTEGER;
  #bytes = 2;

  /**
   * Starts with the saved state, even if it is larger than the limit.
   * @param max_bytes Maximum bytes of the state as JSON.
   */
  constructor(saved: JsonObject, max_bytes: number) {
    for (const [key, value] of Object.entries(saved)) this.#assign(key, value);
    this.#dirty = null;
    this.#max_bytes = max_bytes;
  }

  /** The object that modules receive. Assigned values are copied: later changes inside have no effect. */
  get view(): JsonObject {
    return this.#view ??= new Proxy(this.#values, this);
  }

  #assign(key: string, value: unknown): boolean {
    if (key === "__proto__") throw new TypeError("Cannot set session_state.__proto__: choose another key");
    const plain = value === undefined ? undefined : toPlain(value);
    const size = plain === undefined ? 0 : JSON.stringify(key).length + JSON.stringify(plain).length + 2;
    const total = this.#bytes - (this.#sizes?.get(key) ?? 0) + size;
    if (total > this.#max_bytes && total > this.#bytes) {
      throw new RangeError(
        `Cannot set session_state.${key}: a session keeps at most ${this.#max_bytes} bytes: received ${total}`,
      );
    }
    this.#bytes = total;
    (this.#sizes ??= new Map()).set(key, size);
    if (plain === undefined) delete this.#values[key];
    else this.#values[key] = plain;
    (this.#dirty ??= new Set()).add(key);
    return true;
  }

  /**
   * Returns the keys assigned since the last call with their values (null for a deleted key), or null when no
   * key was assigned.
   */
  takeChanges(): JsonObject | null {
    if (this.#dirty === null) return null;
    const changes: JsonObject = {};
    for (const key of this.#dirty) changes[key] = toPlain(this.#values[key] ?? null);
    this.#dirty = null;
    return changes;
  }

  /** Assigns the shared keys of a sub-agent's state that this one lacks, as far as there is room. */
  addShared(state: JsonObject): void {
    try {
      for (const [key, value] of sharedOf(state)) {
        if (!Object.hasOwn(this.#values, key)) this.#assign(key, value);
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error; // the state is full
    }
  }

  /** Returns a copy of the whole state. */
  snapshot(): JsonObject {
    return toPlain(this.#values) as JsonObject;
  }

  set(_: JsonObject, key: string | symbol, value: unknown): boolean {
    return typeof key === "string" && this.#assign(key, value);
  }

  defineProperty(_: JsonObject, key: string | symbol, descriptor: PropertyDescriptor): boolean {
    return typeof key === "string" && "value" in descriptor && this.#assign(key, descriptor.value);
  }

  preventExtensions(): boolean {
    return false;
  }

  deleteProperty(_: JsonObject, key: string | symbol): boolean {
    return typeof key === "string" && this.#assign(key, undefined);
  }
}
