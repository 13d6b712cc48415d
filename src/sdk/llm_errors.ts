/**
 * Failures of providers: `LLMError`, and its classification from HTTP statuses, messages and errors of
 * vendors' SDKs.
 */
import { type ContextOverflow, readOverflow } from "./context_overflow.ts";
import { type ErrorCode, errorMessage, errorName, readField, readText } from "./errors.ts";
import { isObject } from "./json.ts";
import { Usage } from "./messages.ts";

/** Types of provider failures. */
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

/** Facts about a provider failure; null and undefined: unknown. */
export interface LLMErrorOptions {
  /** The error that caused this one. */
  cause?: unknown;
  /** Name of the provider. */
  provider?: string | null | undefined;
  /** Name of the model. */
  model?: string | null | undefined;
  /** What the operator can do. */
  hint?: string | undefined;
  /** HTTP status the backend answered with. */
  status_code?: number | null | undefined;
  /**
   * Whether the same call may succeed later. Default: true for rate limits, unavailable providers, network
   * errors, timeouts and broken streams.
   */
  retryable?: boolean | null | undefined;
  /** Seconds the backend asked us to wait. */
  retry_after?: number | null | undefined;
  /** Factor on the computed delay; may exceed the cap; 0: this provider is not asked again. Default 1. */
  delay_multiplier?: number | null | undefined;
  /**
   * Of a `ContextLengthError`: maximum input tokens of such a request. Default: the number in the message.
   */
  limit_tokens?: number | null | undefined;
  /** Of a `ContextLengthError`: input tokens of the request. Default: the number in the message. */
  requested_tokens?: number | null | undefined;
  /** Tokens and cost of a call that failed after a part of its answer. */
  usage?: Usage | null | undefined;
}

const RETRYABLE: ReadonlySet<string> = new Set([
  "RateLimitError",
  "ProviderUnavailableError",
  "NetworkError",
  "LLMTimeoutError",
  "StreamError",
]);

/** A provider failure. `type` (equal to `name`) is one of {@link LLMErrorType}. */
export class LLMError extends Error {
  /** Type of the failure. */
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
  /** Of a `ContextLengthError`: maximum input tokens of such a request, if the provider states it. */
  declare readonly limit_tokens?: number;
  /** Of a `ContextLengthError`: input tokens of the request, if the provider states them. */
  declare readonly requested_tokens?: number;
  /** Tokens and cost of a call that failed after a part of its answer; estimated as far as unknown. */
  declare readonly usage?: Usage;

  /** What the operator can do. */
  declare readonly hint?: string;

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
    if (options.usage) this.usage = options.usage;
    if (options.hint !== undefined) this.hint = options.hint;
    if (type !== "ContextLengthError") return;
    const stated = readOverflow(message);
    const limit_tokens = countOf(options.limit_tokens) ?? stated.limit_tokens;
    const requested_tokens = countOf(options.requested_tokens) ?? stated.requested_tokens;
    if (limit_tokens !== null) this.limit_tokens = limit_tokens;
    if (requested_tokens !== null) this.requested_tokens = requested_tokens;
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
 * Patterns of vendors' messages; the first match wins. A message that says when to retry is a rate limit,
 * whatever else it mentions: the free tier of Gemini and the lower tiers of OpenAI mention quota and billing
 * in limits that reset within a minute.
 */
const BY_MESSAGE: readonly (readonly [RegExp, LLMErrorType])[] = [
  [
    /context.{0,12}(length|window|size|limit)|too many tokens|(prompt|input).{0,12} too long|(exceeds?|over) the (maximum|limit).{0,24}tokens|maximum prompt length|reduce the length of the messages/i,
    "ContextLengthError",
  ],
  [/content.{0,8}(filter|policy|management)|\bsafety\b/i, "ContentFilterError"],
  [/credit balance|insufficient.quota|billing hard limit/i, "QuotaExceededError"],
];
const RETRY_HINT = /(try again|retry) (in|after)|per (minute|second)|requests per|tokens per/i;
const MONEY = /quota|billing|spend|credit balance/i;

/**
 * Returns the failure type for an HTTP status (null when there was none). The words of the message decide
 * what the status leaves open, such as a 400 for a context that is too long.
 */
export function classifyLLMError(status_code: number | null, message: string): LLMErrorType {
  if (status_code !== null && status_code >= 500) return "ProviderUnavailableError";
  if (status_code === 429) {
    return MONEY.test(message) && !RETRY_HINT.test(message) ? "QuotaExceededError" : "RateLimitError";
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

/** Error names that SDKs of vendors use for failures without a status. */
const VENDOR_NAMES: Readonly<Record<string, LLMErrorType>> = {
  TimeoutError: "LLMTimeoutError",
  APITimeoutError: "LLMTimeoutError",
  APIConnectionTimeoutError: "LLMTimeoutError",
  APIConnectionError: "NetworkError",
  APIUserAbortError: "AbortError",
};

/**
 * Returns any value that a provider threw as an {@link LLMError}. An LLMError of any copy of the class keeps
 * its type and facts. An abort becomes an `AbortError`, a timeout signal an `LLMTimeoutError`. Errors of
 * other SDKs are classified by {@link statusOf status}, code and message.
 */
export function toLLMError(error: unknown, options: LLMErrorOptions = {}): LLMError {
  if (error instanceof LLMError) return error;
  const name = errorName(error);
  const message = errorMessage(error);
  const status_code = numberOf(options.status_code) ?? statusOf(error);
  const retryable = readField(error, "retryable");
  return new LLMError(typeOf(error, name, status_code, message), message, {
    cause: error,
    provider: readText(error, "provider"),
    model: readText(error, "model"),
    retryable: typeof retryable === "boolean" ? retryable : null,
    delay_multiplier: numberOf(readField(error, "delay_multiplier")),
    limit_tokens: countOf(readField(error, "limit_tokens")),
    requested_tokens: countOf(readField(error, "requested_tokens")),
    usage: usageOfFailure(error),
    ...options,
    status_code,
    retry_after: numberOf(options.retry_after) ?? retryAfterOf(error),
  });
}

/** Returns the usage of a call that failed after a part of its answer; null for any other failure. */
export function usageOfFailure(error: unknown): Usage | null {
  const usage = readField(error, "usage");
  if (!isObject(usage) || typeof usage.input_tokens !== "number") return null;
  try {
    return Usage(usage);
  } catch {
    return null; // an error of another SDK may have a usage of its own
  }
}

/** Returns a number of tokens; null for any other value. */
function countOf(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) > 0 ? value as number : null; // just checked
}

/**
 * Returns the numbers of a failure that means "the request is too long for the model"; null for any other
 * failure. A loop passes them to `getMessagesForRequest` as `overflow` and sends the smaller view once.
 */
export function overflowOf(error: unknown): ContextOverflow | null {
  if (errorName(error) === "PreampError") return null; // ours, and not a provider's
  const { type, limit_tokens = null, requested_tokens = null } = toLLMError(error);
  return type === "ContextLengthError" ? { limit_tokens, requested_tokens } : null;
}

function typeOf(error: unknown, name: string, status: number | null, message: string): LLMErrorType {
  if (status === null && Object.hasOwn(VENDOR_NAMES, name)) return VENDOR_NAMES[name]!; // own property, just checked
  // an SDK's RateLimitError may mean a used-up quota: then status and message decide
  const is_llm_error = KNOWN_TYPES.has(name) && name !== "LLMError" &&
    (name !== "RateLimitError" || status === null || typeof readField(error, "retryable") === "boolean");
  if (is_llm_error) return name as LLMErrorType; // one of KNOWN_TYPES
  return classifyLLMError(status, [message, readText(error, "code")].filter(Boolean).join(" "));
}

/**
 * Returns the HTTP status of an error (`status_code`, `status`, `statusCode`, `response.status`), or null.
 */
export function statusOf(error: unknown): number | null {
  for (const [owner, key] of STATUS_FIELDS) {
    const status = readField(owner === "" ? error : readField(error, owner), key);
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
 * Returns the seconds that a backend asked to wait, or null. Reads the error's own `retry_after`, then the
 * headers `retry-after-ms` and `retry-after` (seconds or a date) of a `Headers` object or a record.
 */
export function retryAfterOf(error: unknown): number | null {
  const own = numberOf(readField(error, "retry_after"));
  if (own !== null) return own;
  for (
    const headers of [
      readField(error, "headers"),
      readField(error, "responseHeaders"),
      readField(readField(error, "response"), "headers"),
    ]
  ) {
    const ms = numeric(headerOf(headers, "retry-after-ms"));
    if (ms !== null) return ms / 1000;
    const header = headerOf(headers, "retry-after");
    const seconds = numeric(header);
    if (seconds !== null) return seconds;
    const date = header !== null && /[a-z]/i.test(header) ? Date.parse(header) : NaN;
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
    return null; // a getter of a foreign object may throw
  }
}

function numeric(text: string | null): number | null {
  return text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? numberOf(Number(text)) : null;
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}

/** Returns the message of a provider's failure with its status and what the operator can do. */
export function explainedMessage({ message, status_code, hint }: LLMError): string {
  const status = status_code === null || message.includes(String(status_code))
    ? ""
    : ` (HTTP ${status_code})`;
  return `${message}${status}${hint === undefined ? "" : `; ${hint}`}`;
}

const CODES: ReadonlyMap<string, ErrorCode> = new Map([
  ["RateLimitError", "provider_rate_limited"],
  ["QuotaExceededError", "provider_rate_limited"],
  ["ProviderUnavailableError", "provider_overloaded"],
  ["NetworkError", "provider_unreachable"],
  ["LLMTimeoutError", "provider_timeout"],
  ["AuthenticationError", "provider_auth"],
  ["AccessDeniedError", "provider_auth"],
  ["ConfigurationError", "provider_auth"],
  ["NotFoundError", "model_not_found"],
  ["ContextLengthError", "context_overflow"],
]);

/** Returns the `error.code` of a run for the type of a provider failure; see src/docs/http.md#errors. */
export function providerErrorCode(type: string): ErrorCode {
  return CODES.get(type) ?? "provider_bad_response";
}
