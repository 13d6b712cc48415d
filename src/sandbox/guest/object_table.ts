/**
 * Table of a guest's objects and of the actions that were done for it. Keys describe the purpose of an
 * object, so that the objects of a restarted guest replace those of the previous one. Knows neither guests
 * nor sessions.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { ObjectCall } from "./guest_proxies.ts";

/** Most objects that one module may mount, register or publish at a time. */
const MAX_OBJECTS = 256;
/** Most actions of one module, also of those that it undid: the session remembers their names. */
const MAX_ACTIONS = 10_000;
/** Most characters of a key, which contains names of the guest. */
const MAX_KEY = 512;

/** Function that undoes an action, if the action can be undone. */
type Undo = (() => void) | void;

/** Calls the current object of a key. */
export type KeyedCall = (key: string, ...call: Parameters<ObjectCall>) => Promise<unknown>;

/** Objects of one module. */
export class ObjectTable {
  readonly #call: KeyedCall;
  /** Maps keys to refs in the running guest. */
  readonly #refs = new Map<string, number | null>();
  readonly #done = new Map<string, Undo>();
  readonly #counts = new Map<string, number>();
  #actions = 0;
  #restarting = false;

  constructor(call: KeyedCall) {
    this.#call = call;
  }

  /** Starts a restart: the new guest repeats the actions of the previous one. */
  beginRestart(): void {
    this.#refs.clear();
    this.#counts.clear();
    this.#restarting = true;
  }

  /** Ends a restart: further actions are new. */
  endRestart(): void {
    this.#restarting = false;
  }

  /**
   * Binds an object of the guest to a key and returns a function that calls it.
   * @throws {TypeError} if `ref` is not an integer, or the key is too long.
   * @throws {PreampError} `module_invalid` if there are too many objects.
   */
  bind(key: string, ref: unknown): ObjectCall {
    if (!Number.isSafeInteger(ref)) throw new TypeError("ref must be an integer");
    this.#add(key, ref as number); // an integer
    return (...call) => {
      const answer = this.#call(key, ...call);
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

  /** Returns an object's ref in the running guest; undefined if the guest has no such object. */
  refOf(key: string): number | undefined {
    return this.#refs.get(key) ?? undefined;
  }

  /** Returns keys and refs of all objects; the ref of data is null. */
  entries(): Iterable<[key: string, ref: number | null]> {
    return this.#refs;
  }

  /** Returns whether the action was done for the previous guest and is still in effect. */
  isDone(key: string): boolean {
    return this.#restarting && this.#done.has(key);
  }

  /** Does an action unless it {@link isDone}. */
  once(key: string, act: () => Undo): void {
    if (this.isDone(key)) return;
    this.#done.set(key, act());
  }

  /** Undoes the action of an object. */
  undo(ref: unknown): void {
    for (const [key, known] of this.#refs) {
      if (known !== ref) continue;
      const undo = this.#done.get(key);
      if (!undo) return;
      undo();
      this.#done.delete(key);
      this.#refs.delete(key);
      return;
    }
  }

  /**
   * Returns a key with a counter: the same actions in the same order have the same keys.
   * @throws As {@link bind}; if there were too many actions.
   */
  nextKey(kind: string): string {
    if (kind.length > MAX_KEY) throw new TypeError("a name is too long");
    if (++this.#actions > MAX_ACTIONS) throw tooMany(`${MAX_ACTIONS} handlers and functions in all`);
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    return `${kind}#${count}`;
  }
}

function tooMany(fact: string): PreampError {
  return new PreampError("module_invalid", `it registered or mounted more than ${fact}`);
}
