/** Moments as text. */

let last_ms = NaN;
let last_text = "";

/**
 * Returns a moment as RFC 3339 text in UTC with milliseconds. The last one is kept: writing it takes 1 µs, and what happens
 * within one millisecond (the entries of a log, the payloads of their handlers) is told with the same text.
 *
 * @param ms Milliseconds since the epoch.
 */
export function timestamp(ms: number): string {
  if (ms !== last_ms) {
    last_text = new Date(ms).toISOString();
    last_ms = ms;
  }
  return last_text;
}
