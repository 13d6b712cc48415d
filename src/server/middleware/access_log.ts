/** The access log: one record for each request. */
import { type JsonObject, toPlainObject } from "../../sdk/json.ts";
import type { Redactor } from "../../policy/redact.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { SystemClock } from "../../process/system_clock.ts";
import type { Middleware, RequestContext } from "../context.ts";
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
  /** Name of the caller; null when the request was not authenticated. */
  caller: string | null;
  /** Id of the run that the response is about. */
  run_id?: string;
  /** Status of that run, if the response states it. */
  run_status?: string;
  /** Code of the problem response. */
  code?: string;
  /** The error of a 500 or of a broken stream; never sent to the client. */
  error?: LoggedError;
}

/** Receives one record for each request. Must not throw. */
export type Log = (record: LogRecord) => void;

/**
 * Logs every request, and sends its id as `Preamp-Request-Id`. `Preamp-Request-Id` of the client is not used,
 * so that an id is unique in the log.
 */
export function logRequests(log: Log | undefined, clock: SystemClock): Middleware {
  return async (context, next) => {
    const started = clock.monotonic();
    await next();
    const { env, res } = context;
    res.headers.set("preamp-request-id", env.request_id);
    log?.({
      ...recordOf(env, res.status, clock.monotonic() - started, clock),
      ...runOf(res),
      ...env.failure,
    });
  };
}

/** Returns the run of a response, from its headers. */
function runOf({ headers }: Response): Pick<LogRecord, "run_id" | "run_status"> {
  const [run_id, run_status] = [headers.get("preamp-run-id"), headers.get("preamp-run-status")];
  return { ...(run_id === null ? {} : { run_id }), ...(run_status === null ? {} : { run_status }) };
}

/** Returns a function that logs an error after the response started, such as a broken stream. */
export function logError(
  log: Log | undefined,
  clock: SystemClock,
): (request: RequestContext, error: unknown) => void {
  return (request, error) =>
    log?.({ ...recordOf(request, 200, 0, clock), level: "error", error: describeError(error) });
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

/** Creates the record of a request that was answered after `ms` milliseconds. */
function recordOf(request: RequestContext, status: number, ms: number, clock: SystemClock): LogRecord {
  const { request_id, method, path, caller } = request;
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
