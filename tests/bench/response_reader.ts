/** Reads HTTP/1.1 responses from a raw connection, as far as necessary to find their ends (RFC 9112 §6). */

const decoder = new TextDecoder("latin1");

/**
 * Reads responses in sequence; discards their bodies, except that of a response that is read with `chunks`.
 */
export class ResponseReader {
  readonly #connection: Deno.Conn;
  readonly #buffer = new Uint8Array(64 * 1024);
  #text = "";

  /** Creates the only reader of a connection. */
  constructor(connection: Deno.Conn) {
    this.#connection = connection;
  }

  /** Resolves to the status of the next response, once all of it was read. */
  async next(): Promise<string> {
    const head = await this.#until("\r\n\r\n");
    const lines = head.toLowerCase().split("\r\n");
    const length = lines.find((line) => line.startsWith("content-length:"));
    if (length !== undefined) await this.#take(Number(length.slice("content-length:".length)));
    else if (lines.includes("transfer-encoding: chunked")) { for await (const _ of this.#chunks()); }
    else throw new Error("Cannot read a response: it must have a content-length or be chunked");
    return lines[0]?.split(" ")[1] ?? "";
  }

  /**
   * Yields the chunks of the next response's body as they arrive. @throws {Error} when it is not a
   * chunked 200.
   */
  async *chunks(): AsyncGenerator<string> {
    const head = await this.#until("\r\n\r\n");
    if (!/^HTTP\/1\.1 200 /.test(head) || !/^transfer-encoding: chunked$/im.test(head)) {
      throw new Error(`Cannot read a stream: it must be a chunked 200: received ${head}`);
    }
    yield* this.#chunks();
  }

  async *#chunks(): AsyncGenerator<string> {
    for (;;) {
      const size = parseInt(await this.#until("\r\n"), 16);
      const chunk = await this.#take(size + 2);
      if (size === 0) return;
      yield chunk.slice(0, -2);
    }
  }

  async #until(mark: string): Promise<string> {
    let end = this.#text.indexOf(mark);
    while (end < 0) {
      await this.#read();
      end = this.#text.indexOf(mark);
    }
    const found = this.#text.slice(0, end);
    this.#text = this.#text.slice(end + mark.length);
    return found;
  }

  async #take(length: number): Promise<string> {
    while (this.#text.length < length) await this.#read();
    const taken = this.#text.slice(0, length);
    this.#text = this.#text.slice(length);
    return taken;
  }

  async #read(): Promise<void> {
    const count = await this.#connection.read(this.#buffer);
    if (count === null) throw new Error("Cannot read a response: the connection was closed");
    this.#text += decoder.decode(this.#buffer.subarray(0, count)); // one character per byte
  }
}
