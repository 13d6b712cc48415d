/** The log of `serve` on stderr: a line of JSON for machines, or a short one for a person (http.md, Running). */
import { Redactor } from "../policy/redact.ts";
import { formatLogLine, formatLogRecord, type LogRecord } from "../server/access_log.ts";
import { escapeUnprintable } from "../text/escape.ts";
import { type JsonObject, toPlainObject } from "../sdk/json.ts";
import { timestamp } from "../sdk/timestamp.ts";
import { GatheredOutput } from "./terminal/buffered_output.ts";
import type { Output } from "./terminal/io.ts";
import { styleOf } from "./terminal/style.ts";

/** How lines are written. */
export type LogFormat = "json" | "pretty";

/** How bad it is. */
export type Level = "info" | "warning" | "error";

/** The log of a process. */
export interface Log {
  /** Takes the record of a request; it is written soon, together with those of the same moment. */
  request(record: LogRecord): void;
  /** Takes anything else, and writes it at once: what happened, and facts about it. */
  note(level: Level, event: string, facts: JsonObject): void;
  /** Writes what was taken and not written yet; to be called before the process ends. */
  flush(): void;
}

/** Characters of the longest line for a person. */
const MAX_PRETTY_LINE = 8_192;

/**
 * Returns a log that writes one line for each record, without the values that `secrets` knows. A request without an error is looked
 * through for those alone that `secrets` was created with: nothing of a run is in it, and a log of requests must cost little.
 */
export function createLog(
  format: LogFormat,
  output: Output,
  secrets: Redactor = new Redactor(),
  now: () => number = Date.now,
): Log {
  const gathered = new GatheredOutput(output);
  const given = secrets.child();
  const write = (line: string) => gathered.add(`${line}\n`);
  const flush = () => gathered.flush();
  const time = () => timestamp(now());
  const redactedRecord = (record: LogRecord) =>
    (record.error === undefined ? given : secrets).redactValues(
      record as unknown as JsonObject,
    ) as unknown as LogRecord;
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
      const told = Object.entries(secrets.redactValues(toPlainObject(facts))).map(([name, value]) =>
        `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`
      );
      pretty(level, time(), [event, ...told].join("  "));
      flush();
    },
    flush,
  };
}
