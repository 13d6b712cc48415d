/** Frames of child processes on stdin and stdout: eight bytes of lengths, JSON, bytes. Limits apply while reading. */
import type { JsonObject } from "../../sdk/json.ts";

/** One frame. */
export interface Frame {
  readonly header: JsonObject;
  /** Binary data of the frame. */
  readonly body: Uint8Array;
}

/** Reads bytes; resolves to null at the end. */
export type ReadBytes = () => Promise<Uint8Array | null>;

/** Encodes a frame. */
export function encodeFrame(header: JsonObject, parts: readonly Uint8Array[] = []): Uint8Array {
  const head = new TextEncoder().encode(JSON.stringify(header));
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = new Uint8Array(8 + head.length + length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, head.length);
  view.setUint32(4, length);
  bytes.set(head, 8);
  let at = 8 + head.length;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Reader of frames. */
export class FrameReader {
  readonly #read: ReadBytes;
  readonly #max_bytes: number;
  #rest: Uint8Array = new Uint8Array(0);

  /** `max_bytes` limits one frame. */
  constructor(read: ReadBytes, max_bytes: number) {
    this.#read = read;
    this.#max_bytes = max_bytes;
  }

  /** Resolves to the next frame; null at the end of the stream. @throws {Error} for invalid bytes. */
  async next(): Promise<Frame | null> {
    const lengths = await this.#take(8);
    if (!lengths) return null;
    const view = new DataView(lengths.buffer, lengths.byteOffset, 8);
    const head = view.getUint32(0);
    const body = view.getUint32(4);
    if (head + body > this.#max_bytes) {
      throw new Error(
        `Cannot read a frame: it has ${head + body} bytes, at most ${this.#max_bytes} are allowed`,
      );
    }
    const bytes = await this.#take(head + body);
    if (!bytes) throw new Error("Cannot read a frame: it is incomplete");
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(0, head))) as JsonObject; // written by encodeFrame()
    return { header, body: bytes.subarray(head) };
  }

  async #take(count: number): Promise<Uint8Array | null> {
    if (this.#rest.length >= count) {
      const taken = this.#rest.subarray(0, count);
      this.#rest = this.#rest.subarray(count);
      return taken;
    }
    const whole = new Uint8Array(count);
    whole.set(this.#rest);
    let at = this.#rest.length;
    while (at < count) {
      const chunk = await this.#read();
      if (!chunk) {
        if (at === 0) return null;
        throw new Error("Cannot read a frame: it is incomplete");
      }
      const used = Math.min(chunk.length, count - at);
      whole.set(chunk.subarray(0, used), at);
      at += used;
      this.#rest = chunk.subarray(used);
    }
    return whole;
  }
}
