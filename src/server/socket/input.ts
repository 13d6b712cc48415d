/** What comes in on a connection: a window of bytes that were read and not yet taken. Knows bytes, no HTTP. */

const SMALL = 4 * 1024;
/** More than the longest header, and one read's worth of a large body. */
const LARGE = 80 * 1024;

/** The bytes of one connection, in the order they came. */
export class Input {
  readonly #connection: Deno.TcpConn;
  #buffer = new Uint8Array(SMALL);
  #start = 0;
  #end = 0;
  #filling: Promise<boolean> | undefined;
  /** Whether nothing follows: the client has said so, or is gone. */
  ended = false;
  /** Told once when nothing follows. */
  onEnd: (() => void) | undefined;

  /** Reads from this connection; nobody else may. */
  constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  /** How many bytes are there. */
  get length(): number {
    return this.#end - this.#start;
  }

  /** Returns the bytes that are there, to be looked at until the next `fill()`. */
  view(): Uint8Array {
    return this.#buffer.subarray(this.#start, this.#end);
  }

  /** Drops bytes that were looked at. */
  skip(count: number): void {
    this.#start += count;
  }

  /** Returns a copy of the next bytes, at most so many, and drops them here. */
  take(most: number): Uint8Array<ArrayBuffer> {
    const bytes = this.#buffer.slice(this.#start, Math.min(this.#end, this.#start + most));
    this.#start += bytes.length;
    return bytes;
  }

  /** Waits for more bytes; resolves to false when nothing follows, to true at once when there is no room. Never rejects. */
  fill(): Promise<boolean> {
    return this.#filling ??= this.#fill();
  }

  async #fill(): Promise<boolean> {
    if (this.#makeRoom()) {
      let count: number | null = null;
      try {
        count = await this.#connection.read(this.#buffer.subarray(this.#end));
      } catch {
        // broken off, or closed by us: either way nothing follows
      }
      if (count === null) {
        this.ended = true;
        this.onEnd?.();
      } else this.#end += count;
    }
    this.#filling = undefined;
    return !this.ended;
  }

  /** Only while nobody reads: a read that is under way has its place in the buffer. */
  #makeRoom(): boolean {
    if (this.ended) return false;
    if (this.#start === this.#end) this.#start = this.#end = 0;
    if (this.#end < this.#buffer.length) return true;
    if (this.#start > 0) this.#buffer.copyWithin(0, this.#start, this.#end);
    else if (this.#buffer.length < LARGE) {
      const larger = new Uint8Array(LARGE);
      larger.set(this.#buffer);
      this.#buffer = larger;
    } else return false;
    this.#end -= this.#start;
    this.#start = 0;
    return true;
  }
}
