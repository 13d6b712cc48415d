/** Formats the lines of the log: JSON without unprintable characters, at most 16 KiB each. */
import { type JsonObject, toPlainObject } from "../sdk/json.ts";
import { escapeUnprintable } from "../text/escape.ts";

/** Maximum bytes of a line, including the newline. */
const MAX_LINE_BYTES = 16 * 1024;

/**
 * Maximum characters of a string and maximum fields or items of a value, tried in turn until the line fits.
 */
const CUTS = [
  { text: 4_000, items: 100 },
  { text: 500, items: 50 },
  { text: 100, items: 20 },
  { text: 40, items: 8 },
] as const;

/**
 * Formats fields as one line of JSON without the newline; unprintable characters are escaped. A line above 16
 * KiB is shortened and gets `"truncated": true`. Redact secrets before: the redactor does not find a secret
 * that was cut.
 */
export function formatLogLine(fields: JsonObject): string {
  const line = lineOf(fields);
  // perf: a UTF-16 unit takes at most three bytes, so short lines need no encoding
  if (line.length * 3 < MAX_LINE_BYTES || byteLength(line) < MAX_LINE_BYTES) return line;
  const plain = toPlainObject(fields);
  for (const cut of CUTS) {
    const shorter = lineOf({ ...shortened(plain, cut, 0) as JsonObject, truncated: true });
    if (byteLength(shorter) < MAX_LINE_BYTES) return shorter;
  }
  const { level = "error", ts = "", message = "" } = fields;
  return lineOf({
    level: String(level).slice(0, 40),
    ts: String(ts).slice(0, 40),
    message: String(message).slice(0, 100),
    truncated: true,
  });
}

function lineOf(fields: JsonObject): string {
  try {
    return escapeUnprintable(JSON.stringify(fields));
  } catch {
    return escapeUnprintable(JSON.stringify(toPlainObject(fields))); // a cycle, a bigint, a hostile toJSON
  }
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length + 1; // the newline
}

/** Returns a copy of plain data with strings, lists and objects cut to a maximum, four levels deep. */
function shortened(value: unknown, cut: typeof CUTS[number], depth: number): unknown {
  if (typeof value === "string") {
    return value.length <= cut.text ? value : `${value.slice(0, cut.text).toWellFormed()}…`;
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth === 4) return "…";
  if (Array.isArray(value)) return value.slice(0, cut.items).map((item) => shortened(item, cut, depth + 1));
  const fields = Object.entries(value).slice(0, cut.items);
  return Object.fromEntries(
    fields.map(([key, item]) => [key.slice(0, cut.text).toWellFormed(), shortened(item, cut, depth + 1)]),
  );
}

/** An error in the log; never sent to a client. */
export type LoggedError = { name: string; message: string; stack?: string };

/** Returns name, message and stack of a thrown value. */
export function describeError(error: unknown): LoggedError {
  if (!(error instanceof Error)) return { name: "NonError", message: textOf(error) };
  const { name, message, stack } = error;
  return stack === undefined ? { name, message } : { name, message, stack };
}

/** Returns the value as text, or its type when `String()` throws (no prototype, a hostile `toString`). */
function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return typeof value;
  }
}
