/** Maps errors of the API and of its client. */
import {
  classifyLLMError,
  errorName,
  isObject,
  type JsonObject,
  LLMError,
  type LLMErrorType,
  retryAfterOf,
  statusOf,
  toLLMError,
} from "preamp/base";
import { connectionError } from "preamp/provider";

/** Maximum code units of a vendor's message. */
const MAX_MESSAGE_CHARS = 500;

const TOO_LONG = /input token count .{1,40}exceeds the maximum number of tokens/i;
const BAD_KEY = /api key (not valid|expired|not found)|API_KEY_INVALID/i;
/** Quotas that a minute's wait does not restore: of a day, or none at all. */
const USED_UP = /per.?day|limit: 0\b|credits? (are|is) depleted|\bspend/i;
/** A rate limit without details. */
const VAGUE_LIMIT = /resource (has been )?exhausted/i;

/** Returns an error of the vendor's client as an LLMError. */
export function toError(error: unknown): LLMError {
  if (error instanceof LLMError) return error;
  const status = statusOf(error);
  if (status === null) {
    const failure = toLLMError(error);
    if (failure.type !== "NetworkError" && errorName(error) !== "NotCapable") return failure;
    return connectionError(error, "Cannot reach the Gemini API");
  }
  const { message, details } = readBody(error);
  const retry_after = retryDelayOf(details, message) ?? retryAfterOf(error);
  const type = typeOf(status, message, details, retry_after !== null);
  const options = {
    cause: error,
    status_code: status,
    ...(retry_after === null ? {} : { retry_after }),
  };
  return new LLMError(type, message.slice(0, MAX_MESSAGE_CHARS), options);
}

function typeOf(
  status: number,
  message: string,
  details: readonly JsonObject[],
  has_delay: boolean,
): LLMErrorType {
  if (TOO_LONG.test(message)) return "ContextLengthError";
  const facts = JSON.stringify(details);
  if (status === 400 && (BAD_KEY.test(message) || BAD_KEY.test(facts))) return "AuthenticationError";
  if (status !== 429) return classifyLLMError(status, message);
  if (USED_UP.test(message) || USED_UP.test(facts)) return "QuotaExceededError";
  return has_delay || VAGUE_LIMIT.test(message) ? "RateLimitError" : classifyLLMError(status, message);
}

/** Returns the message and details of an error: the client puts the response's JSON into its message. */
function readBody(error: unknown): { message: string; details: JsonObject[] } {
  let message = error instanceof Error ? error.message : String(error);
  let details: JsonObject[] = [];
  // a response that is not marked as JSON is wrapped once more
  for (let depth = 0; depth < 3; depth++) {
    const body = parseBody(message);
    if (!body) break;
    if (Array.isArray(body.details)) details = body.details.filter(isObject);
    if (typeof body.message !== "string" || body.message === "") break;
    message = body.message;
  }
  return { message: message.trim() || "The API answered with an error that has no message", details };
}

function parseBody(text: string): JsonObject | undefined {
  const start = text.search(/[[{]/);
  if (start === -1) return undefined;
  try {
    const value: unknown = JSON.parse(text.slice(start));
    const body = Array.isArray(value) ? value[0] : value;
    return isObject(body) && isObject(body.error) ? body.error : undefined;
  } catch {
    return undefined; // plain text
  }
}

/** Returns the seconds to wait by `google.rpc.RetryInfo`, such as `"23s"`, or by the message. */
function retryDelayOf(details: readonly JsonObject[], message: string): number | undefined {
  const delay = details.find(({ retryDelay }) => typeof retryDelay === "string")?.retryDelay;
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(String(delay))?.[1] ??
    /retry in (\d+(?:\.\d+)?)s/i.exec(message)?.[1];
  return seconds === undefined ? undefined : Number(seconds);
}
