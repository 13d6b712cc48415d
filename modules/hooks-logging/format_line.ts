/** One event → one line of the log (behaviour.md §6.3). */
import type { JsonObject } from "preamp";
import { levelOf } from "./events.ts";
import { type Bounds, shorten } from "./shorten.ts";

/** Bytes of a line, its end included (threats T40). */
export const MAX_LINE_BYTES = 8_192;

const SCHEMA = { name: "amplifier.log", ver: "1.0.0" } as const;

/** Tried in turn until the line fits. A character is at most six bytes (`\u001b`), so the last always does. */
const BOUNDS: readonly Bounds[] = [
  { text: 6_000, total: 6_000 },
  { text: 180, total: 3_000 }, // 180: the length behaviour.md §4.9 shortens values to
  { text: 60, total: 400 },
];

/** Fields of the envelope that a handler's payload carries beside the event's own. */
const ENVELOPE = ["session_id", "parent_id", "turn_id", "iteration"] as const;

/**
 * Returns the line of an event as JSON with a line feed: `ts, lvl, schema, event, session_id, …, data`. No control byte is in it;
 * longer data is cut, and the line then says `"truncated": true`. Secrets must be redacted before: a cut would hide half of one.
 *
 * @param now Milliseconds since the epoch, for a payload without timestamp.
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
    line = escapeAll(
      JSON.stringify(cut ? { ...head, truncated: true, data: value } : { ...head, data: value }),
    );
    if (byteLength(line) < MAX_LINE_BYTES) break;
  }
  return line + "\n";
}

/**
 * JSON leaves DEL, the C1 controls (one of them starts terminal sequences), line separators and the marks that turn the
 * direction of text as they are. All of them can only be inside strings, where an escape means the same.
 */
function escapeAll(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => "\\u" + character.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
