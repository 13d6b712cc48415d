/** Text that is written a moment later, together: a write for many lines wakes whoever reads them once. */
import type { Output } from "./io.ts";

/** Characters that are not kept waiting. */
const MAX_WAITING = 64 * 1024;

/** Gathers text for one output. */
export class GatheredOutput {
  readonly #output: Pick<Output, "write">;
  #waiting = "";

  /** Writes to this output; who else does should `flush()` before. */
  constructor(output: Pick<Output, "write">) {
    this.#output = output;
  }

  /** Writes text soon, in the order it came. */
  add(text: string): void {
    if (this.#waiting === "") setTimeout(() => this.flush(), 0); // an immediate would load node:timers, which takes 5 ms
    this.#waiting += text;
    if (this.#waiting.length > MAX_WAITING) this.flush();
  }

  /**
   * Writes what waits; to be called before the process ends. What cannot be written is lost (a full disk, a full pipe that nobody
   * reads): it is written for whoever watches, and nobody's work may end with it.
   */
  flush(): void {
    const text = this.#waiting;
    this.#waiting = "";
    if (text === "") return;
    try {
      this.#output.write(text);
    } catch {
      // there is no other place where this could be told
    }
  }
}
