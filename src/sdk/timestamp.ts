/** Formats and reads points in time. */

let last_ms = NaN;
let last_text = "";

/**
 * Returns a point in time as RFC 3339 text in UTC with milliseconds. The last text is cached: formatting
 * takes 1 µs, and many entries of a log fall into the same millisecond.
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

/** Returns the milliseconds since the epoch of a text of {@link timestamp}. */
export function millisecondsOf(text: string): number {
  return text === last_text ? last_ms : Date.parse(text);
}
