/** The process log of `serve` on stderr: one line of JSON for each record, or a short line for a person. */
import { Redactor } from "../policy/redact.ts";
import { formatLogLine } from "../server/log_line.ts";
import { formatLogRecord, type LogRecord } from "../server/middleware/access_log.ts";
import { escapeUnprintable } from "../text/escape.ts";
import { type JsonObject, toPlainObject } from "../sdk/json.ts";
import { timestamp } from "../sdk/timestamp.ts";
import type { Output } from "./terminal/io.ts";
import { styleOf } from "./terminal/format.ts";

/** Format of log lines. */
export type LogFormat = "json" | "pretty";

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

/** Characters of the longest pretty line. */
const MAX_PRETTY_LINE = 8_192;

/**
 * Returns a log that writes one line for each record and redacts the values in `secrets`. A request without an error
 * contains no text of a run: to keep it cheap, only the values that `secrets` was created with are redacted in it, and only in
 * what the client wrote.
 */
export function createLog(
  format: LogFormat,
  output: Output,
  secrets: Redactor = new Redactor(),
  now: () => number = Date.now,
): Log {
  const buffer = new BufferedOutput(output);
  const own = secrets.child();
  const write = (line: string) => buffer.add(`${line}\n`);
  const flush = () => buffer.flush();
  const time = () => timestamp(now());
  const redactedRecord = (record: LogRecord): LogRecord => {
    if (record.error !== undefined) {
      return secrets.redactValues(record as unknown as JsonObject) as unknown as LogRecord;
    }
    const { method, path, run_id } = record;
    const redacted = { ...record, method: own.redactText(method), path: own.redactText(path) };
    return run_id === undefined ? redacted : { ...redacted, run_id: own.redactText(run_id) };
  };
  if (format === "json") {
    return {
      request: (record) => write(formatLogRecord(redactedRecord(record))),
      note(level, event, facts) {
        write(
          formatLogLine({
            level,
            ts: time(),
            code: event,
            message: event,
            ...secrets.redactValues(toPlainObject(facts)),
          }),
        );
        flush();
      },
      flush,
    };
  }
  const { dim, red, yellow } = styleOf(output);
  const paint = { info: dim, warning: yellow, error: red } satisfies Record<Level, (text: string) => string>;
  const pretty = (level: Level, ts: string, text: string) =>
    write(
      `${dim(ts.slice(11, 23))} ${paint[level](level.padEnd(7))} ${
        escapeUnprintable(text).slice(0, MAX_PRETTY_LINE)
      }`,
    );
  return {
    request(record) {
      const { level, ts, method, path, status, ms, caller, request_id, code, error } = redactedRecord(record);
      const parts = [`${status}`, method.padEnd(4), path, `${Math.round(ms)} ms`, caller ?? "-", request_id];
      if (code !== undefined) parts.push(code);
      if (error) parts.push(`${error.name}: ${error.message}`);
      pretty(level, ts, parts.join("  "));
      if (error?.stack !== undefined) {
        for (const line of error.stack.split("\n").slice(1)) pretty(level, ts, line);
      }
    },
    note(level, event, facts) {
      const fields = Object.entries(secrets.redactValues(toPlainObject(facts))).map(([name, value]) =>
        `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`
      );
      pretty(level, time(), [event, ...fields].join("  "));
      flush();
    },
    flush,
  };
}

/** Characters after which the buffer is written at once. */
const MAX_BUFFERED = 64 * 1024;

/** Buffers the text of one output and writes it once for each turn of the event loop, so that many lines need one write. */
class BufferedOutput {
  readonly #output: Pick<Output, "write">;
  #buffer = "";

  /** @param output Call `flush()` before you write to it directly. */
  constructor(output: Pick<Output, "write">) {
    this.#output = output;
  }

  /** Buffers text; it is written soon, in order. */
  add(text: string): void {
    if (this.#buffer === "") setTimeout(() => this.flush(), 0);
    this.#buffer += text;
    if (this.#buffer.length > MAX_BUFFERED) this.flush();
  }

  /**
   * Writes the buffer. Call it before the process ends. Text that cannot be written, for example to a full disk or a
   * full pipe, is lost: a log must not end the work that it reports.
   */
  flush(): void {
    const text = this.#buffer;
    this.#buffer = "";
    if (text === "") return;
    try {
      this.#output.write(text);
    } catch {
      // there is no other output for this error
    }
  }
}
