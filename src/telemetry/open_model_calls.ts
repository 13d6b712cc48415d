/** Open model calls of a run: their entries have the session and the provider, and no id of the call. */
import type { Entry } from "../kernel/host.ts";

/** Open model calls, each with a value. Of calls at once on one provider, the oldest one ends first. */
export class OpenModelCalls<T> {
  /** By {@link keyOf}, the oldest first; none is empty. */
  readonly #calls = new Map<string, T[]>();

  /** Adds the call that an entry starts. */
  add(entry: Entry, call: T): void {
    const calls = this.#calls.get(keyOf(entry));
    if (calls) calls.push(call);
    else this.#calls.set(keyOf(entry), [call]);
  }

  /** Returns the call that an entry is about; undefined for one of a module itself, which has no request. */
  get(entry: Entry): T | undefined {
    return this.#calls.get(keyOf(entry))?.[0];
  }

  /** Removes the call that an entry ends, and returns it. */
  take(entry: Entry): T | undefined {
    const calls = this.#calls.get(keyOf(entry));
    const call = calls?.shift();
    if (calls?.length === 0) this.#calls.delete(keyOf(entry));
    return call;
  }

  /** Removes all calls, and returns them. */
  takeAll(): T[] {
    const calls = [...this.#calls.values()].flat();
    this.#calls.clear();
    return calls;
  }
}

/** Returns a key for the model calls of a provider: of the loop, or of other modules, also during those. */
function keyOf({ session_id, data }: Entry): string {
  const provider = typeof data.provider === "string" ? data.provider : ""; // modules may emit any JSON
  return `${data.inner === true ? "inner" : "loop"} ${session_id} ${provider}`;
}
