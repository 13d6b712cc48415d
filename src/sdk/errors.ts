/**
 * Errors, told apart by `code` and never by `instanceof` (a bundled module carries its own copy of every class).
 * `PreampError` is what an operator or caller must mend; `LLMError` is the taxonomy of provider failures
 * (behaviour.md §4.8).
 */
import type { JsonObject } from "./json.ts";

/** One finding about a document: where it is, what is wrong, and what would do. */
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

/** Every `code` a {@link PreampError} may carry. Codes are stable; they only grow. */
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
  /** All findings, not the first. */
  details?: readonly ErrorDetail[];
  /** Machine-readable facts beside the message, such as `{limit: "max_tool_calls"}`. */
  facts?: JsonObject;
}

/** What a caller or operator must mend. Its `message` never holds a secret, a prompt, a path of the host or a stack. */
export class PreampError extends Error {
  /** Always `PreampError`. */
  override readonly name = "PreampError";
  /** The stable code of the failure. */
  readonly code: ErrorCode;
  /** All findings; empty when the message says it all. */
  readonly details: readonly ErrorDetail[];
  /** Machine-readable facts beside the message. */
  readonly facts: Readonly<JsonObject>;

  /** Creates an error with a stable code and a message of the form `Cannot <verb> <thing>: <fact>: received <value>`. */
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

/** Returns true when `error` carries this code, whichever copy of the class made it. */
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
    return "an error that cannot be read"; // its text throws, or it has none
  }
}

/** Returns a field of anything that was thrown, when it is text. */
function readText(error: unknown, key: string): string | undefined {
  const value = read(error, key);
  return typeof value === "string" ? value : undefined;
}

/** Returns a field of anything; undefined when it cannot be read: a getter of a stranger's error may throw. */
function read(error: unknown, key: string): unknown {
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

/** Names of the provider failures of behaviour.md §4.8. */
export const LLM_ERROR_TYPES = [
  "LLMError",
  "RateLimitError",
  "QuotaExceededError",
  "AuthenticationError",
  "AccessDeniedError",
  "ContextLengthError",
  "ContentFilterError",
  "InvalidRequestError",
  "ProviderUnavailableError",
  "NetworkError",
  "LLMTimeoutError",
  "NotFoundError",
  "StreamError",
  "AbortError",
  "InvalidToolCallError",
  "ConfigurationError",
] as const;

/** One of {@link LLM_ERROR_TYPES}. */
export type LLMErrorType = (typeof LLM_ERROR_TYPES)[number];

/** Facts about a provider failure. */
export interface LLMErrorOptions {
  /** The error that caused this one. */
  cause?: unknown;
  /** Name of the provider. */
  provider?: string;
  /** Name of the model. */
  model?: string;
  /** HTTP status the backend answered with. */
  status_code?: number;
  /** Whether the same call may succeed later. Default: by type, behaviour.md §4.8. */
  retryable?: boolean;
  /** Seconds the backend asked us to wait. */
  retry_after?: number;
  /** Factor on the computed delay; may exceed the cap. Default 1. */
  delay_multiplier?: number;
}

const RETRYABLE: ReadonlySet<string> = new Set([
  "RateLimitError",
  "ProviderUnavailableError",
  "NetworkError",
  "LLMTimeoutError",
  "StreamError",
]);

/** A provider failure. `type` (also `name`) is one of {@link LLMErrorType}. */
export class LLMError extends Error {
  /** Which failure this is. */
  readonly type: LLMErrorType;
  /** Name of the provider, or null. */
  readonly provider: string | null;
  /** Name of the model, or null. */
  readonly model: string | null;
  /** HTTP status the backend answered with, or null. */
  readonly status_code: number | null;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** Seconds the backend asked us to wait, or null. */
  readonly retry_after: number | null;
  /** Factor on the computed delay. */
  readonly delay_multiplier: number;

  /** Creates a provider failure of one type. */
  constructor(type: LLMErrorType, message: string, options: LLMErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = type;
    this.type = type;
    this.provider = options.provider ?? null;
    this.model = options.model ?? null;
    this.status_code = options.status_code ?? null;
    this.retryable = options.retryable ?? RETRYABLE.has(type);
    this.retry_after = options.retry_after ?? null;
    this.delay_multiplier = options.delay_multiplier ?? 1;
  }
}

const BY_STATUS: Readonly<Record<number, LLMErrorType>> = {
  401: "AuthenticationError",
  402: "QuotaExceededError",
  403: "AccessDeniedError",
  404: "NotFoundError",
  408: "LLMTimeoutError",
  413: "ContextLengthError",
};

/**
 * What vendors write, first match wins. A message that says when to come back is a rate limit, whatever else it mentions:
 * Gemini's free tier and OpenAI's lower tiers speak of quota and billing in limits that pass within a minute.
 */
const BY_MESSAGE: readonly (readonly [RegExp, LLMErrorType])[] = [
  [
    /context.{0,12}(length|window|size|limit)|too many tokens|(prompt|input).{0,12} too long|(exceeds?|over) the (maximum|limit).{0,24}tokens/i,
    "ContextLengthError",
  ],
  [/content.{0,8}(filter|policy|management)|\bsafety\b/i, "ContentFilterError"],
  [/credit balance|insufficient.quota|billing hard limit/i, "QuotaExceededError"],
];
const COMES_BACK = /(try again|retry) (in|after)|per (minute|second)|requests per|tokens per/i;
const MONEY = /quota|billing|spend|credit balance/i;

/**
 * Returns the failure type for an HTTP status (null when there was none), then for the words of the message
 * (behaviour.md §4.8): what the status leaves open, such as a 400 about the context's length, the message tells.
 */
export function classifyLLMError(status_code: number | null, message: string): LLMErrorType {
  if (status_code !== null && status_code >= 500) return "ProviderUnavailableError";
  if (status_code === 429) {
    return MONEY.test(message) && !COMES_BACK.test(message) ? "QuotaExceededError" : "RateLimitError";
  }
  const known = status_code === null ? undefined : BY_STATUS[status_code];
  if (known) return known;
  for (const [pattern, type] of BY_MESSAGE) if (pattern.test(message)) return type;
  if (status_code !== null && status_code >= 400) return "InvalidRequestError";
  if (/timed? ?out/i.test(message)) return "LLMTimeoutError";
  if (/rate.?limit/i.test(message)) return "RateLimitError";
  if (/overloaded|unavailable/i.test(message)) return "ProviderUnavailableError";
  if (/fetch failed|network|error sending request|connection|ECONN|ENOTFOUND|EPIPE|dns/i.test(message)) {
    return "NetworkError";
  }
  return "LLMError";
}

const KNOWN_TYPES: ReadonlySet<string> = new Set(LLM_ERROR_TYPES);

/** Names that vendors' SDKs give to failures which have no status. */
const VENDOR_NAMES: Readonly<Record<string, LLMErrorType>> = {
  TimeoutError: "LLMTimeoutError",
  APITimeoutError: "LLMTimeoutError",
  APIConnectionTimeoutError: "LLMTimeoutError",
  APIConnectionError: "NetworkError",
  APIUserAbortError: "AbortError",
};

/**
 * Returns anything a provider threw as an {@link LLMError}. One of ours, whichever copy of the class made it, keeps its
 * type and facts; an abort is an `AbortError`, a timeout signal an `LLMTimeoutError`; the rest is classified by its
 * {@link statusOf status}, its code and its message, as the SDKs of vendors throw.
 */
export function toLLMError(error: unknown, options: LLMErrorOptions = {}): LLMError {
  if (error instanceof LLMError) return error;
  const [provider, model, retryable] = ["provider", "model", "retryable"].map((key) => read(error, key));
  const name = errorName(error);
  const message = errorMessage(error);
  const status = numberOr(options.status_code, null) ?? statusOf(error);
  const type = typeOf(error, name, status, message);
  const retry_after = numberOr(options.retry_after, null) ?? retryAfterOf(error);
  return new LLMError(type, message, {
    cause: error,
    ...(typeof provider === "string" ? { provider } : {}),
    ...(typeof model === "string" ? { model } : {}),
    ...(typeof retryable === "boolean" ? { retryable } : {}),
    delay_multiplier: numberOr(read(error, "delay_multiplier"), 1),
    ...options,
    ...(status === null ? {} : { status_code: status }),
    ...(retry_after === null ? {} : { retry_after }),
  });
}

function typeOf(error: unknown, name: string, status: number | null, message: string): LLMErrorType {
  if (status === null && Object.hasOwn(VENDOR_NAMES, name)) return VENDOR_NAMES[name]!; // its own key
  // an SDK's RateLimitError may be a quota that is used up, which its status and message tell
  const is_ours = KNOWN_TYPES.has(name) && name !== "LLMError" &&
    (name !== "RateLimitError" || status === null || typeof read(error, "retryable") === "boolean");
  if (is_ours) return name as LLMErrorType; // in the set of them
  return classifyLLMError(status, [message, readText(error, "code")].filter(Boolean).join(" "));
}

/** Returns the HTTP status of an error as SDKs tell it (`status_code`, `status`, `statusCode`, `response.status`), or null. */
export function statusOf(error: unknown): number | null {
  for (const [owner, key] of STATUS_FIELDS) {
    const status = read(owner === "" ? error : read(error, owner), key);
    if (typeof status === "number" && Number.isInteger(status) && status >= 100 && status <= 599) {
      return status;
    }
  }
  return null;
}

const STATUS_FIELDS = [
  ["", "status_code"],
  ["", "status"],
  ["", "statusCode"],
  ["response", "status"],
  ["$metadata", "httpStatusCode"],
] as const;

/**
 * Returns the seconds that a backend asked to wait: the error's own `retry_after`, or the header `retry-after` (seconds or a date)
 * or `retry-after-ms` of its `headers`, a `Headers` or a record; null when it asked for none.
 */
export function retryAfterOf(error: unknown): number | null {
  const own = numberOr(read(error, "retry_after"), null);
  if (own !== null) return own;
  for (
    const headers of [
      read(error, "headers"),
      read(error, "responseHeaders"),
      read(read(error, "response"), "headers"),
    ]
  ) {
    const ms = numberOr(numeric(headerOf(headers, "retry-after-ms")), null);
    if (ms !== null) return ms / 1000;
    const told = headerOf(headers, "retry-after");
    const seconds = numberOr(numeric(told), null);
    if (seconds !== null) return seconds;
    const date = told !== null && /[a-z]/i.test(told) ? Date.parse(told) : NaN;
    if (Number.isFinite(date)) return Math.max(0, Math.ceil((date - Date.now()) / 1000));
  }
  return null;
}

function headerOf(headers: unknown, name: string): string | null {
  if (headers instanceof Headers) return headers.get(name);
  if (typeof headers !== "object" || headers === null) return null;
  try {
    const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
    return typeof found === "string" || typeof found === "number" ? String(found) : null;
  } catch {
    return null; // a getter of a stranger's object
  }
}

function numeric(text: string | null): number | undefined {
  return text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}

function numberOr<T>(value: unknown, fallback: T): number | T {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : fallback;
}

/** Returns the run's `error.code` for a provider failure's type (http.md, Problems). */
export function providerErrorCode(type: string): ErrorCode {
  switch (type) {
    case "RateLimitError":
    case "QuotaExceededError":
      return "provider_rate_limited";
    case "ProviderUnavailableError":
    case "NetworkError":
      return "provider_overloaded";
    case "LLMTimeoutError":
      return "provider_timeout";
    case "AuthenticationError":
    case "AccessDeniedError":
    case "ConfigurationError":
      return "provider_auth";
    case "ContextLengthError":
      return "context_overflow";
    default:
      return "provider_bad_response";
  }
}
