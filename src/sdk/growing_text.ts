/** Characters of a piece. */
const PIECE_CHARS = 4_096;

/**
 * A text that arrives in many parts, such as the deltas of an answer. Engines keep what `+=` joins as a tree
 * of all parts, which takes ten times the memory of the text when the parts are words; here the parts become
 * pieces of some thousand characters.
 */
export class GrowingText {
  #text = "";
  #parts: string[] = [];
  #chars = 0;

  /** Adds a part at the end. */
  append(part: string): void {
    if (part === "") return;
    this.#parts.push(part);
    this.#chars += part.length;
    if (this.#chars >= PIECE_CHARS) this.#join();
  }

  /** The whole text so far. */
  get value(): string {
    if (this.#parts.length > 0) this.#join();
    return this.#text;
  }

  #join(): void {
    this.#text += this.#parts.join("");
    this.#parts = [];
    this.#chars = 0;
  }
}
