/** Formats server-sent events (WHATWG HTML §9.2). Does not know what a run is. */
import { documentError } from "../../plan/check/findings.ts";
import { quoteTruncated } from "../../text/escape.ts";
import { wholeNumber } from "../body/validation.ts";

/** A comment that keeps the connection open. */
export const SSE_PING = ": ping\n\n";

/**
 * Formats an event as one frame, including the empty line at its end.
 * @param id Value of `Last-Event-ID` when the client reconnects.
 * @param event Name; control characters become U+FFFD, so that a name cannot add a line.
 */
export function sseFrame(id: number, event: string, data: unknown): string {
  return `id: ${id}\nevent: ${event.replaceAll(/\p{Cc}/gu, "\ufffd")}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Formats the frame that sets the client's reconnection time, in milliseconds. */
export function sseRetry(ms: number): string {
  return `retry: ${ms}\n\n`;
}

/**
 * Returns the seq in the `Last-Event-ID` header; undefined without the header.
 *
 * @throws {PreampError} `request_invalid` if the header is not a seq.
 */
export function lastEventId(headers: Headers): number | undefined {
  const header = headers.get("last-event-id");
  if (header === null || header === "") return undefined;
  const seq = wholeNumber(header);
  if (typeof seq === "number") return seq;
  const message = `Cannot read Last-Event-ID: it must be a whole number: received ${
    quoteTruncated(header, 80)
  }`;
  throw documentError("request_invalid", "the request", [{ path: "Last-Event-ID", message }]);
}
