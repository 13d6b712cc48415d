/** Reading a request body that may be huge, endless or slow: never more than the limit, never longer than the deadline. */
import type { DocumentLimits } from "../../plan/parse/document_limits.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { ServerClock } from "../clock.ts";

/** Bounds of reading one body. */
export interface ReadLimits {
  /** Bytes; one more is `body_too_large`. */
  max_bytes: number;
  /** Milliseconds for the whole body. */
  deadline_ms: number;
}

/** Bounds of one body. */
export interface BodyLimits extends ReadLimits {
  /** Bounds of a plan in it. */
  plan: DocumentLimits;
}

/** The slowest sender that is waited for, and over how long it is measured (threats.md T11). */
const MIN_BYTES_PER_SECOND = 1024;
const RATE_WINDOW_MS = 5000;
/** Below this a declared length needs no watch on its rate: at the least rate the deadline would not be reached. */
const SMALL_BODY_BYTES = 10 * 1024;

/**
 * Resolves to the body's bytes; empty when there is none. At most `max_bytes` and one chunk are read. Deno.serve has no
 * deadline of its own, so this one is all there is: `deadline_ms` in all, and at least 1 KiB/s over the first five seconds.
 *
 * @throws {PreampError} `unsupported_media_type` for an encoded body, `body_too_large`, `request_timeout`, `request_invalid`
 * when the sender breaks off.
 */
export async function readBody(
  request: Request,
  limits: ReadLimits,
  clock: ServerClock,
): Promise<Uint8Array> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.trim().toLowerCase() !== "identity") {
    throw new PreampError(
      "unsupported_media_type",
      `Cannot read the request body: it must not be encoded: received Content-Encoding ${
        JSON.stringify(encoding)
      }`,
    );
  }
  const declared = declaredLength(request);
  if (declared !== null && declared > limits.max_bytes) throw tooLarge(limits.max_bytes, String(declared));
  // The HTTP layer never hands out more than the declared length, so a small body needs no reader of ours.
  if (declared !== null && declared <= SMALL_BODY_BYTES) {
    return await inTime(request.bytes(), limits.deadline_ms, clock);
  }
  if (request.body === null) return new Uint8Array(0);
  return await readChunks(request.body.getReader(), limits, clock);
}

async function readChunks(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  limits: ReadLimits,
  clock: ServerClock,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  const started = clock.monotonic();
  let length = 0;
  try {
    for (;;) {
      const elapsed = clock.monotonic() - started;
      const slow = length * 1000 < MIN_BYTES_PER_SECOND * RATE_WINDOW_MS;
      // Woken at the window's end or at the deadline, whichever is next and still binding.
      const until = Math.min(slow ? RATE_WINDOW_MS : limits.deadline_ms, limits.deadline_ms);
      const { done, value } = await inTime(reader.read(), Math.max(0, until - elapsed), clock);
      if (done) return join(chunks, length);
      length += value.byteLength;
      if (length > limits.max_bytes) throw tooLarge(limits.max_bytes, "more");
      chunks.push(value);
    }
  } catch (error) {
    // Not awaited: a sender that hangs would hold up the answer. A stream that is broken already has nothing to cancel.
    reader.cancel().catch(() => {});
    throw error;
  }
}

function join(chunks: Uint8Array[], length: number): Uint8Array {
  if (chunks.length === 1) return chunks[0]!; // length 1
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

/** Resolves as `reading` does, or rejects with `request_timeout` after `ms` milliseconds. */
function inTime<T>(reading: Promise<T>, ms: number, clock: ServerClock): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = clock.timer(ms, () => {
      reject(
        new PreampError(
          "request_timeout",
          "Cannot read the request body: it came too slowly: received a part of it in time",
        ),
      );
    });
    reading.then((value) => {
      stop();
      resolve(value);
    }, (cause) => {
      stop();
      reject(
        new PreampError(
          "request_invalid",
          "Cannot read the request body: the sender broke off: received a part of it",
          {
            cause,
          },
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
    `Cannot read the request body: at most ${max_bytes} bytes are taken: received ${received}`,
    { facts: { max_bytes } },
  );
}
