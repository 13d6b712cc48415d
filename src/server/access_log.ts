/** The log of requests: one record for each, and the one line it is written as. */
import { type JsonObject, toPlainObject } from "../sdk/json.ts";
import type { Redactor } from "../policy/redact.ts";
import { timestamp } from "../sdk/timestamp.ts";
import type { ServerClock } from "./clock.ts";
import type { Log, RequestInfo } from "./context.ts";
import { escapeUnprintable } from "../text/escape.ts";

/** What is told of one request. No query, header or body: prompts and keys travel there. */
export interface LogRecord {
  level: "info" | "error";
  /** UTC, RFC 3339. */
  ts: string;
  message: "request";
  request_id: string;
  method: string;
  /** Path without query. */
  path: string;
  /** 499: the client left before there was an answer. */
  status: number;
  /** Milliseconds until the answer's headers, to the microsecond. */
  ms: number;
  /** Name of the caller; null when nobody was authenticated. */
  caller: string | null;
  /** Code of the problem that was answered. */
  code?: string;
  /** What failed, for a 500 or a broken stream; never sent to the client. */
  error?: { name: string; message: string; stack?: string };
}

/** Gets what happens in a runtime. */
type RuntimeLog = (level: "info" | "warning" | "error", event: string, facts: JsonObject) => void;

const encoder = new TextEncoder();

/**
 * Returns the log of an application that names none: warnings and errors as lines of JSON on stderr, without the values that
 * `secrets` knows. Requests that were answered are not among them.
 */
export function createDefaultLog(secrets: Redactor): { request: Log; runtime: RuntimeLog } {
  function write(fields: JsonObject): void {
    try {
      Deno.stderr.writeSync(
        encoder.encode(`${formatLogLine(secrets.redactValues(toPlainObject(fields)))}\n`),
      );
    } catch {
      // stderr is closed, and there is no other place to write to
    }
  }
  return {
    request: (record) => record.level === "error" && write(record as unknown as JsonObject),
    runtime: (level, event, facts) =>
      level !== "info" && write({ level, ts: timestamp(Date.now()), message: event, ...facts }),
  };
}

/** Bytes of the longest line, its end included. */
const MAX_LINE_BYTES = 16 * 1024;

/** Characters that each text of a line may have, tried in turn until the line fits, and fields or items that a value may have. */
const CUTS = [
  { text: 4_000, items: 100 },
  { text: 500, items: 50 },
  { text: 100, items: 20 },
  { text: 40, items: 8 },
] as const;

/** Returns the record of a request as {@link formatLogLine} does. */
export function formatLogRecord(record: LogRecord): string {
  return formatLogLine(record as unknown as JsonObject);
}

/**
 * Returns fields as one line of JSON without line end, every unprintable character escaped. A line of more than 16 KiB is made
 * shorter and gets `"truncated": true`. Secrets must be redacted before: a cut would hide half of one.
 */
export function formatLogLine(fields: JsonObject): string {
  const line = lineOf(fields);
  // a character takes at most three bytes, and with its escape six
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
  return new TextEncoder().encode(text).length + 1; // its end
}

/** Returns plain data with no more than some characters and items in each place, four levels deep. */
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

/** Returns the record of a request that was answered after `ms` milliseconds, kept to the microsecond: further digits are noise. */
export function recordOf(visit: RequestInfo, status: number, ms: number, clock: ServerClock): LogRecord {
  const { request_id, method, path, caller } = visit;
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

/** Returns anything that was thrown as the log shows it. */
export function describeError(error: unknown): NonNullable<LogRecord["error"]> {
  if (!(error instanceof Error)) return { name: "NonError", message: textOf(error) };
  const told = { name: error.name, message: error.message };
  return error.stack === undefined ? told : { ...told, stack: error.stack };
}

/** What has no text of its own (an object without prototype, a hostile `toString`) is told by its kind. */
function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return typeof value;
  }
}
