/** `session_state` as a guest holds it: read from the last snapshot, written here and told with the next message. */
import { type JsonObject, toPlain } from "../../sdk/json.ts";
import { Object, Proxy, toText } from "../../sdk/primordials.ts";
import type { GuestRpc } from "./rpc.ts";

/** Bytes of JSON that the state of a session may have (trust.md, Limits): said here too, so that an assignment throws at once. */
const MAX_BYTES = 65_536;

/** The state of one guest. */
export class StateProxy {
  /** What the module sees; assigning a top-level key tells the host. */
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

  /** Takes the state as the host has it. */
  update(state: JsonObject): void {
    for (const key in this.#values) delete this.#values[key]; // it has no prototype
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
