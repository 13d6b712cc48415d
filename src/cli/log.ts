/** The log of `serve` on stderr: a line of JSON for machines, or a short one for a person (http.md, Running). */
import { formatLogRecord, type LogRecord } from "../server/log.ts";
import { escapeUnprintable } from "../server/printable.ts";
import type { JsonObject } from "../sdk/json.ts";
import { timestamp } from "../sdk/timestamp.ts";
import { GatheredOutput } from "./gathered_output.ts";
import type { Output } from "./io.ts";
import { styleOf } from "./style.ts";

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

/** Longest line, in characters (threats.md T40). */
const MAX_LINE = 8192;

/** Returns a log that writes one line for each record; `redact` takes secrets out of a line. */
export function createLog(
  format: LogFormat,
  output: Output,
  redact: (text: string) => string = (text) => text,
  now: () => number = Date.now,
): Log {
  const gathered = new GatheredOutput(output);
  const write = (line: string) => gathered.add(`${redact(line)}\n`);
  const flush = () => gathered.flush();
  const time = () => timestamp(now());
  if (format === "json") {
    return {
      request: (record) => write(formatLogRecord(record)),
      note(level, event, facts) {
        write(noteLine({ level, ts: time(), message: event, ...facts }));
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
        escapeUnprintable(text).slice(0, MAX_LINE)
      }`,
    );
  return {
    request({ level, ts, method, path, status, ms, caller, request_id, code, error }) {
      const parts = [`${status}`, method.padEnd(4), path, `${Math.round(ms)} ms`, caller ?? "-", request_id];
      if (code !== undefined) parts.push(code);
      if (error) parts.push(`${error.name}: ${error.message}`);
      pretty(level, ts, parts.join("  "));
      if (error?.stack !== undefined) {
        for (const line of error.stack.split("\n").slice(1)) pretty(level, ts, line);
      }
    },
    note(level, event, facts) {
      const told = Object.entries(facts).map(([name, value]) =>
        `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`
      );
      pretty(level, time(), [event, ...told].join("  "));
      flush();
    },
    flush,
  };
}

function noteLine(record: JsonObject): string {
  const line = escapeUnprintable(JSON.stringify(record));
  if (line.length <= MAX_LINE) return line;
  const { level, ts, message } = record;
  return escapeUnprintable(JSON.stringify({ level, ts, message, truncated: true }));
}
