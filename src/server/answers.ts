/** What handlers and problems answer. `respond.ts` makes a `Response` of it. */
import { createHash } from "node:crypto";
import { acceptsEncoding } from "./negotiation.ts";

/** Larger texts are compressed for clients that accept it; smaller ones fit into one packet. */
const LARGE_BYTES = 1_400;

/** An answer to a request. */
export interface Answer {
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Record<string, string>;
  /** Bytes: a large text, which may be compressed. */
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
}

const encoder = new TextEncoder();

/** Returns an answer with the text, and a newline at its end. Takes over `headers`. */
export function textAnswer(text: string, status: number, headers: Record<string, string>): Answer {
  const line = text.endsWith("\n") ? text : `${text}\n`;
  if (line.length < LARGE_BYTES) return { status, headers, body: line };
  const body = encoder.encode(line);
  headers["content-length"] = String(body.length);
  return { status, headers, body };
}

/** Returns an answer that a client may keep but must ask about: 304 without a body if its copy is current. */
export function revalidatedAnswer(request: Request, text: string, headers: Record<string, string>): Answer {
  const all = { ...headers, "cache-control": "no-cache", etag: tagOf(text) };
  return hasCurrent(request, all.etag)
    ? { status: 304, headers: all, body: null }
    : textAnswer(text, 200, all);
}

/** A large text that many clients get. */
export interface KeptText {
  readonly etag: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzip: Uint8Array<ArrayBuffer>;
}

/** Resolves to a text with its compressed form, so that no request compresses it again. */
export async function keptText(text: string): Promise<KeptText> {
  const plain = encoder.encode(text);
  const stream = ReadableStream.from([plain]).pipeThrough(new CompressionStream("gzip"));
  return { etag: tagOf(text), plain, gzip: await new Response(stream).bytes() };
}

/** Returns an answer as {@link revalidatedAnswer}, of a text that was kept. */
export function keptAnswer(request: Request, text: KeptText, headers: Record<string, string>): Answer {
  const { etag, plain, gzip } = text;
  const all: Record<string, string> = { ...headers, "cache-control": "no-cache", etag };
  if (hasCurrent(request, etag)) return { status: 304, headers: all, body: null };
  const accepts = acceptsEncoding(request.headers.get("accept-encoding"), "gzip");
  if (accepts) all["content-encoding"] = "gzip";
  const body = accepts ? gzip : plain;
  all["content-length"] = String(body.length);
  return { status: 200, headers: all, body };
}

function tagOf(text: string): string {
  return `"${createHash("sha256").update(text).digest("hex").slice(0, 16)}"`;
}

/** Returns whether a client says that it has the text of a tag. */
function hasCurrent(request: Request, etag: string): boolean {
  const known = request.headers.get("if-none-match")?.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return known?.includes(etag) === true;
}

/** Headers of every answer of the API. */
export const API_HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
} as const;

/** Returns a JSON answer. */
export function jsonAnswer(body: unknown, status = 200, headers?: Record<string, string>): Answer {
  return textAnswer(JSON.stringify(body), status, { ...API_HEADERS, ...headers });
}

/** Returns the answer of a list that has one page. */
export function listAnswer(data: readonly unknown[]): Answer {
  return jsonAnswer({ data, next_cursor: null });
}

/** Returns an empty answer with status 204. */
export function noContent(): Answer {
  return { status: 204, headers: { "cache-control": "no-store" }, body: null };
}

/** Adds a name to the `Vary` header. */
export function addVary(headers: Record<string, string>, name: string): void {
  headers.vary = headers.vary === undefined ? name : `${name}, ${headers.vary}`;
}
