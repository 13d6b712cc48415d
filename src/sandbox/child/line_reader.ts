/** Splits bytes into lines, with a limit that is enforced while reading. */

const NEWLINE = 10;

/** Incremental reader of lines. */
export class LineReader {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true }); // keeps a byte order mark
  #parts: Uint8Array[] = [];
  #held = 0;

  /**
   * Passes on the lines that end in these bytes. Copies the rest, so the caller may reuse the buffer.
   * @param limit Returns the most bytes of a line; called for each line.
   * @returns False if a line is longer: nothing can be read after it.
   */
  take(chunk: Uint8Array, limit: () => number, line: (text: string) => void): boolean {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      if (this.#held + end - start > limit()) return false;
      line(this.#text(chunk.subarray(start, end)));
      start = end + 1;
    }
    const rest = chunk.length - start;
    if (rest === 0) return true;
    if (this.#held + rest > limit()) return false;
    this.#parts.push(chunk.slice(start));
    this.#held += rest;
    return true;
  }

  #text(last: Uint8Array): string {
    if (this.#held === 0) return this.#decoder.decode(last);
    const whole = new Uint8Array(this.#held + last.length);
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    whole.set(last, at);
    this.#parts = [];
    this.#held = 0;
    return this.#decoder.decode(whole);
  }
}
