/** Counts the open event streams of a server by their callers. */
import { PreampError } from "../../sdk/errors.ts";

/** How many streams may be open. Absent: any number. */
export interface StreamLimits {
  readonly max_streams?: number;
  readonly max_streams_per_key?: number;
}

/** The open event streams of one server. */
export class OpenStreams {
  readonly #by_caller = new Map<string, number>();
  #open = 0;

  /** Refuses one more stream of a caller. @throws {PreampError} `too_many_streams` at a limit. */
  check(caller: string, { max_streams = Infinity, max_streams_per_key = Infinity }: StreamLimits): void {
    const reached = (limit: string, value: number) =>
      new PreampError("too_many_streams", `Cannot open an event stream: ${limit} is ${value}`);
    if (this.#open >= max_streams) throw reached("max_streams", max_streams);
    const own = this.#by_caller.get(caller) ?? 0;
    if (own >= max_streams_per_key) throw reached("max_streams_per_key", max_streams_per_key);
  }

  /** Counts a stream of a caller until the returned function is called, once. */
  add(caller: string): () => void {
    this.#open++;
    this.#by_caller.set(caller, (this.#by_caller.get(caller) ?? 0) + 1);
    return () => {
      this.#open--;
      const left = this.#by_caller.get(caller)! - 1; // it was added
      if (left > 0) this.#by_caller.set(caller, left);
      else this.#by_caller.delete(caller);
    };
  }
}
