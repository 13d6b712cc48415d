/** Answers whose whole text is known: they end with a newline, and a large one is compressed for a client that accepts gzip. */
import { acceptsEncoding } from "./negotiation.ts";

/** Fewer bytes travel in one packet, compressed or not. */
const MIN_COMPRESSED_BYTES = 1_400;
/** Bytes that are compressed at a time: other requests are answered in between. */
const SLICE_BYTES = 64 * 1024;

const encoder = new TextEncoder();

/** Returns an answer with this text, and a newline when the text does not end with one. A large answer has a `Content-Length`. */
export function textResponse(text: string, status: number, headers: Record<string, string>): Response {
  const line = text.endsWith("\n") ? text : `${text}\n`;
  if (line.length < MIN_COMPRESSED_BYTES) return new Response(line, { status, headers });
  const bytes = encoder.encode(line);
  return new Response(bytes, { status, headers: { ...headers, "content-length": String(bytes.length) } });
}

/** Resolves to the answer as it is sent: a large text compressed when the request accepts it. Streams are never compressed. */
export async function encodedResponse(request: Request, response: Response): Promise<Response> {
  const { status, headers } = response;
  headers.append("vary", "Accept-Encoding");
  if (!acceptsEncoding(request.headers.get("accept-encoding"), "gzip")) return response;
  headers.set("content-encoding", "gzip");
  headers.delete("content-length");
  const slices = ReadableStream.from(slicesOf(await response.bytes()));
  return new Response(slices.pipeThrough(new CompressionStream("gzip")), { status, headers });
}

/** Returns true for an answer that {@link textResponse} made of a large text. */
export function isLargeText(response: Response): boolean {
  return response.headers.has("content-length");
}

function* slicesOf(bytes: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
    yield bytes.subarray(start, start + SLICE_BYTES);
  }
}

/**
 * Resolves to the answer to a HEAD: status and headers of the GET, its length among them, and no body. A stream that was opened
 * for it is closed.
 */
export async function headResponse(response: Response): Promise<Response> {
  const { status, headers } = response;
  if (response.body === null) return response;
  if (headers.has("content-encoding") || STREAMED.has(headers.get("content-type") ?? "")) {
    await response.body.cancel();
    // not null, for which Deno adds `Content-Length: 0`: that of the GET is not known
    return new Response(ReadableStream.from([]), { status, headers });
  }
  headers.set("content-length", String((await response.bytes()).length));
  return new Response(null, { status, headers });
}

const STREAMED: ReadonlySet<string> = new Set(["text/event-stream", "application/x-ndjson"]);
