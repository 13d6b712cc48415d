/** Formats server-sent events (WHATWG HTML §9.2). Does not know what a run is. */
import { documentError } from "../../plan/check/findings.ts";
import { quoteTruncated } from "../../text/escape.ts";
import { wholeNumber } from "../body/validation.ts";

/** One event. */
export interface SseEvent {
  /** Value of `Last-Event-ID` when the client reconnects. */
  id?: number;
  /** Name; control characters become U+FFFD, so that a name cannot add a line. */
  event?: string;
  /** Any text; each line becomes a `data` line. */
  data: string;
}

/** A comment that keeps the connection open. */
export const SSE_PING = ": ping\n\n";

/** Formats an event as one frame, including the empty line at its end. */
export function sseFrame({ id, event, data }: SseEvent): string {
  let frame = id === undefined ? "" : `id: ${id}\n`;
  if (event !== undefined) frame += `event: ${oneLine(event)}\n`;
  return `${frame}data: ${data.includes("\n") || data.includes("\r") ? dataLines(data) : data}\n\n`;
}

/** Formats the frame that sets the client's reconnection time, in milliseconds. */
export function sseRetry(ms: number): string {
  return `retry: ${ms}\n\n`;
}

function dataLines(data: string): string {
  return data.split(/\r\n|\r|\n/).join("\ndata: ");
}

function oneLine(name: string): string {
  return name.replaceAll(/\p{Cc}/gu, "\ufffd");
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
