/**
 * The header of a request, from bytes (RFC 9112 §2, §3, §5, §6). Strict: what two servers could read in two ways is refused, for
 * that is what smuggling lives on (threats.md T41).
 */
import type { RequestHeaders } from "../request.ts";

/** Longest header in bytes, request line included. Our choice, that of Deno's own server. */
export const MAX_HEAD_BYTES = 64 * 1024;
const MAX_FIELDS = 128;

/** How the body of a request ends: after so many bytes, 0 when there is none, or by its last chunk. */
export type Framing = number | "chunked";

/** A header that was read. */
export interface Head {
  method: string;
  /** Path and query. */
  target: string;
  headers: RequestHeaders;
  framing: Framing;
  /** 1 for HTTP/1.1, 0 for HTTP/1.0. */
  minor: 0 | 1;
  /** Whether the client wants to send more requests. */
  keep: boolean;
  /** Whether the client waits for `100 Continue` before it sends the body. */
  expects_continue: boolean;
}

/** What is no request. */
export class BadRequest extends Error {}

const CR = 13;
const LF = 10;

/**
 * Returns the offset behind the header that these bytes begin with, or -1 when its end is not there yet; looks at nothing before
 * `from`.
 * @throws {BadRequest} for a line that ends without a carriage return, and for a header that is too long.
 */
export function endOfHead(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(LF, from); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at - 1] !== CR) throw new BadRequest("a line ends without a carriage return");
    if (bytes[at - 2] === LF && at < MAX_HEAD_BYTES) return at + 1;
  }
  if (bytes.length >= MAX_HEAD_BYTES) throw new BadRequest("the header is too long");
  return -1;
}

const decoder = new TextDecoder();
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Control characters but the tab, and a carriage return that ends no line. */
const CONTROL = /[^\P{Cc}\t\r\n]|\r(?!\n)/u;

/**
 * Returns the header that these bytes are, from the request line to the empty line.
 * @throws {BadRequest} when they are none, or say two things at once.
 */
export function readHead(bytes: Uint8Array): Head {
  const text = decoder.decode(bytes);
  if (CONTROL.test(text)) throw new BadRequest("the header has a control character");
  const lines = text.split("\r\n"); // its last two parts are the empty line and what is behind it: nothing
  const [method = "", target = "", version = "", ...more] = lines[0]!.split(" ");
  if (!TOKEN.test(method) || more.length > 0) throw new BadRequest("the request line is none");
  if (version !== "HTTP/1.1" && version !== "HTTP/1.0") throw new BadRequest("the version is not HTTP/1");
  if (lines.length - 3 > MAX_FIELDS) throw new BadRequest("there are too many fields");
  const fields = new Map<string, string>();
  for (let index = 1; index < lines.length - 2; index++) addField(fields, lines[index]!);
  const minor = version === "HTTP/1.1" ? 1 : 0;
  const connection = fields.get("connection")?.toLowerCase();
  return {
    method,
    target: pathOf(target),
    headers: { get: (name) => fields.get(name) ?? null },
    framing: framingOf(fields, minor),
    minor,
    keep: minor === 1 ? !hasToken(connection, "close") : hasToken(connection, "keep-alive"),
    expects_continue: minor === 1 && fields.get("expect")?.toLowerCase() === "100-continue",
  };
}

function addField(fields: Map<string, string>, line: string): void {
  const colon = line.indexOf(":");
  const name = line.slice(0, Math.max(colon, 0));
  // a folded line begins with a blank, and a name that ends with one is no token
  if (!TOKEN.test(name)) throw new BadRequest("a field has no name");
  const key = name.toLowerCase();
  const value = line.slice(colon + 1).trim();
  const before = fields.get(key);
  if (before === undefined) fields.set(key, value);
  else if (key === "host") throw new BadRequest("there are two hosts");
  else if (key === "content-length") {
    if (before !== value) throw new BadRequest("there are two lengths");
  } else fields.set(key, `${before}, ${value}`);
}

function framingOf(fields: Map<string, string>, minor: 0 | 1): Framing {
  const coding = fields.get("transfer-encoding");
  const length = fields.get("content-length");
  if (coding !== undefined) {
    if (length !== undefined || minor === 0 || coding.toLowerCase() !== "chunked") {
      throw new BadRequest("the end of the body is not clear");
    }
    return "chunked";
  }
  if (length === undefined) return 0;
  if (!/^[0-9]{1,15}$/.test(length)) throw new BadRequest("the length is no number");
  return Number(length);
}

/** Returns path and query of a target in origin or absolute form; the names that `Host` is checked against are the same for both. */
function pathOf(target: string): string {
  const end = target.indexOf("#");
  const whole = end === -1 ? target : target.slice(0, end);
  if (whole.startsWith("/")) return whole;
  const absolute = /^https?:\/\/[^/?]+(.*)$/i.exec(whole);
  if (!absolute) throw new BadRequest("the target is no path");
  const path = absolute[1]!; // the one group, which may be empty
  return path.startsWith("/") ? path : `/${path}`;
}

function hasToken(list: string | undefined, token: string): boolean {
  return list !== undefined && list.split(",").some((item) => item.trim() === token);
}
