/** Makes the `Response` of an answer: request id, gzip of large texts, no body for a HEAD. */
import { addVary, type Answer } from "./answers.ts";
import type { HonoContext, RequestContext } from "./context.ts";
import { endsConnectionOf } from "./middleware/check_host.ts";
import { acceptsEncoding } from "./negotiation.ts";

/** Bytes to compress before other requests get their turn. */
const SLICE_BYTES = 64 * 1024;

/** Returns the response of an answer, and keeps the answer for the steps that `app.ts` takes after it. */
export function respond(c: HonoContext, answer: Answer): Response {
  const { status, headers } = answer;
  const body = bodyToSend(answer, c.env);
  headers["preamp-request-id"] = c.env.request_id;
  if (c.env.server.draining || endsConnectionOf(c.env.request)) headers.connection = "close";
  c.set("answer", answer);
  return new Response(body, { status, headers });
}

/**
 * Returns the body to send and sets the headers about it: a large text is compressed if the client accepts
 * gzip; the answer to a HEAD has the headers of its GET, with the length if that is known, and no body. A
 * stream is cancelled then.
 */
function bodyToSend({ headers, body }: Answer, { request, method }: RequestContext): BodyInit | null {
  const is_head = method === "HEAD";
  if (body instanceof Uint8Array) {
    addVary(headers, "Accept-Encoding");
    const compressed = headers["content-encoding"] !== undefined;
    if (!compressed && acceptsEncoding(request.headers.get("accept-encoding"), "gzip")) {
      headers["content-encoding"] = "gzip";
      delete headers["content-length"];
      return is_head
        ? emptyStream()
        : ReadableStream.from(slicesOf(body)).pipeThrough(new CompressionStream("gzip"));
    }
  }
  if (!is_head || body === null) return body;
  if (body instanceof ReadableStream) {
    body.cancel().catch(() => {}); // of no use after the end
    return emptyStream();
  }
  headers["content-length"] ??= String(new TextEncoder().encode(body as string).length);
  return null;
}

/**
 * Returns a stream that ends at once. Not null: Deno would add `Content-Length: 0`, but the GET has another
 * length.
 */
function emptyStream(): ReadableStream<Uint8Array<ArrayBuffer>> {
  return ReadableStream.from([]);
}

function* slicesOf(bytes: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
    yield bytes.subarray(start, start + SLICE_BYTES);
  }
}
