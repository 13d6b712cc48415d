/** Table of a guest's objects by key, within a number. Knows neither guests nor sessions. */
import { PreampError } from "../../sdk/errors.ts";
import type { ObjectCall } from "./guest_proxies.ts";

/** Most objects that one module may mount, register or publish at a time. */
const MAX_OBJECTS = 256;
/** Most actions of one module, also of those that it undid: the session remembers their names. */
const MAX_ACTIONS = 10_000;
/** Most characters of a key, which contains names of the guest. */
const MAX_KEY = 512;

/** Calls an object by its ref. */
type RefCall = (ref: number, ...call: Parameters<ObjectCall>) => Promise<unknown>;

/** Objects of one module. */
export class ObjectTable {
  readonly #call: RefCall;
  /** Refs by key; null for data. */
  readonly #refs = new Map<string, number | null>();
  /** Functions that undo a registration, by its key. */
  readonly #undo = new Map<string, () => void>();
  #actions = 0;

  constructor(call: RefCall) {
    this.#call = call;
  }

  /**
   * Binds an object of the guest to a key, in place of an earlier one, and returns a function that calls it.
   * @throws {TypeError} if `ref` is not an integer, or the key is too long.
   * @throws {PreampError} `module_invalid` if there are too many objects.
   */
  bind(key: string, ref: unknown): ObjectCall {
    if (!Number.isSafeInteger(ref)) throw new TypeError("ref must be an integer");
    this.#add(key, ref as number); // an integer
    return (...call) => {
      const answer = this.#call(ref as number, ...call);
      answer.catch(() => {}); // handled here for callers that do not await it
      return answer;
    };
  }

  /** Counts data of the guest as an object. Throws as {@link bind}. */
  addData(key: string): void {
    this.#add(key, null);
  }

  #add(key: string, ref: number | null): void {
    if (key.length > MAX_KEY) throw new TypeError("a name is too long");
    if (this.#refs.size >= MAX_OBJECTS && !this.#refs.has(key)) {
      throw tooMany(`${MAX_OBJECTS} objects (handlers, tools, functions)`);
    }
    this.#refs.set(key, ref);
  }

  /** Returns keys and refs of all objects; the ref of data is null. */
  entries(): Iterable<[key: string, ref: number | null]> {
    return this.#refs;
  }

  /** Sets the function that undoes the registration of a key. */
  onUndo(key: string, undo: () => void): void {
    this.#undo.set(key, undo);
  }

  /** Undoes the registration of an object. */
  undo(ref: unknown): void {
    for (const [key, undo] of this.#undo) {
      if (this.#refs.get(key) !== ref) continue;
      undo();
      this.#undo.delete(key);
      this.#refs.delete(key);
      return;
    }
  }

  /**
   * Returns a key that is not used yet.
   * @throws As {@link bind}; if there were too many actions.
   */
  nextKey(kind: string): string {
    if (kind.length > MAX_KEY) throw new TypeError("a name is too long");
    if (++this.#actions > MAX_ACTIONS) throw tooMany(`${MAX_ACTIONS} handlers and functions in all`);
    return `${kind}#${this.#actions}`;
  }
}

function tooMany(fact: string): PreampError {
  return new PreampError("module_invalid", `it registered or mounted more than ${fact}`);
}
