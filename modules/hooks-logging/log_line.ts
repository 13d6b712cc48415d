/** Formats an event as a line of the log. */
import type { JsonObject } from "preamp/base";

/** Maximum bytes of a line, including the line feed. */
export const MAX_LINE_BYTES = 8_192;

/** Event in the log that reports the number of lines dropped because of a slow sink: `{count}`. */
export const DROPPED = "hooks-logging:dropped";

const WARNINGS: ReadonlySet<string> = new Set([
  "policy:violation",
  "approval:denied",
  "provider:retry",
  "provider:throttle",
  DROPPED,
]);

/** Maximum characters of a text and items of a list in data that is too long. */
const MAX_TEXT = 500, MAX_ITEMS = 20;

/** Maximum characters of data that is still too long and is written as text; each may take six bytes. */
const MAX_DATA_TEXT = 1_000;

/** Fields of a handler's payload that belong to the envelope, not to `data`. */
const ENVELOPE = ["session_id", "parent_id", "turn_id", "iteration"] as const;

/**
 * Returns the line of an event as JSON with a line feed: `ts, lvl, schema, event, session_id, …, data`. The
 * line has no control characters. In longer data, texts and lists are shortened; if that does not suffice,
 * `data` is the beginning of its JSON text. The line then has `"truncated": true`. Secrets must be redacted
 * before, because truncation could cut one in half.
 *
 * @param now Milliseconds since the epoch, used when the payload has no timestamp.
 */
export function formatLine(event: string, payload: JsonObject, now: number): string {
  const { timestamp, ...data } = payload;
  const envelope: JsonObject = {};
  for (const key of ENVELOPE) {
    const value = data[key];
    delete data[key];
    if (typeof value === "number") envelope[key] = value;
    else if (typeof value === "string") envelope[key] = value.slice(0, 128);
  }
  const head = {
    ts: typeof timestamp === "string" ? timestamp.slice(0, 40) : new Date(now).toISOString(),
    lvl: levelOf(event, payload.level),
    schema: { name: "amplifier.log", ver: "1.0.0" },
    event: event.slice(0, 128),
    ...envelope,
  };
  const cut = (data: unknown) => lineOf({ ...head, truncated: true, data });
  return lineOf({ ...head, data }) ?? cut(JSON.parse(JSON.stringify(data, shorten))) ??
    cut(JSON.stringify(data).slice(0, MAX_DATA_TEXT).toWellFormed())!;
}

/** Returns the line, or null when it is too long. */
function lineOf(entry: JsonObject): string | null {
  const line = escapeInvisible(JSON.stringify(entry)) + "\n";
  return line.length <= MAX_LINE_BYTES && new TextEncoder().encode(line).length <= MAX_LINE_BYTES
    ? line
    : null;
}

/** Shortens a text or a list, as a replacer of `JSON.stringify`. */
function shorten(_key: string, value: unknown): unknown {
  if (typeof value === "string" && value.length > MAX_TEXT) {
    return `${value.slice(0, MAX_TEXT).toWellFormed()}[${value.length - MAX_TEXT} more]`;
  }
  if (!Array.isArray(value) || value.length <= MAX_ITEMS) return value;
  return [...value.slice(0, MAX_ITEMS), `[${value.length - MAX_ITEMS} more]`];
}

/**
 * Escapes characters that JSON permits unescaped: DEL, C1 controls (which can start terminal sequences), line
 * separators and marks that change the direction of text. They only occur in strings, where an escape has the
 * same meaning.
 */
function escapeInvisible(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => "\\u" + character.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

/** Returns whether an event is a delta; deltas are numerous, and the complete answer contains them. */
export function isDelta(event: string): boolean {
  return event.endsWith(":delta") || event.endsWith("_delta");
}

/** Returns the level of an event; for `user:notification` it follows from the notification's level. */
function levelOf(event: string, user_level: unknown): string {
  if (event === "user:notification") {
    return user_level === "error" ? "ERROR" : user_level === "warning" ? "WARNING" : "INFO";
  }
  if (event.endsWith(":error") || event.endsWith("_failed")) return "ERROR";
  if (WARNINGS.has(event)) return "WARNING";
  return isDelta(event) ? "DEBUG" : "INFO";
}
