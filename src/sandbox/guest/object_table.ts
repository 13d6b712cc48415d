/**
 * Where the objects of a guest stand, and what was done for it: by keys that say what an object is for, so that a guest that is
 * started again finds the places of the one before. Knows neither guests nor sessions.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { ObjectCall } from "./guest_proxies.ts";

/** Things that one module may mount, register or publish at a time. */
const MAX_OBJECTS = 256;

/** What undoes something; absent where nothing does. */
type Undo = (() => void) | void;

/** The objects of one module. */
export class ObjectTable {
  readonly #call: (key: string, ...call: Parameters<ObjectCall>) => Promise<unknown>;
  /** Key → number in the guest that runs now. */
  readonly #refs = new Map<string, number>();
  readonly #done = new Map<string, Undo>();
  readonly #counts = new Map<string, number>();
  #restarting = false;

  /** @param call Calls the object that stands at a key at the time. */
  constructor(call: (key: string, ...call: Parameters<ObjectCall>) => Promise<unknown>) {
    this.#call = call;
  }

  /** A new guest is about to do what the one before did. */
  beginRestart(): void {
    this.#refs.clear();
    this.#counts.clear();
    this.#restarting = true;
  }

  /** It has done it: what it does from here on is new. */
  endRestart(): void {
    this.#restarting = false;
  }

  /** Says where an object of the guest stands; returns how it is called. @throws {TypeError} when it is none; {PreampError} when there are too many. */
  bind(key: string, ref: unknown): ObjectCall {
    if (!Number.isSafeInteger(ref)) throw new TypeError("an object without a number");
    if (this.#refs.size >= MAX_OBJECTS && !this.#refs.has(key)) {
      throw new PreampError(
        "module_invalid",
        `it registered or mounted more than ${MAX_OBJECTS} things: handlers, tools, functions`,
      );
    }
    this.#refs.set(key, ref as number); // a whole number
    return (...call) => {
      const answer = this.#call(key, ...call);
      answer.catch(() => {}); // a caller that does not wait for a guest must not fall with it
      return answer;
    };
  }

  /** Returns an object's number in the guest that runs now; undefined when it has none there. */
  refOf(key: string): number | undefined {
    return this.#refs.get(key);
  }

  /** Keys and numbers of all objects. */
  entries(): Iterable<[key: string, ref: number]> {
    return this.#refs;
  }

  /** Whether this was done for the guest before this one, and still holds. */
  isDone(key: string): boolean {
    return this.#restarting && this.#done.has(key);
  }

  /** Does it, unless it {@link isDone}. */
  once(key: string, act: () => Undo): void {
    if (this.isDone(key)) return;
    this.#done.set(key, act());
  }

  /** Undoes what was done with an object. */
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

  /** Returns the same keys for the same acts in the same order. */
  nextKey(kind: string): string {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    return `${kind}#${count}`;
  }
}
