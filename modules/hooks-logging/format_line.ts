/** Formats an event as one line of the log. */
import type { JsonObject } from "preamp/base";

/** Maximum bytes of a line, including the line feed. */
export const MAX_LINE_BYTES = 8_192;

/** Values of `lvl`. */
type Level = "DEBUG" | "INFO" | "WARNING" | "ERROR";

/** Event in the log that reports the number of lines dropped because of a slow sink: `{count}`. */
export const DROPPED = "hooks-logging:dropped";

const WARNINGS: ReadonlySet<string> = new Set([
  "policy:violation",
  "approval:denied",
  "provider:retry",
  "provider:throttle",
  DROPPED,
]);

const SCHEMA = { name: "amplifier.log", ver: "1.0.0" } as const;

/** Bounds of a copy of an event's data. */
interface Bounds {
  text: number;
  /** Approximate maximum characters of the copy. */
  total: number;
}

const MAX_DEPTH = 32;

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

/** Returns whether an event is a delta; deltas are numerous, and the complete answer contains them. */
export function isDelta(event: string): boolean {
  return event.endsWith(":delta") || event.endsWith("_delta");
}

/** Returns the level of an event; for `user:notification` it follows from the notification's level. */
function levelOf(event: string, userLevel: unknown): Level {
  if (event === "user:notification") {
    return userLevel === "error" ? "ERROR" : userLevel === "warning" ? "WARNING" : "INFO";
  }
  if (event.endsWith(":error") || event.endsWith("_failed")) return "ERROR";
  if (WARNINGS.has(event)) return "WARNING";
  return isDelta(event) ? "DEBUG" : "INFO";
}

/** Returns a copy within bounds, and whether anything was cut. Takes time in proportion to the copy, not to the data. */
function shorten(data: unknown, bounds: Bounds): { value: unknown; cut: boolean } {
  let cut = false;
  let left = bounds.total;

  const shortText = (text: string, limit: number) => {
    const allowed = Math.max(0, Math.min(limit, left));
    left -= Math.min(text.length, allowed) + 4;
    if (text.length <= allowed) return text;
    cut = true;
    return `${text.slice(0, allowed).toWellFormed()}[${text.length - allowed} more]`;
  };
  const copyItems = (items: readonly unknown[], depth: number) => {
    const copies: unknown[] = [];
    for (const [index, item] of items.entries()) {
      if (left <= 0) {
        cut = true;
        copies.push(`[${items.length - index} more]`);
        break;
      }
      left -= 1;
      copies.push(copy(item, depth + 1));
    }
    return copies;
  };
  const copyFields = (fields: object, depth: number) => {
    const copies: JsonObject = {};
    for (const [key, item] of Object.entries(fields)) {
      if (left <= 0) {
        cut = true;
        break;
      }
      const name = shortText(key, Math.min(bounds.text, 180));
      if (name !== "__proto__") copies[name] = copy(item, depth + 1);
    }
    return copies;
  };
  const copy = (value: unknown, depth: number): unknown => {
    if (typeof value === "string") return shortText(value, bounds.text);
    if (typeof value !== "object" || value === null) {
      left -= 8;
      return value;
    }
    if (depth === MAX_DEPTH) {
      cut = true;
      return "[Deep]";
    }
    return Array.isArray(value) ? copyItems(value, depth) : copyFields(value, depth);
  };
  return { value: copy(data, 0), cut };
}
