/** The log of requests: one record for each, and the one line it is written as. */
import { timestamp } from "../sdk/timestamp.ts";
import type { ServerClock } from "./clock.ts";
import type { Visit } from "./exchange.ts";
import { escapeUnprintable } from "./printable.ts";

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

/** Longest line, in characters (threats.md T40). */
const MAX_LINE = 8192;

/** Returns the record as one line of JSON without line end, every unprintable character escaped, at most 8 KiB long. */
export function formatLogRecord(record: LogRecord): string {
  const line = escapeUnprintable(JSON.stringify(record));
  if (line.length <= MAX_LINE) return line;
  const { error, ...rest } = record;
  const short = { ...rest, path: record.path.slice(0, 256), truncated: true };
  return escapeUnprintable(
    JSON.stringify(
      error ? { ...short, error: { name: error.name, message: error.message.slice(0, 512) } } : short,
    ),
  );
}

/** Returns the record of a request that was answered after `ms` milliseconds, kept to the microsecond: further digits are noise. */
export function recordOf(visit: Visit, status: number, ms: number, clock: ServerClock): LogRecord {
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
