/**
 * One HTTP/1.1 answer read from bytes (RFC 9112): head, then body by chunks, length or end. Of our own because the address
 * that is connected to must be the one that was checked: `fetch` resolves names itself, and `node:https` with a connection
 * made by its caller fails on Deno 2.6. Strict: what is ambiguous is refused, and everything is bounded.
 */

/** Reads into a buffer; null at the end. */
export type Read = (buffer: Uint8Array) => Promise<number | null>;

/** The first part of an answer. */
export interface Head {
  readonly status: number;
  /** Names in lower case; values of a repeated header joined by ", ". */
  readonly headers: ReadonlyMap<string, string>;
  /** Whether the connection may be used for another request once the body was read. */
  readonly keep_alive: boolean;
}

/** Thrown for bytes that are no answer. */
export class HttpError extends Error {}

/** Thrown when a connection ends where a line should be. */
export class TruncatedResponse extends HttpError {}

const MAX_HEAD_BYTES = 64 * 1024;
const MAX_INTERIM = 8;

/** Bytes of a connection with what was read ahead. */
export class ByteReader {
  readonly #read: Read;
  readonly #buffer = new Uint8Array(16 * 1024);
  #rest: Uint8Array = this.#buffer.subarray(0, 0);

  /** Creates a reader of one connection. */
  constructor(read: Read) {
    this.#read = read;
  }

  /** Resolves to the next bytes, at most `max`; null at the end. They are valid until the next call. */
  async some(max: number): Promise<Uint8Array | null> {
    if (this.#rest.length === 0 && !await this.#fill()) return null;
    const taken = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }

  /** Resolves to the next line without its end. @throws {HttpError} when it is longer than `max` or has no end. */
  async line(max: number): Promise<string> {
    let text = "";
    for (;;) {
      if (this.#rest.length === 0 && !await this.#fill()) {
        throw new TruncatedResponse("its server closed the connection");
      }
      const end = this.#rest.indexOf(10);
      const part = end === -1 ? this.#rest : this.#rest.subarray(0, end);
      if (text.length + part.length > max) throw new HttpError("a line of the answer is too long");
      text += latin1(part);
      this.#rest = this.#rest.subarray(end === -1 ? part.length : end + 1);
      if (end !== -1) return text.endsWith("\r") ? text.slice(0, -1) : text;
    }
  }

  async #fill(): Promise<boolean> {
    const count = await this.#read(this.#buffer);
    if (count === null) return false;
    this.#rest = this.#buffer.subarray(0, count);
    return true;
  }
}

/** Resolves to the head of the final answer; interim ones (1xx) are skipped. @throws {HttpError} */
export async function readHead(reader: ByteReader): Promise<Head> {
  for (let interim = 0; interim <= MAX_INTERIM; interim++) {
    const head = await readOneHead(reader);
    if (head.status >= 200) return head;
    if (head.status === 101) break;
  }
  throw new HttpError("the answer never comes to its point");
}

async function readOneHead(reader: ByteReader): Promise<Head> {
  let budget = MAX_HEAD_BYTES;
  const start = await reader.line(budget);
  budget -= start.length;
  const [, minor, code] = /^HTTP\/1\.([01]) ([1-5][0-9]{2})(?: |$)/.exec(start) ?? [];
  if (code === undefined) throw new HttpError("the answer is not HTTP/1.1");
  const headers = new Map<string, string>();
  for (let line = await reader.line(budget); line !== ""; line = await reader.line(budget)) {
    budget -= line.length + 2;
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    if (colon < 1 || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) throw new HttpError("a header cannot be read");
    const value = line.slice(colon + 1).trim();
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const connection = headers.get("connection")?.toLowerCase() ?? "";
  return { status: Number(code), headers, keep_alive: minor === "1" && !connection.includes("close") };
}

/**
 * Yields the body as it was sent, in pieces that are valid until the next one is asked for. When it ends, the next answer may
 * follow; see {@link bodyEnds}.
 *
 * @throws {HttpError}
 */
export async function* readBody(reader: ByteReader, head: Head): AsyncGenerator<Uint8Array, void, void> {
  if (head.status === 204 || head.status === 304) return;
  const length = head.headers.get("content-length");
  if (head.headers.has("transfer-encoding")) {
    if (length !== undefined) throw new HttpError("the answer says its length twice");
    if (head.headers.get("transfer-encoding")!.toLowerCase() !== "chunked") {
      throw new HttpError("the answer's transfer coding is not known");
    }
    return yield* readChunks(reader);
  }
  if (length === undefined) return yield* readToEnd(reader);
  const sizes = new Set(length.split(",").map((size) => size.trim()));
  const [size = ""] = sizes;
  if (sizes.size !== 1 || !/^[0-9]{1,15}$/.test(size)) {
    throw new HttpError("the answer's length cannot be read");
  }
  yield* readExactly(reader, Number(size));
}

/** Returns true when the end of a body can be told without the end of the connection. */
export function bodyEnds({ headers, status }: Head): boolean {
  return status === 204 || status === 304 || headers.has("content-length") ||
    headers.has("transfer-encoding");
}

async function* readChunks(reader: ByteReader): AsyncGenerator<Uint8Array, void, void> {
  for (;;) {
    const line = await reader.line(1024);
    const size = line.split(";", 1)[0]!.trim();
    if (!/^[0-9a-f]{1,8}$/i.test(size)) throw new HttpError("a chunk of the answer cannot be read");
    const length = parseInt(size, 16);
    if (length === 0) break;
    yield* readExactly(reader, length);
    if (await reader.line(2) !== "") throw new HttpError("a chunk of the answer is longer than it says");
  }
  let budget = MAX_HEAD_BYTES;
  for (let line = await reader.line(budget); line !== ""; line = await reader.line(budget)) {
    budget -= line.length + 2;
  }
}

async function* readExactly(reader: ByteReader, length: number): AsyncGenerator<Uint8Array, void, void> {
  for (let left = length; left > 0;) {
    const bytes = await reader.some(left);
    if (!bytes) throw new HttpError("the answer is shorter than it says");
    left -= bytes.length;
    yield bytes;
  }
}

async function* readToEnd(reader: ByteReader): AsyncGenerator<Uint8Array, void, void> {
  for (let bytes = await reader.some(Infinity); bytes; bytes = await reader.some(Infinity)) yield bytes;
}

/** Header bytes are letters of Latin-1 (RFC 9110 §5.5). */
function latin1(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
