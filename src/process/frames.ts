/**
 * Frames between this process and its children, on stdin and stdout: two lengths of four bytes, a text,
 * binary data.
 */

export interface Frame {
  readonly text: string;
  /** Binary data of the frame. */
  readonly body: Uint8Array;
}

/** Reads into a buffer; resolves to the bytes, which may lie in another buffer, or null at the end. */
export type ReadInto = (buffer: Uint8Array<ArrayBuffer>) => Promise<Uint8Array<ArrayBuffer> | null>;

/** Thrown for a frame that is longer than allowed. No frame can be read after it. */
export class FrameTooLarge extends Error {}

/** Size of the read buffer in bytes. */
const READ_BYTES = 64 * 1024;
/** Bytes of the two lengths. */
const LENGTHS = 8;

const encoder = new TextEncoder();

/** Encodes a frame. The parts become its body. */
export function encodeFrame(text: string, parts: readonly Uint8Array[] = []): Uint8Array<ArrayBuffer> {
  const head = encoder.encode(text);
  const lengths = new Uint8Array(LENGTHS);
  const view = new DataView(lengths.buffer);
  view.setUint32(0, head.length);
  view.setUint32(4, lengthOf(parts));
  return concat([lengths, head, ...parts]);
}

/** Returns the bytes of all parts. */
export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(lengthOf(parts));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

/** Reader of frames. Allocates a frame's memory only after its length was compared with the limit. */
export class FrameReader {
  readonly #read: ReadInto;
  readonly #limit: () => number;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true }); // keeps a byte order mark
  /** perf: the same memory for each read. */
  #memory = new ArrayBuffer(READ_BYTES);
  /** Bytes that were read and not used yet. */
  #rest: Uint8Array<ArrayBuffer> = new Uint8Array(0);

  /** @param limit Returns the most bytes of a frame; called for each frame when its lengths have arrived. */
  constructor(read: ReadInto, limit: () => number) {
    this.#read = read;
    this.#limit = limit;
  }

  /**
   * Resolves to the next frame; null at the end of the stream.
   *
   * @throws {FrameTooLarge} if the frame is longer than allowed.
   * @throws {Error} if the stream ends inside a frame.
   */
  async next(): Promise<Frame | null> {
    const lengths = await this.#take(LENGTHS);
    if (!lengths) return null;
    const view = new DataView(lengths.buffer, lengths.byteOffset, LENGTHS);
    const head = view.getUint32(0);
    const length = head + view.getUint32(4);
    const limit = this.#limit();
    if (length > limit) {
      throw new FrameTooLarge(`Cannot read a frame: it has ${length} bytes, at most ${limit} are allowed`);
    }
    const bytes = await this.#take(length);
    if (!bytes) throw incomplete();
    return {
      text: this.#decoder.decode(bytes.subarray(0, head)),
      body: length === head ? EMPTY : bytes.slice(head),
    };
  }

  /** Resolves to the next bytes, which are valid until the next call; null if the stream has ended. */
  async #take(count: number): Promise<Uint8Array<ArrayBuffer> | null> {
    if (this.#rest.length >= count) {
      const taken = this.#rest.subarray(0, count);
      this.#rest = this.#rest.subarray(count);
      return taken;
    }
    const whole = new Uint8Array(count);
    whole.set(this.#rest);
    let at = this.#rest.length;
    while (at < count) {
      const chunk = await this.#read(new Uint8Array(this.#memory));
      if (!chunk) {
        if (at === 0) return null;
        throw incomplete();
      }
      this.#memory = chunk.buffer;
      const used = Math.min(chunk.length, count - at);
      whole.set(chunk.subarray(0, used), at);
      at += used;
      this.#rest = chunk.subarray(used);
    }
    return whole;
  }
}

const EMPTY = new Uint8Array(0);

function incomplete(): Error {
  return new Error("Cannot read a frame: it is incomplete");
}
