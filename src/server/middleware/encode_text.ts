/** Adapts the body of a response to the request: gzip of large texts, no body for a HEAD. */
import type { HandlerContext, Middleware } from "../context.ts";
import { acceptsEncoding } from "../negotiation.ts";

/** Bytes to compress before other requests get their turn. */
const SLICE_BYTES = 64 * 1024;

/** Compresses large text responses if the client accepts gzip, and removes the body of a response to a HEAD. */
export const encodeText: Middleware = async (context, next) => {
  await next();
  if (isLargeText(context.res)) replace(context, await encodedResponse(context.req.raw, context.res));
  if (context.env.method === "HEAD") replace(context, await headResponse(context.res));
};

/** Replaces the response; Hono would otherwise add the headers of the old one to the new one. */
function replace(context: HandlerContext, response: Response): void {
  if (response === context.res) return;
  context.res = undefined;
  context.res = response;
}

/** Compresses a response of `textResponse` if the request accepts gzip. */
async function encodedResponse(request: Request, response: Response): Promise<Response> {
  const { status, headers } = response;
  headers.append("vary", "Accept-Encoding");
  if (!acceptsEncoding(request.headers.get("accept-encoding"), "gzip")) return response;
  headers.set("content-encoding", "gzip");
  headers.delete("content-length");
  const slices = ReadableStream.from(slicesOf(await response.bytes()));
  return new Response(slices.pipeThrough(new CompressionStream("gzip")), { status, headers });
}

/** Returns true for a response that `textResponse` created from a large text. */
function isLargeText(response: Response): boolean {
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
async function headResponse(response: Response): Promise<Response> {
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
