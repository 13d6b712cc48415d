/** The access log: one record for each request, formatted as one line of JSON. */
import { type JsonObject, toPlainObject } from "../sdk/json.ts";
import type { Redactor } from "../policy/redact.ts";
import { timestamp } from "../sdk/timestamp.ts";
import type { SystemClock } from "../process/system_clock.ts";
import type { Caller } from "../runs/types.ts";
import { escapeUnprintable } from "../text/escape.ts";

/** One line of the access log. Contains no query, header or body, since those hold prompts and keys. */
export interface LogRecord {
  level: "info" | "error";
  /** UTC, RFC 3339. */
  ts: string;
  message: "request";
  request_id: string;
  method: string;
  /** Path without query. */
  path: string;
  /** 499: the client disconnected before the response. */
  status: number;
  /** Milliseconds until the response headers, with three decimals. */
  ms: number;
  /** Name of the caller; null when the request was not authenticated. */
  caller: string | null;
  /** Code of the problem response. */
  code?: string;
  /** The error of a 500 or of a broken stream; never sent to the client. */
  error?: { name: string; message: string; stack?: string };
}

/** Receives one record for each request. Must not throw. */
export type Log = (record: LogRecord) => void;

/** The fields of a request that the access log contains. */
export interface RequestInfo {
  readonly request_id: string;
  /** Null until the key is checked. */
  caller: Caller | null;
  readonly method: string;
  readonly path: string;
}

/** Receives log events of a runtime. */
type RuntimeLog = (level: "info" | "warning" | "error", event: string, facts: JsonObject) => void;

const encoder = new TextEncoder();

/**
 * Creates the default log of an embedded server: warnings, errors and failed requests as lines of JSON on
 * stderr, with the values of `secrets` redacted.
 */
export function createDefaultLog(secrets: Redactor): { request: Log; runtime: RuntimeLog } {
  function write(fields: JsonObject): void {
    try {
      Deno.stderr.writeSync(
        encoder.encode(`${formatLogLine(secrets.redactValues(toPlainObject(fields)))}\n`),
      );
    } catch {
      // stderr is closed and there is no other place to log to
    }
  }
  return {
    request: (record) => record.level === "error" && write(record as unknown as JsonObject),
    runtime: (level, event, facts) =>
      level !== "info" && write({ level, ts: timestamp(Date.now()), message: event, ...facts }),
  };
}

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

/** Formats the record of a request as {@link formatLogLine} does. */
export function formatLogRecord(record: LogRecord): string {
  return formatLogLine(record as unknown as JsonObject);
}

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

/** Creates the access log record of a request that was answered after `ms` milliseconds. */
export function recordOf(info: RequestInfo, status: number, ms: number, clock: SystemClock): LogRecord {
  const { request_id, method, path, caller } = info;
  return {
    level: status >= 500 ? "error" : "info",
    ts: timestamp(clock.now()),
    message: "request",
    request_id,
    method,
    path,
    status,
    ms: Math.round(ms * 1000) / 1000,
    caller: caller?.name ?? null,
  };
}

/** Returns name, message and stack of a thrown value. */
export function describeError(error: unknown): NonNullable<LogRecord["error"]> {
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
