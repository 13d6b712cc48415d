/** Bytes → lines, with a bound that holds while reading: what is too long is never held. */

const NEWLINE = 10;

/** Takes bytes as they come and gives the lines in them. */
export class LineReader {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true }); // a line is what was sent, whatever it begins with
  #parts: Uint8Array[] = [];
  #held = 0;

  /**
   * Gives the lines that end in these bytes, which are kept no longer than this call.
   * @param limit Bytes a line may have; asked for each.
   * @returns false when a line has more: nothing can be read after it.
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
