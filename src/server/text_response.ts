/**
 * Responses whose text is known in full: they end with a newline; large ones are compressed with gzip if the
 * client accepts it.
 */
import { acceptsEncoding } from "./negotiation.ts";

/** Smaller responses fit into one packet uncompressed. */
const MIN_COMPRESSED_BYTES = 1_400;
/** Bytes to compress before other requests get their turn. */
const SLICE_BYTES = 64 * 1024;

const encoder = new TextEncoder();

/** Creates a response with the text, and a newline at its end. A large response has a `Content-Length`. */
export function textResponse(text: string, status: number, headers: Record<string, string>): Response {
  const line = text.endsWith("\n") ? text : `${text}\n`;
  if (line.length < MIN_COMPRESSED_BYTES) return new Response(line, { status, headers });
  const bytes = encoder.encode(line);
  return new Response(bytes, { status, headers: { ...headers, "content-length": String(bytes.length) } });
}

/** Compresses a response of {@link textResponse} if the request accepts gzip. */
export async function encodedResponse(request: Request, response: Response): Promise<Response> {
  const { status, headers } = response;
  headers.append("vary", "Accept-Encoding");
  if (!acceptsEncoding(request.headers.get("accept-encoding"), "gzip")) return response;
  headers.set("content-encoding", "gzip");
  headers.delete("content-length");
  const slices = ReadableStream.from(slicesOf(await response.bytes()));
  return new Response(slices.pipeThrough(new CompressionStream("gzip")), { status, headers });
}

/** Returns true for a response that {@link textResponse} created from a large text. */
export function isLargeText(response: Response): boolean {
  return response.headers.has("content-length");
}

function* slicesOf(bytes: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
    yield bytes.subarray(start, start + SLICE_BYTES);
  }
}

/**
 * Returns the response to a HEAD: status and headers of the GET including its length, without body. A stream
 * is cancelled.
 */
export async function headResponse(response: Response): Promise<Response> {
  const { status, headers } = response;
  if (response.body === null) return response;
  if (headers.has("content-encoding") || STREAMED.has(headers.get("content-type") ?? "")) {
    await response.body.cancel();
    // Not null: Deno would add `Content-Length: 0`, but the length of the GET is not known.
    return new Response(ReadableStream.from([]), { status, headers });
  }
  headers.set("content-length", String((await response.bytes()).length));
  return new Response(null, { status, headers });
}

const STREAMED: ReadonlySet<string> = new Set(["text/event-stream", "application/x-ndjson"]);
