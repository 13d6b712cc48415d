/**
 * The process log of a server: lines for its records. Output that would otherwise bypass it is logged too.
 */
import { Redactor } from "../policy/redact.ts";
import { describeError, formatLogLine } from "../server/log_line.ts";
import { formatLogRecord, type LogRecord } from "../server/middleware/access_log.ts";
import { consoleMethods } from "../sdk/console.ts";
import { type JsonObject, toPlainObject } from "../sdk/json.ts";
import { timestamp } from "../sdk/timestamp.ts";

/** Severity of a log line. */
export type Level = "info" | "warning" | "error";

/** The log of a process. */
export interface Log {
  /** Logs a request. Requests of the same moment are written together. */
  request(record: LogRecord): void;
  /** Logs an event with facts about it, at once. */
  note(level: Level, event: string, facts: JsonObject): void;
  /** Writes buffered lines. Call it before the process ends. */
  flush(): void;
}

/** Characters of buffered lines that are written at once; fewer, once for each turn of the event loop. */
const MAX_BUFFERED = 64 * 1024;

/**
 * Returns a log that writes one line for each record and redacts the values in `secrets`. A request without
 * an error contains no text of a run: to keep it cheap, only the values that `secrets` was created with are
 * redacted in it, and only in what the client wrote.
 */
export function createLog(
  lines: LogLines,
  output: { write(text: string): void },
  secrets: Redactor = new Redactor(),
  now: () => number = Date.now,
): Log {
  let buffer = "";
  const own = secrets.child();
  const redacted = (record: LogRecord): LogRecord => {
    if (record.error !== undefined) {
      return secrets.redactValues(record as unknown as JsonObject) as unknown as LogRecord;
    }
    const { method, path, run_id } = record;
    const copy = { ...record, method: own.redactText(method), path: own.redactText(path) };
    return run_id === undefined ? copy : { ...copy, run_id: own.redactText(run_id) };
  };
  const add = (line: string) => {
    if (buffer === "") setTimeout(flush, 0);
    buffer += `${line}\n`;
    if (buffer.length > MAX_BUFFERED) flush();
  };
  /** Text that cannot be written is lost: a log must not end the work that it reports. */
  const flush = () => {
    const text = buffer;
    buffer = "";
    if (text === "") return;
    try {
      output.write(text);
    } catch {
      // there is no other output for this error
    }
  };
  return {
    request: (record) => add(lines.request(redacted(record))),
    note(level, event, facts) {
      const plain = secrets.redactValues(toPlainObject(facts));
      add(lines.note(level, timestamp(now()), event, plain));
      flush();
    },
    flush,
  };
}

/** Formats what is logged. */
export interface LogLines {
  request(record: LogRecord): string;
  note(level: Level, ts: string, event: string, facts: JsonObject): string;
}

/** Lines of JSON. */
export const JSON_LINES: LogLines = {
  request: formatLogRecord,
  note: (level, ts, event, facts) => formatLogLine({ level, ts, code: event, message: event, ...facts }),
};

/**
 * Milliseconds after the start: loading `node:process` takes 10 ms, which the first run need not wait for.
 */
const NODE_WARNINGS_AFTER_MS = 1_000;

/**
 * Logs unhandled errors and console output, and, after a delay, warnings of Node's libraries. An unhandled
 * error in one module must not end other runs.
 */
export function logStrayOutput(log: Log, node_warnings_after_ms = NODE_WARNINGS_AFTER_MS): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    log.note("error", "unhandled_rejection", describeError(event.reason));
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    log.note("error", "uncaught_error", describeError(event.error));
  });
  Object.assign(console, consoleMethods((level, text) => log.note(level, "console", { text }), Deno.inspect));
  Deno.unrefTimer(setTimeout(() => logNodeWarnings(log), node_warnings_after_ms));
}

async function logNodeWarnings(log: Log): Promise<void> {
  const { default: process } = await import("node:process");
  process.removeAllListeners("warning"); // the default listener writes to stderr
  process.on("warning", (warning: Error) => log.note("warning", "node_warning", describeError(warning)));
}
