/** `session_state` of a guest: reads use the latest session data, writes are notifications. */
import { type JsonObject, toPlain } from "../../sdk/json.ts";
import { Object, Proxy, toText } from "../../sdk/primordials.ts";
import type { GuestRpc } from "./rpc.ts";

/** Most bytes of a session's state as JSON. Checked here too, so that the assignment itself throws. */
const MAX_BYTES = 65_536;

/** State of one guest. */
export class StateProxy {
  /** The module's object; an assignment of a top-level key is sent to the host. */
  readonly view: JsonObject;
  readonly #rpc: GuestRpc;
  readonly #values: JsonObject = Object.create(null);

  constructor(rpc: GuestRpc) {
    this.#rpc = rpc;
    this.view = new Proxy(this.#values, {
      set: (_, key, value) => typeof key === "string" && this.#assign(key, value),
      defineProperty: (_, key, descriptor) =>
        typeof key === "string" && "value" in descriptor && this.#assign(key, descriptor.value),
      preventExtensions: () => false,
      deleteProperty: (_, key) => typeof key === "string" && this.#assign(key, undefined),
    });
  }

  /** Replaces the state by the host's. */
  update(state: JsonObject): void {
    for (const key in this.#values) delete this.#values[key]; // no prototype
    Object.assign(this.#values, state);
  }

  #assign(key: string, value: unknown): boolean {
    if (key === "__proto__") throw new TypeError("Cannot set session_state.__proto__: choose another key");
    if (value === undefined) {
      this.#rpc.notify({ e: "deleted", key }, "session_state");
      delete this.#values[key];
      return true;
    }
    const plain = toPlain(value);
    const bytes = toText({ ...this.#values, [key]: plain }).length;
    if (bytes > MAX_BYTES) {
      throw new RangeError(
        `Cannot set session_state.${key}: a session keeps at most ${MAX_BYTES} bytes: received ${bytes}`,
      );
    }
    this.#rpc.notify({ e: "state", key, value: plain }, "session_state");
    this.#values[key] = plain;
    return true;
  }
}
