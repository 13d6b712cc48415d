/** Server-sent events on the wire (WHATWG HTML §9.2). Frames texts; does not know what a run is. */

/** One event. */
export interface SseEvent {
  /** What `Last-Event-ID` will say. */
  id?: number;
  /** Name; control characters in it become U+FFFD, so that no name can forge a line. */
  event?: string;
  /** Any text; each line of it becomes a `data` line. */
  data: string;
}

/** A comment: keeps a connection open and says nothing. */
export const SSE_PING = ": ping\n\n";

/** Returns the event as one frame, its empty line included. */
export function sseFrame({ id, event, data }: SseEvent): string {
  let frame = id === undefined ? "" : `id: ${id}\n`;
  if (event !== undefined) frame += `event: ${oneLine(event)}\n`;
  return `${frame}data: ${data.includes("\n") || data.includes("\r") ? dataLines(data) : data}\n\n`;
}

/** Returns the frame that tells a reader how many milliseconds to wait before it connects again. */
export function sseRetry(ms: number): string {
  return `retry: ${ms}\n\n`;
}

function dataLines(data: string): string {
  return data.split(/\r\n|\r|\n/).join("\ndata: ");
}

function oneLine(name: string): string {
  return name.replaceAll(/\p{Cc}/gu, "\ufffd");
}
