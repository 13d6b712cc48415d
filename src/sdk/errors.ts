/**
 * `PreampError`, an error that an operator or caller must correct, the properties of its codes
 * (src/docs/http.md#errors), and readers of any thrown value. Errors are distinguished by `code` and never
 * by `instanceof`: a bundled module carries its own copy of every class. `llm_errors.ts` has the failures
 * of providers.
 */
import type { JsonObject } from "./json.ts";

/** One finding about a document: its place, what is wrong, and what to write instead. */
export interface ErrorDetail {
  /** Place in the document, such as `tools[0].permissions.net`; empty for the document itself. */
  path: string;
  /** The module's file that line and column are in; absent when they are in the document. */
  file?: string;
  /** Line in the text, from 1. */
  line?: number;
  /** Column in the text, from 1. */
  column?: number;
  /** `Cannot <verb> <thing>: <fact>: received <value>`, without the last part where there is no value. */
  message: string;
  /** What to write instead. */
  hint?: string;
}

/** Codes of a {@link PreampError}. Codes are stable: they are added and never removed. */
export type ErrorCode =
  | "request_invalid"
  | "plan_invalid"
  | "plan_limit_exceeded"
  | "unauthorized"
  | "forbidden"
  | "policy_refused"
  | "module_source_denied"
  | "isolation_unavailable"
  | "not_found"
  | "method_not_allowed"
  | "session_busy"
  | "session_conflict"
  | "idempotency_conflict"
  | "run_ended"
  | "not_steerable"
  | "not_replayable"
  | "log_expired"
  | "module_integrity_mismatch"
  | "module_pin_required"
  | "lock_invalid"
  | "approval_already_resolved"
  | "approval_expired"
  | "approval_args_mismatch"
  | "body_too_large"
  | "unsupported_media_type"
  | "request_timeout"
  | "module_too_large"
  | "module_invalid"
  | "module_load_failed"
  | "module_fetch_failed"
  | "module_fetch_timeout"
  | "rate_limited"
  | "too_many_runs"
  | "too_many_streams"
  | "overloaded"
  | "draining"
  | "storage_full"
  | "internal"
  | "provider_rate_limited"
  | "provider_overloaded"
  | "provider_unreachable"
  | "provider_timeout"
  | "provider_bad_response"
  | "provider_auth"
  | "model_not_found"
  | "context_overflow"
  | "denied"
  | "cancelled"
  | "interrupted"
  | "limit_reached"
  | "tool_not_found"
  | "tool_input_invalid"
  | "tool_timeout"
  | "tool_memory_exceeded"
  | "tool_output_exceeded"
  | "tool_crashed"
  | "tool_permission_denied";

/** Options of a {@link PreampError}. */
export interface PreampErrorOptions {
  /** The error that caused this one. Never shown on the wire. */
  cause?: unknown;
  /** All findings, not only the first. */
  details?: readonly ErrorDetail[];
  /** Machine-readable facts in addition to the message, such as `{limit: "max_tool_calls"}`. */
  facts?: JsonObject;
}

/**
 * An error that a caller or operator must correct. Its `message` never holds a secret, a prompt, a path of
 * the host or a stack.
 */
export class PreampError extends Error {
  /** Always `PreampError`. */
  override readonly name = "PreampError";
  /** The stable code of the failure. */
  readonly code: ErrorCode;
  /** All findings; empty when the message is complete without them. */
  readonly details: readonly ErrorDetail[];
  /** Machine-readable facts in addition to the message. */
  readonly facts: Readonly<JsonObject>;

  /**
   * Creates an error with a stable code and a message of the form `Cannot <verb> <thing>: <fact>: received
   * <value>`. The last part is left out where there is no value to name.
   */
  constructor(code: ErrorCode, message: string, options: PreampErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? [];
    this.facts = options.facts ?? {};
  }
}

/** Returns the `code` of an error of any copy of our classes, or undefined. */
export function errorCode(error: unknown): string | undefined {
  return readText(error, "code");
}

/** Returns true when `error` has this code, from any copy of the class. */
export function hasCode(error: unknown, code: ErrorCode): boolean {
  return errorCode(error) === code;
}

/** Returns the message of anything that was thrown. */
export function errorMessage(error: unknown): string {
  const message = readText(error, "message");
  if (message !== undefined) return message;
  try {
    const text = String(error);
    if (text !== "[object Object]") return text;
    return `an object with ${Object.keys(Object(error)).slice(0, 10).join(", ") || "no keys"}`; // its values may be secret
  } catch {
    return "an error that cannot be read"; // its `toString` throws, or it has none
  }
}

/** Returns a text field of a thrown value, or undefined. */
export function readText(error: unknown, key: string): string | undefined {
  const value = readField(error, key);
  return typeof value === "string" ? value : undefined;
}

/** Returns a field of any value; undefined when a getter of foreign code throws. */
export function readField(error: unknown, key: string): unknown {
  if (typeof error !== "object" || error === null) return undefined;
  try {
    return (error as JsonObject)[key];
  } catch {
    return undefined;
  }
}

/** Returns the name of anything that was thrown: its `type`, its `name`, or `Error`. */
export function errorName(error: unknown): string {
  return readText(error, "type") || readText(error, "name") || "Error";
}

/** Properties of an error code. */
export interface ErrorCodeInfo {
  /** HTTP status. */
  readonly status: number;
  /** Short summary, the same for every occurrence (RFC 9457 §3.1.3). */
  readonly title: string;
  /** Exit code of the command line; default 1. */
  readonly exit?: number;
}

/** Every error code with its properties. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorCodeInfo>> = {
  request_invalid: { status: 400, title: "Invalid request", exit: 2 },
  plan_invalid: { status: 400, title: "Invalid plan", exit: 3 },
  plan_limit_exceeded: { status: 422, title: "Plan too large", exit: 3 },
  unauthorized: { status: 401, title: "Missing or unknown API key" },
  forbidden: { status: 403, title: "Request not allowed", exit: 4 },
  policy_refused: { status: 403, title: "Plan refused by the policy", exit: 4 },
  module_source_denied: { status: 403, title: "Module source not allowed", exit: 4 },
  isolation_unavailable: { status: 403, title: "Isolation tier not available", exit: 4 },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "Method not allowed" },
  session_busy: { status: 409, title: "Session has an active run" },
  session_conflict: { status: 409, title: "Session was changed by another run" },
  idempotency_conflict: { status: 409, title: "Idempotency key used by another request" },
  run_ended: { status: 409, title: "Run has ended" },
  not_steerable: { status: 409, title: "Run cannot be steered" },
  not_replayable: { status: 409, title: "Run cannot be replayed" },
  log_expired: { status: 410, title: "Event log of the run has expired" },
  module_integrity_mismatch: { status: 409, title: "Module differs from its integrity hash" },
  module_pin_required: { status: 422, title: "Module needs an integrity hash" },
  lock_invalid: { status: 422, title: "Invalid lock file", exit: 3 },
  approval_already_resolved: { status: 409, title: "Approval already decided" },
  approval_expired: { status: 410, title: "Approval expired" },
  approval_args_mismatch: { status: 409, title: "Approval is for other arguments" },
  body_too_large: { status: 413, title: "Request body too large" },
  unsupported_media_type: { status: 415, title: "Unsupported media type" },
  request_timeout: { status: 408, title: "Timed out reading the request body" },
  module_too_large: { status: 422, title: "Module too large" },
  module_invalid: { status: 422, title: "Invalid module" },
  module_load_failed: { status: 422, title: "Cannot load a module" },
  module_fetch_failed: { status: 502, title: "Cannot fetch a module" },
  module_fetch_timeout: { status: 504, title: "Timed out fetching a module" },
  rate_limited: { status: 429, title: "Rate limit exceeded" },
  too_many_runs: { status: 429, title: "Too many runs" },
  too_many_streams: { status: 429, title: "Too many open event streams" },
  overloaded: { status: 503, title: "Server overloaded" },
  draining: { status: 503, title: "Server is shutting down" },
  storage_full: { status: 507, title: "Store is full" },
  internal: { status: 500, title: "Internal server error" },
  // The codes below occur in run objects and tool results, not as problem responses.
  provider_rate_limited: { status: 502, title: "Provider rate limit exceeded" },
  provider_overloaded: { status: 502, title: "Provider overloaded" },
  provider_unreachable: { status: 502, title: "Provider not reachable" },
  provider_timeout: { status: 504, title: "Provider timed out" },
  provider_bad_response: { status: 502, title: "Invalid response of the provider" },
  provider_auth: { status: 502, title: "Provider refused the credentials" },
  model_not_found: { status: 422, title: "The provider does not have the model" },
  context_overflow: { status: 422, title: "Conversation exceeds the model's context window" },
  denied: { status: 403, title: "Denied by a hook or approver", exit: 4 },
  cancelled: { status: 409, title: "Run cancelled" },
  interrupted: { status: 502, title: "Run interrupted by a server stop" },
  limit_reached: { status: 422, title: "Run limit reached" },
  tool_not_found: { status: 422, title: "Unknown tool" },
  tool_input_invalid: { status: 422, title: "Invalid tool input" },
  tool_timeout: { status: 504, title: "Tool timed out" },
  tool_memory_exceeded: { status: 422, title: "Tool exceeded its memory limit" },
  tool_output_exceeded: { status: 422, title: "Tool output too large" },
  tool_crashed: { status: 502, title: "Tool crashed" },
  tool_permission_denied: { status: 403, title: "Tool lacks a permission", exit: 4 },
};
