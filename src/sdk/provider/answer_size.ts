/** Bounds what an answer may cost in memory, while its bytes arrive. */

/** Maximum bytes of an answer where the runtime states none. */
export const MAX_ANSWER_BYTES = 16_777_216;

/**
 * Maximum values of one event, or of an answer that is not streamed. Each costs some 100 bytes when it is
 * parsed, however short its text is: 16 MiB of `{},` would become 1 GB.
 */
const MAX_VALUES = 200_000;

const LINE_END = 0x0a;
const RETURN = 0x0d;
/** First bytes of a value: `{`, `[` and `,`; within texts they count, too. */
const isValue = (byte: number) => byte === 0x7b || byte === 0x5b || byte === 0x2c;

/** Counts the bytes and values of one answer. */
export class AnswerSize {
  readonly #max_bytes: number;
  /** Whether each line is an event of its own; else an empty line ends an event. */
  readonly #by_line: boolean;
  #bytes = 0;
  #values = 0;
  #is_line_empty = true;

  constructor(max_bytes: number, media_type: string) {
    this.#max_bytes = max_bytes;
    this.#by_line = /ndjson/i.test(media_type);
  }

  /** Adds a chunk; returns what is too large, or undefined. */
  add(chunk: Uint8Array): string | undefined {
    this.#bytes += chunk.byteLength;
    if (this.#bytes > this.#max_bytes) {
      return `it may have at most ${this.#max_bytes} bytes (limits.max_answer_bytes)`;
    }
    for (const byte of chunk) {
      if (byte === LINE_END) {
        if (this.#by_line || this.#is_line_empty) this.#values = 0;
        this.#is_line_empty = true;
      } else if (byte !== RETURN) this.#is_line_empty = false;
      if (isValue(byte) && ++this.#values > MAX_VALUES) {
        return `one event may have at most ${MAX_VALUES} values`;
      }
    }
    return undefined;
  }
}
