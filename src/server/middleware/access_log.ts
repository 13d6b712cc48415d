/** The access log: one record for each request. */
import { type JsonObject, toPlainObject } from "../../sdk/json.ts";
import type { Redactor } from "../../policy/redact.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { HonoContext, Middleware, RequestContext } from "../context.ts";
import { describeError, formatLogLine, type LoggedError } from "../log_line.ts";

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
  /** Address of the client: see src/docs/operating.md#behind-a-reverse-proxy. Absent without a connection. */
  client?: string;
  /** Name of the caller; null when the request was not authenticated. */
  caller: string | null;
  /** Id of the run that the response is about. */
  run_id?: string;
  /** Status of that run, if the response states it. */
  run_status?: string;
  /** Code of the problem response. */
  code?: string;
  /** The error of a 500, of a broken stream or of a page without style; never sent to the client. */
  error?: LoggedError;
}

/** Receives one record for each request. Must not throw. */
export type Log = (record: LogRecord) => void;

/** Logs every request once its answer is known. */
export function logRequests(log: Log): Middleware {
  return async (c, next) => {
    await next();
    log(requestRecord(c));
  };
}

function requestRecord(c: HonoContext): LogRecord {
  const { env } = c;
  const { status, headers } = c.get("answer");
  const record = recordOf(env, status, env.server.clock.monotonic() - env.started);
  const { "preamp-run-id": run_id, "preamp-run-status": run_status } = headers;
  if (run_id !== undefined) record.run_id = run_id; // of another run than that of the path
  if (run_status !== undefined) record.run_status = run_status;
  if (env.failure?.error) record.level = "error"; // also of an answer that lacks a part
  return Object.assign(record, env.failure);
}

/** Creates the record of an error after the response started, such as a broken stream. */
export function errorRecord(context: RequestContext, error: unknown): LogRecord {
  return { ...recordOf(context, 200, 0), level: "error", error: describeError(error) };
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

/** Formats the record of a request as {@link formatLogLine} does. */
export function formatLogRecord(record: LogRecord): string {
  return formatLogLine(record as unknown as JsonObject);
}

function recordOf(context: RequestContext, status: number, ms: number): LogRecord {
  const { request_id, method, path, client, caller, run_id, server } = context;
  return {
    level: status >= 500 ? "error" : "info",
    ts: timestamp(server.clock.now()),
    message: "request",
    request_id,
    method,
    path,
    status,
    ms: Math.round(ms * 1000) / 1000,
    ...(client.address === null ? {} : { client: client.address }),
    caller: caller?.name ?? null,
    ...(run_id === undefined ? {} : { run_id: run_id.slice(0, 80) }),
  };
}
