/**
 * Reads an HTTP/1.1 response from bytes (RFC 9112). Needed because the connection must use the address that
 * was checked: `fetch` resolves names itself, and `node:https` with a custom connection fails on Deno 2.6.
 * Strict: ambiguous responses are errors, and everything has a limit.
 */

/** Reads into a buffer; resolves to null at the end. */
export type Read = (buffer: Uint8Array) => Promise<number | null>;

/** Status and headers of a response. */
export interface Head {
  readonly status: number;
  /** Names in lower case; values of a repeated header joined by ", ". */
  readonly headers: ReadonlyMap<string, string>;
  /** Whether the connection can be reused after the body. */
  readonly keep_alive: boolean;
}

/** Thrown for invalid responses. */
export class HttpError extends Error {}

/** Thrown when the connection closes before the end of a line. */
export class TruncatedResponse extends HttpError {}

const MAX_HEAD_BYTES = 64 * 1024;
const MAX_INTERIM = 8;

/** Buffered reader of a connection. */
export class ByteReader {
  readonly #read: Read;
  readonly #buffer = new Uint8Array(16 * 1024);
  #rest: Uint8Array = this.#buffer.subarray(0, 0);

  /** Creates a reader of one connection. */
  constructor(read: Read) {
    this.#read = read;
  }

  /** Resolves to at most `max` bytes; null at the end. The bytes are valid until the next call. */
  async some(max: number): Promise<Uint8Array | null> {
    if (this.#rest.length === 0 && !await this.#fill()) return null;
    const taken = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }

  /**
   * Resolves to the next line without its end. @throws {HttpError} if it is longer than `max` or incomplete.
   */
  async line(max: number): Promise<string> {
    let text = "";
    for (;;) {
      if (this.#rest.length === 0 && !await this.#fill()) {
        throw new TruncatedResponse("its server closed the connection");
      }
      const end = this.#rest.indexOf(10);
      const part = end === -1 ? this.#rest : this.#rest.subarray(0, end);
      if (text.length + part.length > max) throw new HttpError("a line of the response is too long");
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

/** Statuses of an answer that names another URL in `location`. */
export const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Returns a GET request without cookies, credentials and referrer. */
export function requestOf(url: URL, accept = "*/*"): Uint8Array {
  const lines = [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    "User-Agent: preamp",
    `Accept: ${accept}`,
    "Accept-Encoding: gzip",
  ];
  return new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`); // parsed URLs contain no control characters
}

/** Resolves to the head of the final response; skips interim ones (1xx). @throws {HttpError} */
export async function readHead(reader: ByteReader): Promise<Head> {
  for (let interim = 0; interim <= MAX_INTERIM; interim++) {
    const head = await readOneHead(reader);
    if (head.status >= 200) return head;
    if (head.status === 101) break;
  }
  throw new HttpError("the server sent only 1xx responses");
}

async function readOneHead(reader: ByteReader): Promise<Head> {
  let budget = MAX_HEAD_BYTES;
  const start = await reader.line(budget);
  budget -= start.length;
  const [, minor, code] = /^HTTP\/1\.([01]) ([1-5][0-9]{2})(?: |$)/.exec(start) ?? [];
  if (code === undefined) throw new HttpError("the response is not HTTP/1.1");
  const headers = new Map<string, string>();
  for (let line = await reader.line(budget); line !== ""; line = await reader.line(budget)) {
    budget -= line.length + 2;
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    if (colon < 1 || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) {
      throw new HttpError("a response header is invalid");
    }
    const value = line.slice(colon + 1).trim();
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const connection = headers.get("connection")?.toLowerCase() ?? "";
  return { status: Number(code), headers, keep_alive: minor === "1" && !connection.includes("close") };
}

/**
 * Yields the body as it was sent. Each chunk is valid until the next one is requested. Afterwards the
 * connection can be reused if {@link bodyEnds}.
 *
 * @throws {HttpError}
 */
export async function* readBody(reader: ByteReader, head: Head): AsyncGenerator<Uint8Array, void, void> {
  if (head.status === 204 || head.status === 304) return;
  const length = head.headers.get("content-length");
  if (head.headers.has("transfer-encoding")) {
    if (length !== undefined) throw new HttpError("the response has two lengths");
    if (head.headers.get("transfer-encoding")!.toLowerCase() !== "chunked") {
      throw new HttpError("the response has an unknown transfer coding");
    }
    return yield* readChunks(reader);
  }
  if (length === undefined) return yield* readToEnd(reader);
  const sizes = new Set(length.split(",").map((size) => size.trim()));
  const [size = ""] = sizes;
  if (sizes.size !== 1 || !/^[0-9]{1,15}$/.test(size)) {
    throw new HttpError("the response has an invalid length");
  }
  yield* readExactly(reader, Number(size));
}

/** Returns whether the body ends before the connection does. */
export function bodyEnds({ headers, status }: Head): boolean {
  return status === 204 || status === 304 || headers.has("content-length") ||
    headers.has("transfer-encoding");
}

/** Returns the body without its content coding; only gzip is known. @throws {HttpError} */
export function readDecodedBody(reader: ByteReader, head: Head): AsyncIterable<Uint8Array> {
  const { headers } = head;
  const body = readBody(reader, head);
  const coding = (headers.get("content-encoding") ?? "").trim().toLowerCase();
  if (coding === "identity" || coding === "") return body;
  if (coding !== "gzip" && coding !== "x-gzip") throw new HttpError("its content coding is not supported");
  return ReadableStream.from(sliced(body)).pipeThrough(new DecompressionStream("gzip"));
}

/** Yields small chunks, so that a decompression bomb is detected after a few megabytes. */
async function* sliced(body: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const chunk of body) {
    for (let at = 0; at < chunk.length; at += 4096) yield chunk.slice(at, at + 4096);
  }
}

async function* readChunks(reader: ByteReader): AsyncGenerator<Uint8Array, void, void> {
  for (;;) {
    const line = await reader.line(1024);
    const size = line.split(";", 1)[0]!.trim();
    if (!/^[0-9a-f]{1,8}$/i.test(size)) throw new HttpError("a chunk of the response is invalid");
    const length = parseInt(size, 16);
    if (length === 0) break;
    yield* readExactly(reader, length);
    if (await reader.line(2) !== "") throw new HttpError("a chunk of the response is longer than its size");
  }
  let budget = MAX_HEAD_BYTES;
  for (let line = await reader.line(budget); line !== ""; line = await reader.line(budget)) {
    budget -= line.length + 2;
  }
}

async function* readExactly(reader: ByteReader, length: number): AsyncGenerator<Uint8Array, void, void> {
  for (let left = length; left > 0;) {
    const bytes = await reader.some(left);
    if (!bytes) throw new HttpError("the response is shorter than its length");
    left -= bytes.length;
    yield bytes;
  }
}

async function* readToEnd(reader: ByteReader): AsyncGenerator<Uint8Array, void, void> {
  for (let bytes = await reader.some(Infinity); bytes; bytes = await reader.some(Infinity)) yield bytes;
}

/** Decodes header bytes as Latin-1 (RFC 9110 §5.5). */
function latin1(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
