/** Formats an event as one line of the log. */
import type { JsonObject } from "preamp/base";
import { levelOf } from "./events.ts";
import { type Bounds, shorten } from "./shorten.ts";

/** Maximum bytes of a line, including the line feed. */
export const MAX_LINE_BYTES = 8_192;

const SCHEMA = { name: "amplifier.log", ver: "1.0.0" } as const;

/** Bounds to try in order until the line fits. A character has at most six bytes (`\u001b`), so the last always fits. */
const BOUNDS: readonly Bounds[] = [
  { text: 6_000, total: 6_000 },
  { text: 180, total: 3_000 },
  { text: 60, total: 400 },
];

/** Fields of a handler's payload that belong to the envelope, not to `data`. */
const ENVELOPE = ["session_id", "parent_id", "turn_id", "iteration"] as const;

/**
 * Returns the line of an event as JSON with a line feed: `ts, lvl, schema, event, session_id, …, data`. The line has no control
 * characters. Longer data is truncated, and the line has `"truncated": true`. Secrets must be redacted before, because
 * truncation could cut one in half.
 *
 * @param now Milliseconds since the epoch, used when the payload has no timestamp.
 */
export function formatLine(event: string, payload: JsonObject, now: number): string {
  const { timestamp, ...fields } = payload;
  const envelope: JsonObject = {};
  for (const key of ENVELOPE) {
    const value = fields[key];
    delete fields[key];
    if (typeof value === "number") envelope[key] = value;
    else if (typeof value === "string") envelope[key] = value.slice(0, 128);
  }
  const head = {
    ts: typeof timestamp === "string" ? timestamp.slice(0, 40) : new Date(now).toISOString(),
    lvl: levelOf(event, payload.level),
    schema: SCHEMA,
    event,
    ...envelope,
  };
  let line = "";
  for (const bounds of BOUNDS) {
    const { value, cut } = shorten(fields, bounds);
    line = escapeInvisible(
      JSON.stringify(cut ? { ...head, truncated: true, data: value } : { ...head, data: value }),
    );
    if (byteLength(line) < MAX_LINE_BYTES) break;
  }
  return line + "\n";
}

/**
 * Escapes characters that JSON permits unescaped: DEL, C1 controls (which can start terminal sequences), line separators and
 * marks that change the direction of text. They only occur in strings, where an escape has the same meaning.
 */
function escapeInvisible(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => "\\u" + character.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
