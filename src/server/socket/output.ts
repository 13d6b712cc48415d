/** Answers as bytes on a connection (RFC 9112 §4, §6, §7). */
import type { Answer } from "../answer.ts";

/** Reason phrases (RFC 9110 §15); another status goes without. */
const REASON: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  413: "Payload Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Entity",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  507: "Insufficient Storage",
};

/** What an answer depends on beside itself. */
export interface Turn {
  /** HTTP/1.0 knows no chunks. */
  minor: 0 | 1;
  /** Whether the connection ends with this answer. */
  last: boolean;
  /** Whether it answers a HEAD: a length would be the body's that a GET gets, which nobody has made. */
  headless: boolean;
  /** For `Date`: milliseconds since the epoch. */
  now: number;
}

const CRLF = "\r\n";
const encoder = new TextEncoder();
/** A field's value as we send it: printable ASCII. Whatever reaches a header from outside was made so, or is refused here. */
const VALUE = /^[\x20-\x7e]*$/;

/** Returns the head of an answer whose body is so many bytes long; null: in chunks, or by the connection's end. */
export function headOf({ status, headers }: Answer, length: number | null, turn: Turn): string {
  let text = `HTTP/1.${turn.minor} ${status} ${REASON[status] ?? ""}${CRLF}`;
  for (const name in headers) {
    const value = headers[name]!; // its own key
    if (!VALUE.test(value)) throw new TypeError(`Cannot send the header ${name}: its value is not printable`);
    if (name !== "connection") text += `${name}: ${value}${CRLF}`; // what it wishes is in turn.last
  }
  if (length !== null) {
    if (status !== 204 && !turn.headless) text += `content-length: ${length}${CRLF}`;
  } else if (turn.minor === 1) text += `transfer-encoding: chunked${CRLF}`;
  text += `date: ${dateOf(turn.now)}${CRLF}`;
  if (turn.last && turn.minor === 1) text += `connection: close${CRLF}`;
  if (!turn.last && turn.minor === 0) text += `connection: keep-alive${CRLF}`;
  return text + CRLF;
}

let dated_at = -1;
let date = "";

/** Returns an IMF-fixdate (RFC 9110 §5.6.7); made once a second. */
function dateOf(now: number): string {
  const second = Math.floor(now / 1000);
  if (second !== dated_at) {
    dated_at = second;
    date = new Date(now).toUTCString();
  }
  return date;
}

const BUFFER = 8 * 1024;
/** Room for the head: its length is known when the body's is, and both are to go out in one write. */
const HEAD_ROOM = 1024;

/** The sending side of one connection. */
export class Output {
  readonly #connection: Deno.TcpConn;
  readonly #onProgress: () => void;
  /** One write at a time uses it. */
  #buffer: Uint8Array<ArrayBuffer> | undefined;

  /** Writes to this connection; nobody else may. `onProgress` is told when the client has taken a part of what it is sent. */
  constructor(connection: Deno.TcpConn, onProgress: () => void) {
    this.#connection = connection;
    this.#onProgress = onProgress;
  }

  /** Sends an answer whose body is there. */
  async send(answer: Answer, body: string | Uint8Array | null, turn: Turn): Promise<void> {
    if (typeof body === "string" && body.length * 3 <= BUFFER - HEAD_ROOM) { // UTF-8 takes three bytes at most
      const buffer = this.#buffer ??= new Uint8Array(BUFFER);
      const { written } = encoder.encodeInto(body, buffer.subarray(HEAD_ROOM));
      const head = headOf(answer, written, turn);
      if (head.length <= HEAD_ROOM) {
        const start = HEAD_ROOM - head.length;
        encoder.encodeInto(head, buffer.subarray(start, HEAD_ROOM));
        return await this.write(buffer.subarray(start, HEAD_ROOM + written));
      }
    }
    const bytes = typeof body === "string" ? encoder.encode(body) : body ?? new Uint8Array(0);
    await this.write(encoder.encode(headOf(answer, bytes.length, turn)));
    if (bytes.length > 0) await this.write(bytes);
  }

  /** Sends an answer whose body comes bit by bit, no faster than the client takes it. Rejects as the body does. */
  async stream(answer: Answer, body: ReadableStreamDefaultReader<Uint8Array>, turn: Turn): Promise<void> {
    await this.write(encoder.encode(headOf(answer, null, turn)));
    for (;;) {
      const { done, value } = await body.read();
      if (done) break;
      if (value.length > 0) await this.write(turn.minor === 1 ? chunkOf(value) : value);
    }
    if (turn.minor === 1) await this.write(encoder.encode(`0${CRLF}${CRLF}`));
  }

  /** Sends bytes. */
  async write(bytes: Uint8Array): Promise<void> {
    let sent = await this.#connection.write(bytes);
    while (sent < bytes.length) {
      this.#onProgress();
      sent += await this.#connection.write(bytes.subarray(sent));
    }
  }
}

/** Returns a chunk of a body with what is around it: one write, one packet. */
function chunkOf(bytes: Uint8Array): Uint8Array {
  const size = `${bytes.length.toString(16)}${CRLF}`;
  const chunk = new Uint8Array(size.length + bytes.length + 2);
  encoder.encodeInto(size, chunk);
  chunk.set(bytes, size.length);
  chunk.set([13, 10], size.length + bytes.length);
  return chunk;
}
