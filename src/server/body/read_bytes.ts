/** Reads a request body with limits of size, time and minimum transfer rate. */
import type { DocumentLimits } from "../../plan/parse/document_limits.ts";
import type { SystemClock } from "../../process/system_clock.ts";
import { PreampError } from "../../sdk/errors.ts";
import { quoteTruncated } from "../../text/escape.ts";

/** Limits of a body. */
export interface BodyLimits {
  /** Maximum bytes; a larger body is `body_too_large`. */
  max_bytes: number;
  /** Maximum milliseconds for the whole body. */
  deadline_ms: number;
  /** Limits of a plan in the body. */
  plan: DocumentLimits;
}

/**
 * Minimum transfer rate, measured over the first {@link RATE_WINDOW_MS}, against clients that send slowly to
 * block resources.
 */
const MIN_BYTES_PER_SECOND = 1024;
const RATE_WINDOW_MS = 5000;
/** A body with at most this declared length is complete before the default deadline at the minimum rate. */
const SMALL_BODY_BYTES = 10 * 1024;

/**
 * Reads the body; empty without one. Reads at most `max_bytes` and one chunk, for at most `deadline_ms`, and
 * requires 1 KiB/s over the first five seconds. `Deno.serve` itself has no such timeout.
 *
 * @throws {PreampError} `unsupported_media_type` for an encoded body; `body_too_large`; `request_timeout`;
 * `request_invalid` if the client closes the connection early.
 */
export async function readBody(
  request: Request,
  limits: Omit<BodyLimits, "plan">,
  clock: SystemClock,
): Promise<Uint8Array> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.trim().toLowerCase() !== "identity") {
    throw new PreampError(
      "unsupported_media_type",
      `Cannot read the request body: it must not be encoded: received Content-Encoding ${
        quoteTruncated(encoding)
      }`,
    );
  }
  const declared = declaredLength(request);
  if (declared !== null && declared > limits.max_bytes) throw tooLarge(limits.max_bytes, String(declared));
  // Deno delivers at most the declared length, so a small body needs no chunked reading.
  if (declared !== null && declared <= SMALL_BODY_BYTES) {
    return await timedRead(request.bytes(), limits.deadline_ms, clock);
  }
  if (request.body === null) return new Uint8Array(0);
  return await readChunks(request.body.getReader(), limits, clock);
}

async function readChunks(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  limits: Omit<BodyLimits, "plan">,
  clock: SystemClock,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  const started = clock.monotonic();
  let length = 0;
  try {
    for (;;) {
      const slow = length * 1000 < MIN_BYTES_PER_SECOND * RATE_WINDOW_MS;
      const deadline_ms = Math.min(slow ? RATE_WINDOW_MS : limits.deadline_ms, limits.deadline_ms);
      const { done, value } = await timedRead(
        reader.read(),
        deadline_ms,
        clock,
        clock.monotonic() - started,
        length,
      );
      if (done) return join(chunks, length);
      length += value.byteLength;
      if (length > limits.max_bytes) throw tooLarge(limits.max_bytes, "more");
      chunks.push(value);
    }
  } catch (error) {
    // Not awaited, because a stalled client would delay the response. Fails if the stream is already broken.
    reader.cancel().catch(() => {});
    throw error;
  }
}

function join(chunks: Uint8Array[], length: number): Uint8Array {
  if (chunks.length === 1) return chunks[0]!; // length is 1
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

/**
 * Resolves as `reading` does, or rejects with `request_timeout` once the body has taken `ms` milliseconds, of
 * which `elapsed_ms` have passed. `received`: bytes before this read, for the message.
 */
function timedRead<T>(
  reading: Promise<T>,
  ms: number,
  clock: SystemClock,
  elapsed_ms = 0,
  received?: number,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.later(ms - elapsed_ms, () => {
      const bytes = received === undefined ? "" : ` with ${received} bytes received`;
      reject(
        new PreampError(
          "request_timeout",
          `Cannot read the request body: timed out after ${ms / 1000} s${bytes}`,
        ),
      );
    });
    reading.then((value) => {
      cancel();
      resolve(value);
    }, (cause) => {
      cancel();
      reject(
        new PreampError(
          "request_invalid",
          "Cannot read the request body: the client closed the connection before the body was complete",
          { cause },
        ),
      );
    });
  });
}

function declaredLength(request: Request): number | null {
  const header = request.headers.get("content-length");
  if (header === null) return null;
  const length = Number(header);
  return Number.isSafeInteger(length) && length >= 0 ? length : null;
}

function tooLarge(max_bytes: number, received: string): PreampError {
  return new PreampError(
    "body_too_large",
    `Cannot read the request body: it must have at most ${max_bytes} bytes: received ${received}`,
    { facts: { max_bytes } },
  );
}

/**
 * Decodes UTF-8 bytes, without a byte order mark.
 *
 * @throws {PreampError} `request_invalid` for invalid UTF-8.
 */
export function decodeUtf8(bytes: Uint8Array, label: string): string {
  try {
    return STRICT.decode(bytes);
  } catch (cause) {
    throw new PreampError("request_invalid", `Cannot read ${label}: it is not valid UTF-8`, {
      cause,
    });
  }
}

const STRICT = new TextDecoder("utf-8", { fatal: true });
