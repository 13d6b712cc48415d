/** The body of a request, taken from a connection as its header says that it ends (RFC 9112 §6, §7.1). */
import type { Framing } from "./head.ts";
import { BadRequest } from "./head.ts";
import type { Input } from "./input.ts";

/** Longest line of a chunk's size with its extensions, and of a trailer field. Our choice. */
const MAX_LINE = 256;
const MAX_TRAILERS = 32;

/** Reads one body, once. */
export class RequestBody {
  readonly #input: Input;
  readonly #chunked: boolean;
  /** Bytes to come, of the body or of its chunk. */
  #left: number;
  #done = false;
  /** Called once, before the client is waited for. */
  onWait: (() => void) | undefined;
  /** Called once, when all of it was taken. */
  onDone: (() => void) | undefined;

  /** Reads what comes next on `input`. */
  constructor(input: Input, framing: Framing) {
    this.#input = input;
    this.#chunked = framing === "chunked";
    this.#left = framing === "chunked" ? 0 : framing;
  }

  /** Whether all of it was read. */
  get done(): boolean {
    return this.#done;
  }

  /** How many bytes are to come at most; of a chunked body nobody knows. */
  get left(): number {
    return this.#done ? 0 : this.#chunked ? Infinity : this.#left;
  }

  /** Returns the whole body when it is here already and its length was told; undefined when it has to be waited for. */
  whole(): Uint8Array<ArrayBuffer> | undefined {
    if (this.#chunked || this.#left > this.#input.length) return undefined;
    const bytes = this.#input.take(this.#left);
    this.#end();
    return bytes;
  }

  /** Resolves to more bytes of it, or to null at its end. @throws {BadRequest} when it breaks off, or its chunks are none. */
  async read(): Promise<Uint8Array<ArrayBuffer> | null> {
    if (this.#chunked && !this.#done && this.#left === 0) await this.#nextChunk();
    if (this.#done) return null;
    if (this.#input.length === 0) await this.#more();
    const bytes = this.#input.take(this.#left);
    this.#left -= bytes.length;
    if (this.#left === 0) {
      if (!this.#chunked) this.#end();
      else if (await this.#line() !== "") throw new BadRequest("a chunk is longer than it said");
    }
    return bytes;
  }

  async #nextChunk(): Promise<void> {
    const size = (await this.#line()).split(";", 1)[0]!.trimEnd(); // its extensions mean nothing to us
    if (!/^[0-9A-Fa-f]{1,12}$/.test(size)) throw new BadRequest("a chunk has no size");
    this.#left = parseInt(size, 16);
    if (this.#left > 0) return;
    for (let trailers = 0; await this.#line() !== ""; trailers++) {
      if (trailers >= MAX_TRAILERS) throw new BadRequest("there are too many trailers");
    }
    this.#end();
  }

  #end(): void {
    this.#done = true;
    this.onDone?.();
  }

  /** Resolves to the next line, without its end. */
  async #line(): Promise<string> {
    for (;;) {
      const bytes = this.#input.view();
      const end = bytes.indexOf(10);
      if (end > MAX_LINE || end === -1 && bytes.length > MAX_LINE) throw new BadRequest("a line is too long");
      if (end !== -1) {
        if (bytes[end - 1] !== 13) throw new BadRequest("a line ends without a carriage return");
        const line = String.fromCharCode(...bytes.subarray(0, end - 1));
        this.#input.skip(end + 1);
        return line;
      }
      await this.#more();
    }
  }

  async #more(): Promise<void> {
    this.onWait?.();
    this.onWait = undefined;
    if (!await this.#input.fill()) throw new BadRequest("the body breaks off");
  }
}
