/** Responses whose text is known in full. They end with a newline; large ones state their length. */

/** Larger responses are compressed by `encodeText`; smaller ones fit into one packet. */
const LARGE_BYTES = 1_400;

const encoder = new TextEncoder();

/** Creates a response with the text, and a newline at its end. A large response has a `Content-Length`. */
export function textResponse(text: string, status: number, headers: Record<string, string>): Response {
  const line = text.endsWith("\n") ? text : `${text}\n`;
  if (line.length < LARGE_BYTES) return new Response(line, { status, headers });
  const bytes = encoder.encode(line);
  return new Response(bytes, { status, headers: { ...headers, "content-length": String(bytes.length) } });
}

/** Headers of every JSON response. */
export const JSON_HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
} as const;

/** Creates a JSON response. */
export function jsonResponse(body: unknown, status = 200, headers?: Record<string, string>): Response {
  return textResponse(JSON.stringify(body), status, headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS);
}

/** Creates the response of a list that has one page. */
export function listResponse(data: readonly unknown[]): Response {
  return jsonResponse({ data, next_cursor: null });
}

/** Creates an empty response with status 204. */
export function noContent(headers: Record<string, string> = {}): Response {
  return new Response(null, { status: 204, headers: { "cache-control": "no-store", ...headers } });
}
