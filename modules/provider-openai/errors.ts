/** Reads errors of OpenAI's client, and of servers with its API, as LLMErrors. */
import { APIConnectionError } from "openai";
import {
  classifyLLMError,
  errorMessage,
  isObject,
  type JsonObject,
  LLMError,
  type LLMErrorType,
  retryAfterOf,
  toLLMError,
} from "preamp/base";
import { connectionError } from "preamp/provider";

/** An error that a server states in an answer with status 200. */
export class ServerError extends Error {
  readonly error: JsonObject;

  /** Creates an error from the server's error object, or from its message alone. */
  constructor(stated: JsonObject | string) {
    const error = isObject(stated) ? stated : { message: stated };
    super(textOf(error.message) ?? "The server reported an error without a message");
    this.name = "ServerError";
    this.error = error;
  }
}

/** Codes and types of errors. A code that is not here is classified by status and message. */
const BY_CODE: ReadonlyMap<unknown, LLMErrorType> = new Map(Object.entries<LLMErrorType>({
  context_length_exceeded: "ContextLengthError",
  exceed_context_size_error: "ContextLengthError", // llama.cpp
  string_above_max_length: "ContextLengthError",
  insufficient_quota: "QuotaExceededError",
  billing_hard_limit_reached: "QuotaExceededError",
  billing_not_active: "QuotaExceededError",
  rate_limit_exceeded: "RateLimitError",
  invalid_api_key: "AuthenticationError",
  unsupported_country_region_territory: "AccessDeniedError",
  model_not_found: "NotFoundError",
  content_filter: "ContentFilterError",
  content_policy_violation: "ContentFilterError",
  image_content_policy_violation: "ContentFilterError",
  bio_policy: "ContentFilterError",
  cyber_policy: "ContentFilterError",
  misalignment_policy_violation: "ContentFilterError",
  server_error: "ProviderUnavailableError",
  internal_error: "ProviderUnavailableError",
  server_is_overloaded: "ProviderUnavailableError",
  slow_down: "ProviderUnavailableError",
}));

/** Messages whose status and code say less than their words. */
const BY_MESSAGE: readonly (readonly [RegExp, LLMErrorType])[] = [
  // one request with more tokens than the limit of a minute never passes, however long the wait
  [/request too large|larger than .{0,40}tokens per min/i, "ContextLengthError"],
  [/context (?:length|window|size)|maximum (?:prompt|context) length|too many tokens/i, "ContextLengthError"],
  [/flagged as potentially violating|usage polic/i, "ContentFilterError"],
];

/** Statuses that are retried besides 429 and 5xx. */
const CONFLICT = 409;

/**
 * Returns an error of the client as an LLMError. Timeouts and aborts are those of the provider layer. The
 * header `x-should-retry` decides whether a failure is retried.
 */
export function toError(error: unknown): LLMError {
  const facts = factsOf(error);
  const type = typeOf(error, facts);
  if (type === undefined) return transportError(error);
  const { status, message } = facts;
  return new LLMError(type, message, {
    cause: error,
    status_code: status,
    retry_after: retryAfterOf(error),
    retryable: shouldRetry(error, status),
  });
}

interface ErrorFacts {
  readonly status: number | null;
  /** `code` and `type` of the server's error object. */
  readonly codes: readonly string[];
  readonly message: string;
}

/** Returns the facts about an error. OpenRouter sends the HTTP status of the model's vendor as `code`. */
function factsOf(error: unknown): ErrorFacts {
  const fields = isObject(error) ? error : {};
  const body = isObject(fields.error) ? fields.error : {};
  const nested = isObject(body.metadata) ? textOf(body.metadata.raw) : undefined;
  const status = [fields.status, body.code, body.status].find((value) =>
    typeof value === "number" && value >= 400 && value < 600
  );
  const stated = textOf(body.message) ?? textOf(body.detail) ?? textOf(fields.error) ??
    (Array.isArray(body.detail) ? JSON.stringify(body.detail) : undefined);
  const message = stated === undefined
    ? unstated(errorMessage(error), fields.status)
    : nested
    ? `${stated}: ${nested}`
    : stated;
  return {
    status: typeof status === "number" ? status : null,
    codes: [body.code, body.type].filter((code) => typeof code === "string"),
    message: withCounts(message.slice(0, MAX_MESSAGE), body),
  };
}

/** Maximum characters of a message; a server may repeat the whole request. */
export const MAX_MESSAGE = 2000;

/** Returns the message of an answer without an error object, often a page of another server. */
function unstated(message: string, status: unknown): string {
  const body = message.startsWith(`${status} `) ? message.slice(4) : message; // the client adds the status
  const text = body.length > 300 ? `${body.slice(0, 300)} …` : body;
  return status === 404 ? `${text}; check base_url: most servers need a path such as /v1` : text;
}

/** Adds the counts that llama.cpp states in fields of their own. */
function withCounts(message: string, { n_prompt_tokens, n_ctx }: JsonObject): string {
  return typeof n_ctx === "number"
    ? `${message} (n_prompt_tokens: ${n_prompt_tokens}, n_ctx: ${n_ctx})`
    : message;
}

/** Returns the type of a failure that the server stated; undefined when there was no answer of the server. */
function typeOf(error: unknown, { status, codes, message }: ErrorFacts): LLMErrorType | undefined {
  const isStated = status !== null || isObject(error) && isStatedError(error.error);
  if (!isStated) return undefined;
  if (status === 401) return "AuthenticationError";
  const known = codes.map((code) => BY_CODE.get(code)).find((type) => type !== undefined);
  const [, by_message] = BY_MESSAGE.find(([pattern]) => pattern.test(message)) ?? [];
  if (known === "RateLimitError" && by_message === "ContextLengthError") return by_message;
  if (known) return known;
  if (
    by_message && (status === null || status < 500 && status !== 429 || /request too large/i.test(message))
  ) {
    return by_message;
  }
  if (status === CONFLICT) return "ProviderUnavailableError";
  const type = classifyLLMError(status, [message, ...codes].join(" "));
  // an error event within a stream has no status; the server failed unless it says otherwise
  return type === "LLMError" && status === null ? "ProviderUnavailableError" : type;
}

/** Returns an error of the connection or of the stream's format. */
function transportError(error: unknown): LLMError {
  if (error instanceof APIConnectionError) return connectionError(error, "Cannot connect to the server");
  if (error instanceof SyntaxError) {
    return new LLMError("StreamError", "The server's answer is not valid JSON", { cause: error });
  }
  // the connection broke while the answer was read
  if (error instanceof TypeError) return new LLMError("StreamError", errorMessage(error), { cause: error });
  return toLLMError(error);
}

function shouldRetry(error: unknown, status: number | null): boolean | undefined {
  const headers = isObject(error) ? error.headers : undefined;
  const stated = headers instanceof Headers ? headers.get("x-should-retry") : null;
  if (stated === "true") return true;
  if (stated === "false") return false;
  return status === CONFLICT ? true : undefined;
}

/** Returns a text that is not empty; undefined for any other value. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns whether the field `error` of an answer states one: as an object, or as its message alone. */
export function isStatedError(error: unknown): error is JsonObject | string {
  return isObject(error) || textOf(error) !== undefined;
}
