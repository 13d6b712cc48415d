/** Reads HTTP/1.1 responses from a raw connection, as far as necessary to find their ends (RFC 9112 §6). */

const decoder = new TextDecoder("latin1");

/** Reads responses in sequence and discards their bodies. */
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
    else if (lines.includes("transfer-encoding: chunked")) await this.#chunks();
    else throw new Error("Cannot read a response: it must have a content-length or be chunked");
    return lines[0]?.split(" ")[1] ?? "";
  }

  async #chunks(): Promise<void> {
    for (;;) {
      const size = parseInt(await this.#until("\r\n"), 16);
      await this.#take(size + 2);
      if (size === 0) return;
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

  async #take(length: number): Promise<void> {
    while (this.#text.length < length) await this.#read();
    this.#text = this.#text.slice(length);
  }

  async #read(): Promise<void> {
    const count = await this.#connection.read(this.#buffer);
    if (count === null) throw new Error("Cannot read a response: the connection was closed");
    this.#text += decoder.decode(this.#buffer.subarray(0, count)); // one character per byte
  }
}
