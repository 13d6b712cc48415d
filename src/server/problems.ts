/** Errors as answers: RFC 9457 `application/problem+json` with our members (http.md, Problems). */
import { type ErrorCode, errorCode, type ErrorDetail, errorMessage } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { escapeAndTruncate } from "../text/escape.ts";
import { textResponse } from "./text_response.ts";

/** HTTP status of every code. Does not compile when a code is missing. */
export const STATUS: Readonly<Record<ErrorCode, number>> = {
  request_invalid: 400,
  plan_invalid: 400,
  plan_limit_exceeded: 422,
  unauthorized: 401,
  forbidden: 403,
  policy_refused: 403,
  module_source_denied: 403,
  isolation_unavailable: 403,
  not_found: 404,
  method_not_allowed: 405,
  session_busy: 409,
  session_conflict: 409,
  idempotency_conflict: 409,
  run_ended: 409,
  not_steerable: 409,
  not_replayable: 409,
  log_expired: 410,
  module_integrity_mismatch: 409,
  module_pin_required: 422,
  lock_invalid: 422,
  approval_already_resolved: 409,
  approval_expired: 410,
  approval_args_mismatch: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  request_timeout: 408,
  module_too_large: 422,
  module_invalid: 422,
  module_load_failed: 422,
  module_fetch_failed: 502,
  module_fetch_timeout: 504,
  rate_limited: 429,
  too_many_runs: 429,
  overloaded: 503,
  draining: 503,
  storage_full: 507,
  internal: 500,
  // The rest sit on a run or a tool result, after the HTTP status went out; a status all the same, so that none is unmapped.
  provider_rate_limited: 502,
  provider_overloaded: 502,
  provider_timeout: 504,
  provider_bad_response: 502,
  provider_auth: 502,
  context_overflow: 422,
  denied: 403,
  cancelled: 409,
  interrupted: 502,
  limit_reached: 422,
  tool_not_found: 422,
  tool_input_invalid: 422,
  tool_timeout: 504,
  tool_memory_exceeded: 422,
  tool_output_exceeded: 422,
  tool_crashed: 502,
  tool_permission_denied: 403,
};

/** The same short summary at every occurrence of a code (RFC 9457 §3.1.3). */
export const TITLE: Readonly<Record<ErrorCode, string>> = {
  request_invalid: "The request is not valid",
  plan_invalid: "The plan is not valid",
  plan_limit_exceeded: "The plan is too large",
  unauthorized: "A valid API key is required",
  forbidden: "The request is not allowed",
  policy_refused: "The policy refuses this plan",
  module_source_denied: "A module source is not allowed",
  isolation_unavailable: "An isolation tier is not available here",
  not_found: "There is no such resource",
  method_not_allowed: "The method is not allowed here",
  session_busy: "The session has a run already",
  session_conflict: "The session changed meanwhile",
  idempotency_conflict: "The idempotency key belongs to another request",
  run_ended: "The run has ended",
  not_steerable: "The run takes no steering",
  not_replayable: "The run cannot be replayed",
  log_expired: "The log of the run is gone",
  module_integrity_mismatch: "A module differs from its pin",
  module_pin_required: "A module needs a pin",
  lock_invalid: "The lock cannot be read",
  approval_already_resolved: "The approval was answered already",
  approval_expired: "The approval has expired",
  approval_args_mismatch: "The approval is for other arguments",
  body_too_large: "The request body is too large",
  unsupported_media_type: "The media type is not supported",
  request_timeout: "The request body came too slowly",
  module_too_large: "A module is too large",
  module_invalid: "A module is not valid",
  module_load_failed: "A module could not be loaded",
  module_fetch_failed: "A module could not be fetched",
  module_fetch_timeout: "A module could not be fetched in time",
  rate_limited: "There were too many requests",
  too_many_runs: "There are too many runs",
  overloaded: "The server is overloaded",
  draining: "The server is stopping",
  storage_full: "The store is full",
  internal: "The server failed",
  provider_rate_limited: "The provider refused for its rate limit",
  provider_overloaded: "The provider is overloaded",
  provider_timeout: "The provider did not answer in time",
  provider_bad_response: "The provider answered badly",
  provider_auth: "The provider refused its credentials",
  context_overflow: "The conversation does not fit the model",
  denied: "A hook or person denied it",
  cancelled: "It was cancelled",
  interrupted: "It was interrupted",
  limit_reached: "A ceiling was reached",
  tool_not_found: "There is no such tool",
  tool_input_invalid: "The input of a tool is not valid",
  tool_timeout: "A tool did not answer in time",
  tool_memory_exceeded: "A tool used too much memory",
  tool_output_exceeded: "A tool gave too much output",
  tool_crashed: "A tool crashed",
  tool_permission_denied: "A tool lacks a permission",
};

/** A problem before it is an answer. */
export interface Problem {
  status: number;
  code: ErrorCode;
  message: string;
  details: ErrorDetail[];
  /** Seconds; for 429 and 503. */
  retry_after_s: number | null;
  /** Methods; for 405. */
  allow: string | null;
}

const MAX_MESSAGE_BYTES = 2048;
/** Our choice: no document of the sizes we read has more findings that a person would act on. */
const MAX_DETAILS = 1000;

/**
 * Returns anything that was thrown as a problem. An error is told by its `code` alone; without one of ours, and for
 * `internal`, the message is a fixed one: what failed goes to the log, never to the wire.
 */
export function toProblem(error: unknown): Problem {
  const code = knownCode(error);
  const status = STATUS[code];
  const facts = code === "internal" ? {} : (error as { facts?: unknown }).facts; // a known code: an object threw it
  const { retry_after_s, allow } = isObject(facts) ? facts : {};
  return {
    status,
    code,
    message: code === "internal"
      ? "Cannot answer the request: the server failed: the log has the reason under the request id"
      : escapeAndTruncate(errorMessage(error), MAX_MESSAGE_BYTES),
    details: code === "internal" ? [] : readDetails((error as { details?: unknown }).details),
    retry_after_s: status === 429 || status === 503
      ? (typeof retry_after_s === "number" && retry_after_s > 0 ? Math.ceil(retry_after_s) : 1)
      : null,
    allow: status === 405 && typeof allow === "string" ? allow : null,
  };
}

function knownCode(error: unknown): ErrorCode {
  const code = errorCode(error);
  return code !== undefined && Object.hasOwn(STATUS, code) ? code as ErrorCode : "internal"; // own key of the table
}

function readDetails(value: unknown): ErrorDetail[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MAX_DETAILS).filter(isObject).map((given) => {
    const detail: ErrorDetail = {
      path: escapeAndTruncate(String(given.path ?? ""), MAX_MESSAGE_BYTES),
      message: escapeAndTruncate(String(given.message ?? ""), MAX_MESSAGE_BYTES),
    };
    if (typeof given.file === "string") detail.file = escapeAndTruncate(given.file, MAX_MESSAGE_BYTES);
    if (typeof given.line === "number") detail.line = given.line;
    if (typeof given.column === "number") detail.column = given.column;
    if (typeof given.hint === "string") detail.hint = escapeAndTruncate(given.hint, MAX_MESSAGE_BYTES);
    return detail;
  });
}

/** Returns the answer for a problem; `members` are extension members beside ours, such as the run of `log_expired`. */
export function problemResponse(problem: Problem, request_id: string, members: JsonObject = {}): Response {
  const { status, code, message, details } = problem;
  const headers: Record<string, string> = {
    "content-type": "application/problem+json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  // One challenge for a missing and for a bad key: RFC 6750's error="invalid_token" would tell them apart.
  if (status === 401) headers["www-authenticate"] = 'Bearer realm="preamp"';
  if (problem.retry_after_s !== null) headers["retry-after"] = String(problem.retry_after_s);
  if (problem.allow !== null) headers.allow = problem.allow;
  // What is left of such a body is not worth reading.
  if (status === 408 || status === 413) headers.connection = "close";
  const body = {
    type: problemType(code),
    title: TITLE[code],
    status,
    detail: message,
    error: details.length > 0 ? { code, message, details, request_id } : { code, message, request_id },
    ...members,
  };
  return textResponse(JSON.stringify(body), status, headers);
}

/** Returns the problem type of a code: a name, not an address, because the program runs without a site of ours. */
export function problemType(code: ErrorCode): string {
  return `urn:preamp:problem:${code}`;
}
