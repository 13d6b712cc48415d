/**
 * Converts errors to problem responses (RFC 9457, `application/problem+json`): see src/docs/http.md#errors.
 */
import { type ErrorCode, errorCode, type ErrorDetail, errorMessage, ERRORS } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { escapeAndTruncate } from "../text/escape.ts";
import { type Answer, API_HEADERS, textAnswer } from "./answers.ts";
import type { Middleware } from "./context.ts";
import { describeError } from "./log_line.ts";
import { respond } from "./respond.ts";

/** Answers what a later step or the handler throws, of any type, with a problem, and notes it for the log. */
export const answerErrors: Middleware = async (c, next) => {
  try {
    await next();
  } catch (error) {
    const { env } = c;
    const problem = toProblem(error);
    const { code } = problem;
    env.failure = code === "internal" ? { code, error: describeError(error) } : { code };
    c.res = respond(c, problemAnswer(problem, env.request_id));
  }
};

/** The content of a problem response. */
export interface Problem {
  status: number;
  code: ErrorCode;
  message: string;
  details: ErrorDetail[];
  /** Value of `Retry-After` in seconds, for 429, 503 and 507. */
  retry_after_s: number | null;
  /** Value of `Allow`, for 405. */
  allow: string | null;
}

/** Statuses of requests that may succeed later. */
const RETRIED: ReadonlySet<number> = new Set([429, 503, 507]);
const MAX_MESSAGE_BYTES = 2048;
/** Maximum number of findings in a problem response. */
const MAX_DETAILS = 1000;

/**
 * Converts a thrown value to a problem. Only the `code` decides. For `internal` and values without a known
 * code the message is fixed: details of the failure appear in the log, never in a response.
 */
export function toProblem(error: unknown): Problem {
  const found = errorCode(error);
  const code = found !== undefined && Object.hasOwn(ERRORS, found) ? found as ErrorCode : "internal"; // own key of the table
  const status = ERRORS[code].status;
  const facts = code === "internal" ? {} : (error as { facts?: unknown }).facts; // a known code: the error is an object
  const { retry_after_s, allow } = isObject(facts) ? facts : {};
  return {
    status,
    code,
    message: code === "internal"
      ? "Cannot answer the request: the server failed; the log contains the error under the request id"
      : escapeAndTruncate(errorMessage(error), MAX_MESSAGE_BYTES),
    details: code === "internal" ? [] : readDetails((error as { details?: unknown }).details),
    retry_after_s: RETRIED.has(status)
      ? (typeof retry_after_s === "number" && retry_after_s > 0 ? Math.ceil(retry_after_s) : 1)
      : null,
    allow: status === 405 && typeof allow === "string" ? allow : null,
  };
}

function readDetails(value: unknown): ErrorDetail[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MAX_DETAILS).filter(isObject).map((item) => {
    const detail: ErrorDetail = {
      path: escapeAndTruncate(String(item.path ?? ""), MAX_MESSAGE_BYTES),
      message: escapeAndTruncate(String(item.message ?? ""), MAX_MESSAGE_BYTES),
    };
    if (typeof item.file === "string") detail.file = escapeAndTruncate(item.file, MAX_MESSAGE_BYTES);
    if (typeof item.line === "number") detail.line = item.line;
    if (typeof item.column === "number") detail.column = item.column;
    if (typeof item.hint === "string") detail.hint = escapeAndTruncate(item.hint, MAX_MESSAGE_BYTES);
    return detail;
  });
}

/** Returns the answer of a problem; `members` are additional members, such as the run of `log_expired`. */
export function problemAnswer(problem: Problem, request_id: string, members: JsonObject = {}): Answer {
  const { status, code, message, details } = problem;
  const headers: Record<string, string> = { ...API_HEADERS, "content-type": "application/problem+json" };
  // The same challenge for a missing and for an unknown key; RFC 6750's error="invalid_token" would
  // distinguish them.
  if (status === 401) headers["www-authenticate"] = 'Bearer realm="preamp"';
  if (problem.retry_after_s !== null) headers["retry-after"] = String(problem.retry_after_s);
  if (problem.allow !== null) headers.allow = problem.allow;
  if (endsConnection(status)) headers.connection = "close";
  const body = {
    type: `urn:preamp:problem:${code}`, // the documentation is served by each server itself
    title: ERRORS[code].title,
    status,
    detail: message,
    error: details.length > 0 ? { code, message, details, request_id } : { code, message, request_id },
    ...members,
  };
  return textAnswer(JSON.stringify(body), status, headers);
}

/** Returns whether an answer is the last one of its connection, because the rest of the body is not read. */
function endsConnection(status: number): boolean {
  return status === 408 || status === 413;
}
