/**
 * Answers as data. A `Response` is made where somebody asks for one (`App.fetch`); making it, and taking it apart again to put it
 * on the socket, costs as much as all that the server does beside the run.
 */

/** What is answered to a request. */
export interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
}

const JSON_HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
} as const;

/** Returns a JSON answer. */
export function answer(body: unknown, status = 200, headers?: Record<string, string>): Answer {
  return {
    status,
    headers: headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS,
    body: JSON.stringify(body),
  };
}

/** Returns a JSON list that is its own only page. */
export function answerList(data: readonly unknown[]): Answer {
  return answer({ data, next_cursor: null });
}

/** Returns the answer of a deletion. */
export function noContent(headers: Record<string, string> = {}): Answer {
  return { status: 204, headers: { "cache-control": "no-store", ...headers }, body: null };
}

/** Returns an answer as a `Response`. */
export function toResponse({ status, headers, body }: Answer): Response {
  return new Response(body, { status, headers });
}
