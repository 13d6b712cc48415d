/**
 * `PreampError`, an error that an operator or caller must correct, and readers of any thrown value. Errors
 * are distinguished by `code` and never by `instanceof`: a bundled module carries its own copy of every
 * class. `llm_errors.ts` has the failures of providers.
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
  /** `Cannot <verb> <thing>: <fact>: received <value>`. */
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
  | "overloaded"
  | "draining"
  | "storage_full"
  | "internal"
  | "provider_rate_limited"
  | "provider_overloaded"
  | "provider_timeout"
  | "provider_bad_response"
  | "provider_auth"
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
   * <value>`.
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
    return String(error);
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
