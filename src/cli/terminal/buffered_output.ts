/** Buffers text and writes it once for each turn of the event loop, so that many lines need one write. */
import type { Output } from "./io.ts";

/** Characters after which the buffer is written at once. */
const MAX_BUFFERED = 64 * 1024;

/** Buffers the text of one output. */
export class BufferedOutput {
  readonly #output: Pick<Output, "write">;
  #buffer = "";

  /** @param output Call `flush()` before you write to it directly. */
  constructor(output: Pick<Output, "write">) {
    this.#output = output;
  }

  /** Buffers text; it is written soon, in order. */
  add(text: string): void {
    if (this.#buffer === "") setTimeout(() => this.flush(), 0); // setImmediate would load node:timers, which takes 5 ms
    this.#buffer += text;
    if (this.#buffer.length > MAX_BUFFERED) this.flush();
  }

  /**
   * Writes the buffer. Call it before the process ends. Text that cannot be written, for example to a full disk or a
   * full pipe, is lost: a log must not end the work that it reports.
   */
  flush(): void {
    const text = this.#buffer;
    this.#buffer = "";
    if (text === "") return;
    try {
      this.#output.write(text);
    } catch {
      // there is no other output for this error
    }
  }
}
